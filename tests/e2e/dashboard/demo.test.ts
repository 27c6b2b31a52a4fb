import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../../cli/lib/chromium.ts'
import { ask, eventually, scopePath } from '../api.ts'
import { closePages, faultsOf, openPage } from './harness.ts'

const BLOCKED = '203.0.113.45'
const NETWORK = '198.51.100.0/24'

let demo: ChildProcess
let browser: Browser
/** The address and the key that the demo prints. */
let kept: { url: string; key: string }

beforeAll(async () => {
  const args = ['--disable-warning=ExperimentalWarning', 'cli/demo.ts', '--keep', '--no-learning']
  demo = spawn(process.execPath, args, { env: { PATH: process.env['PATH'], NO_COLOR: '1' }, stdio: ['ignore', 'pipe', 'inherit'] })
  ;[kept, browser] = await Promise.all([addressIn(demo), launchChromium()])
})
afterAll(async () => {
  await browser?.close()
  const ended = once(demo, 'close')
  demo.kill('SIGINT')
  await ended
})

async function addressIn({ stdout }: ChildProcess): Promise<{ url: string; key: string }> {
  let printed = ''
  for await (const chunk of stdout ?? []) {
    printed += String(chunk)
    const [, url, key] = /Its dashboard: (\S+), with this key:\s+(\S+)\n/.exec(printed) ?? []
    if (url !== undefined && key !== undefined) {
      stdout?.resume()
      return { url, key }
    }
  }
  throw new Error(`The demo has ended: ${printed}`)
}

test('a key without the role operator learns which role the approvals need', async () => {
  const { url, key: admin } = kept
  const body = { name: 'watcher', roles: ['viewer'], scopes: ['ssh/*'] }
  const { key } = await ask<{ key: string }>(url, '/v1/keys', { key: admin, body })
  const { page } = await openPage(browser, url, '/', { key })
  await page.getByText('needs the role operator').waitFor()
  await page.getByText('in 2 scopes').waitFor()
  for (const [path, role] of [
    ['/approvals', 'operator'],
    ['/dead-letters', 'operator'],
    ['/keys', 'admin'],
  ] as const) {
    await page.goto(`${url}${path}`)
    await page.getByText(`This page needs the role ${role}. The key watcher has: viewer.`).waitFor()
  }
  expect((await fetch(`${url}${scopePath('demo/failing')}`, { headers: { authorization: `Bearer ${key}` } })).status).toBe(403)
  await closePages(page)
})

test('a newcomer finds why an address was blocked, approves a network block, retries the dead letter, and asks what a reflex change would have done', async () => {
  const { url, key } = kept
  const page = await browser.newPage({ reducedMotion: 'reduce' })
  const faults = faultsOf(page, url)
  const menu = page.getByRole('navigation', { name: 'Pages' })
  // The names of some have a count of what waits.
  const to = async (group: string, name: string) => {
    await menu.getByRole('link', { name: new RegExp(`^${group}( ?\\d+ waiting)?$`) }).click()
    await menu.getByRole('link', { name: new RegExp(`^${name}( ?\\d+ waiting)?$`) }).click()
  }
  await page.goto(url)
  await page.getByLabel('Key', { exact: true }).fill(key)
  await page.keyboard.press('Enter')

  const decided = page.getByRole('region', { name: 'Events, by who decided them' })
  await decided.getByRole('row', { name: 'Reflex' }).waitFor()
  await page.getByRole('region', { name: 'Service levels' }).getByText('Turns that failed').waitFor()
  await page.getByRole('link', { name: 'Last day' }).click()
  await page.waitForURL(/range=day/)
  await decided.getByRole('row', { name: 'Filter' }).waitFor()

  await to('Activity', 'Blocks')
  await page.getByLabel('Search').fill(BLOCKED)
  await page.getByRole('button', { name: `Details of the block of ${BLOCKED}` }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/failed logins from [A-Z][a-z]+ \d/).waitFor()
  await dialog.getByText('Decided by reflex ssh-brute-force@1').waitFor()
  await dialog.getByRole('link', { name: 'what it saw, and why it acted' }).click()
  await page.waitForURL(/\/traces\/[0-9a-f]{32}\?span=/)
  const why = page.getByRole('region', { name: 'Why' })
  await why.getByText('ssh-brute-force fired: call_tool block').waitFor()
  await why.getByRole('button', { name: new RegExp(`block: ok.*${BLOCKED.replaceAll('.', '\\.')}`, 's') }).click()
  const details = page.getByRole('region', { name: 'execute_tool block' })
  await details.getByText(BLOCKED).first().waitFor()
  await details.getByText('failed logins').first().waitFor()

  await to('Now', 'Overview')
  await page.getByText('first expires').waitFor()
  await page.getByRole('link', { name: 'Approvals waiting' }).click()
  await page.getByRole('region', { name: 'Approval', exact: true }).getByText('block_network', { exact: true }).waitFor()
  await page.keyboard.press('a')
  await dialog.getByText(`"${NETWORK}"`).waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.keyboard.press('a')
  await dialog.locator('input:focus').waitFor()
  await page.keyboard.type('they attack')
  await page.keyboard.press('Enter')
  await page.getByText('Reason of the decision: they attack').waitFor()
  await page.getByRole('heading', { name: 'The run' }).waitFor()

  await to('Activity', 'Blocks')
  await page.getByText(NETWORK).first().waitFor()

  await to('Now', 'Dead letters')
  const letter = page.getByRole('region', { name: 'Dead letter', exact: true })
  await letter.getByText('division by zero').first().waitFor()
  const letters = async () => (await ask<{ items: { id: string }[] }>(url, '/v1/dlq', { key })).items.map(({ id }) => id)
  const [before] = await letters()
  await letter.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('Retried. It comes back here if it fails again.').waitFor()
  // It fails again, as a letter of its own.
  await eventually(async () => {
    const [again, ...more] = await letters()
    return again !== undefined && again !== before && more.length === 0
  }, 'the retry has failed')

  await to('Decisions', 'Reflexes')
  await page.getByRole('link', { name: 'ssh-brute-force' }).first().click()
  await page.getByRole('navigation', { name: 'Parts of this reflex' }).getByRole('link', { name: 'Try it' }).click()
  await page.getByLabel('Scope').fill('ssh/web-1')
  await page.getByLabel('Changed code').fill('function reflex(context) { return null }')
  await page.getByRole('button', { name: 'Decide again' }).click()
  await page.getByText(/[1-9][\d,]* of [\d,]+ decisions on [\d,]+ events would change/).waitFor()
  await page.getByText(/[1-9]\d* would not have happened/).waitFor()
  expect(faults).toEqual([])
  await page.close()
})
