import { describe, expect, test } from 'vitest'
import type { Document } from '../../../src/http/describe/docs/document.ts'
import { docsRoutes } from '../../../src/http/describe/docs/routes.ts'

const PAGES = ['approvals', 'sockets', 'decisions', 'decisions/one-alarm']
/** The dashboard's files: its start page answers what is no file. */
const files = (pages: readonly string[] | null) => ({
  fetch: async (asked: URL | Request) => {
    const { pathname } = new URL(asked instanceof Request ? asked.url : asked)
    return new Response(pathname === '/docs/pages.json' && pages ? JSON.stringify(pages) : `file ${pathname}`)
  },
})
const get = (path: string, pages: readonly string[] | null = PAGES) =>
  docsRoutes((): Document => ({}) as Document).request(path, {}, { ASSETS: files(pages) })

describe('an address below /docs', () => {
  test.each(['/docs/', '/docs/sockets', '/docs/decisions/', '/docs/decisions/one-alarm', '/docs/style.css', '/docs/sockets.html'])(
    '%s is its file',
    async (path) => {
      const answer = await get(path)
      expect([answer.status, await answer.text()]).toEqual([200, `file ${path}`])
    },
  )

  test.each([
    ['/docs/socket', 'sockets'],
    ['/docs/approval.md', 'approvals'],
    ['/docs/decisions/one-alarms', 'decisions/one-alarm'],
  ])('%s is not there, and the nearest page is named', async (path, nearest) => {
    const answer = await get(path)
    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain(`<a href="/docs/${nearest}">${nearest}</a>`)
  })

  test('may be the name of its source', async () => {
    const answer = await get('/docs/decisions/one-alarm.md')
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/docs/decisions/one-alarm'])
  })

  test('is shown as it was asked, not as HTML', async () => {
    const answer = await get('/docs/<script>alert(1)</script>')
    expect(answer.status).toBe(404)
    expect(await answer.text()).not.toContain('<script>')
  })

  test('is left to the files where no page was built, and is not found without files', async () => {
    expect(await (await get('/docs/socket', null)).text()).toBe('file /docs/socket')
    expect((await docsRoutes((): Document => ({}) as Document).request('/docs/socket', {}, {})).status).toBe(404)
  })
})
