import { expect, test } from 'vitest'
import { KnownPaths } from '../../../src/http/app.ts'

test('a path leads to the same handlers when it is asked again, and to a new one once there is one', () => {
  const router = new KnownPaths<string>()
  router.add('GET', '/v1/scopes/:scope', 'scope')
  const found = () => router.match('GET', '/v1/scopes/one')[0].map(([handler]) => handler)
  expect(found()).toEqual(['scope'])
  expect(found()).toEqual(['scope'])
  expect(router.match('GET', '/v1/scopes/two')).toMatchObject([[['scope', { scope: 'two' }]]])
  expect(router.match('POST', '/v1/scopes/one')[0]).toEqual([])
  router.add('ALL', '/v1/*', 'all')
  expect(found()).toEqual(['scope', 'all'])
})

test('more paths than it remembers are found, too, and long ones are not kept', () => {
  const router = new KnownPaths<string>()
  router.add('GET', '/:name', 'named')
  for (let index = 0; index < 1200; index += 1)
    expect(router.match('GET', `/${'x'.repeat(index % 300)}${index}`)[0]).toMatchObject([
      ['named', { name: expect.stringMatching(/^x*\d+$/) }],
    ])
})
