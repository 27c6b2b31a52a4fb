import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, scopePath } from '../api.ts'
import { expectSound, startDashboard, type Dashboard } from './harness.ts'
import { seedDemo } from './seed.ts'

let dashboard: Dashboard
beforeAll(async () => {
  dashboard = await startDashboard({ seed: seedDemo })
})
afterAll(() => dashboard?.close())

test('the overview shows who decided events, what waits, and the state of the system', async () => {
  const { page } = await dashboard.open('/')
  const decided = page.getByRole('region', { name: 'Events, by who decided them' })
  await decided.getByRole('row', { name: 'Reflex' }).waitFor()
  expect(await page.getByRole('link', { name: 'Approvals waiting' }).isVisible()).toBe(true)
  await page.getByText('first expires').waitFor()
  await page.getByRole('region', { name: 'Service levels' }).getByText('Turns that failed').waitFor()
  await page.getByRole('link', { name: 'Last day' }).click()
  await page.waitForURL(/range=day/)
  await decided.getByRole('row', { name: 'Filter' }).waitFor()
  await page.context().close()
})

test('the overview is accessible, and asks no other host', async () => {
  await expectSound(dashboard, '/', (page) => page.getByRole('region', { name: 'Service levels' }))
})

test('a key without the role operator learns which role the approvals need', async () => {
  const { key } = await ask<{ key: string }>(dashboard.url, '/v1/keys', { body: { name: 'watcher', roles: ['viewer'], scopes: ['ssh/*'] } })
  const { page } = await dashboard.open('/', { key })
  await page.getByText('needs the role operator').waitFor()
  await page.getByText('in 2 scopes').waitFor()
  for (const [path, role] of [
    ['/approvals', 'operator'],
    ['/dead-letters', 'operator'],
    ['/keys', 'admin'],
  ] as const) {
    await page.goto(`${dashboard.url}${path}`)
    await page.getByText(`This page needs the role ${role}. The key watcher has: viewer.`).waitFor()
  }
  expect((await fetch(`${dashboard.url}${scopePath('demo/failing')}`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(403)
  await page.context().close()
})
