import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN_KEY } from '../api.ts'
import { closePages, faultsOf, startDashboard, type Dashboard } from './harness.ts'

let dashboard: Dashboard
beforeAll(async () => {
  dashboard = await startDashboard()
})
afterAll(() => dashboard?.close())

test('a wrong key is refused with a reason; the right one opens the page that the link names, and survives a reload', async () => {
  const page = await dashboard.browser.newPage()
  const faults = faultsOf(page, dashboard.url)
  await page.goto(`${dashboard.url}/keys`)
  const key = page.getByLabel('Key', { exact: true })
  await key.fill('wrong')
  await key.press('Enter')
  await page.getByRole('alert').waitFor()
  await key.fill(ADMIN_KEY)
  await key.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  expect(await page.evaluate(() => localStorage.length)).toBe(0)
  expect(faults).toEqual([])
  await page.close()
})

const ASSETS = 'dashboard/dist/assets'
/** As a server sends them, each compressed by itself. */
const gzipped = (files: readonly string[]): number =>
  files.reduce((sum, file) => sum + gzipSync(readFileSync(path.join(ASSETS, file)), { level: 9 }).length, 0)

const LINKS =
  '/ /scopes /scopes/ssh~one /traces /traces/0199a0f2c3d47e5fa6b7c8d9e0f1a2b3 /reflexes /reflexes/one /skills /skills/one ' +
  '/learning /decisions /costs /market /approvals /dead-letters /incidents /keys /audit'

test('the overview loads at most 25 kB of script, any other link 48 kB, all pages together 90 kB, and all CSS is 8 kB', async () => {
  const { page } = await dashboard.open('/')
  const sizes: [string, number][] = []
  for (const link of LINKS.split(' ')) {
    await page.goto(dashboard.url + link)
    await page.getByRole('heading', { level: 1 }).waitFor()
    const loaded = await page.evaluate<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`)
    const scripts = loaded.filter((name) => name.endsWith('.js')).map((name) => path.basename(name))
    expect(scripts.length).toBeGreaterThan(0)
    sizes.push([link, gzipped(scripts)])
  }
  expect(sizes.filter(([link, size]) => size > (link === '/' ? 25_000 : 48_000))).toEqual([])
  const all = readdirSync(ASSETS)
  expect(gzipped(all.filter((file) => file.endsWith('.css')))).toBeLessThanOrEqual(8000)
  expect(gzipped(all.filter((file) => file.endsWith('.js')))).toBeLessThanOrEqual(90_000)
  await closePages(page)
})

test.each([
  ['/activity', '/traces'],
  ['/settings', '/keys'],
])('the address %s of a group of the menu leads to its first page, %s', async (group, first) => {
  const response = await fetch(dashboard.url + group, { redirect: 'manual' })
  expect({ status: response.status, to: response.headers.get('location') }).toEqual({ status: 302, to: first })
})

test('a list whose events are in part away says so, and shows the others', async () => {
  const { page } = await dashboard.open('/')
  const json = { items: [], next_cursor: null, missing: ['EVENTS_DB_1'], damaged: ['DB 7'] }
  await page.route(/\/v1\/activity\?/, (route) => route.fulfill({ json }))
  await page.goto(`${dashboard.url}/traces`)
  await page.getByText('Nothing matches.').waitFor()
  expect(await page.getByRole('alert').allTextContents()).toEqual([
    'EVENTS_DB_1 did not answer: what only they have is missing here.',
    'DB 7 cannot be read: the events in these packs are missing here.',
  ])
  await closePages(page)
})

test('the page is served with a strict policy, and a script that is injected does not run', async () => {
  const response = await fetch(dashboard.url)
  const policy = response.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self'")
  expect(policy).not.toContain('unsafe')
  const { page } = await dashboard.open('/')
  await page.getByRole('heading', { level: 1 }).waitFor()
  const ran = await page.evaluate<boolean>(`(() => {
    const script = document.createElement('script')
    try {
      script.textContent = 'window.injected = true'
      document.body.append(script)
      document.body.innerHTML = '<img src=x onerror="window.injected = true">'
    } catch {}
    return 'injected' in window
  })()`)
  expect(ran).toBe(false)
  await closePages(page)
})

test('the documentation is at /docs without a key, and its search leads to a section', async () => {
  const page = await dashboard.browser.newPage()
  const faults = faultsOf(page, dashboard.url)
  await page.goto(`${dashboard.url}/docs`)
  await page.getByRole('heading', { level: 1, name: 'Reflex' }).waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('idempotence')
  await page.getByRole('status').getByRole('link').first().click()
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(page.url()).toMatch(/\/docs\/[\w/-]+#[\w-]+$/)
  await page.goto(`${dashboard.url}/docs/decisions/one-alarm`)
  await page.getByRole('heading', { level: 1, name: 'One alarm' }).waitFor()
  await page.getByRole('link', { name: 'Reflex documentation' }).click()
  await page.getByRole('heading', { level: 1, name: 'Reflex' }).waitFor()
  expect(faults).toEqual([])
  await page.close()
})

test('a server that goes away is reported, and what is shown is loaded again when it is back', async () => {
  const { page } = await dashboard.open('/')
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  await dashboard.kill()
  await page.getByText('The server does not answer. What you see').waitFor()
  await dashboard.restart()
  await page.getByText('The server does not answer. What you see').waitFor({ state: 'detached' })
  await page.getByRole('alert').first().waitFor({ state: 'detached' })
  expect(await page.getByRole('heading', { level: 1, name: 'Now' }).isVisible()).toBe(true)
  await closePages(page)
})
