import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, eventually } from '../api.ts'
import { audit, expectSound, startDashboard, type Dashboard } from './harness.ts'
import { seedDemo } from './seed.ts'

let dashboard: Dashboard
beforeAll(async () => {
  dashboard = await startDashboard({ seed: seedDemo })
})
afterAll(() => dashboard?.close())

test('the operational pages are accessible, and ask no other host', async () => {
  await expectSound(dashboard, '/approvals', (page) =>
    page.getByRole('region', { name: 'Approval', exact: true }).getByText('unblock_network'),
  )
  await expectSound(dashboard, '/dead-letters', (page) => page.getByRole('region', { name: 'Dead letter', exact: true }))
  await expectSound(dashboard, '/incidents', (page) => page.getByText('203.0.113.45'))
  await expectSound(dashboard, '/incidents?tab=open', (page) => page.getByRole('article'))
  await expectSound(dashboard, '/keys', (page) => page.getByText('You are signed in with admin.'))
})

test('a block says why, and links to the trace of the decision', async () => {
  const { page } = await dashboard.open('/incidents')
  await page.getByLabel('Search').fill('203.0.113.45')
  await page.getByRole('button', { name: 'Details of the block of 203.0.113.45' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Decided by reflex ssh-brute-force@1').waitFor()
  expect(await audit(page)).toEqual([])
  await dialog.getByRole('link', { name: 'what it saw, and why it acted' }).click()
  await page.waitForURL(/\/traces\/[0-9a-f]{32}\?span=/)
  await page.context().close()
})

test('the waiting network block is approved by keyboard alone, after the page showed what will happen', async () => {
  const { page } = await dashboard.open('/approvals')
  await page.getByRole('region', { name: 'Approval', exact: true }).getByText('block_network', { exact: true }).waitFor()
  await page.keyboard.press('a')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('block_network', { exact: true }).waitFor()
  await dialog.getByText('"198.51.100.0/24"').waitFor()
  expect(await audit(page)).toEqual([])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.keyboard.press('a')
  await dialog.locator('input:focus').waitFor()
  await page.keyboard.type('they attack')
  await page.keyboard.press('Enter')
  await page.getByText('Reason of the decision: they attack').waitFor()
  await page.getByRole('heading', { name: 'The run' }).waitFor()
  await page.getByRole('region', { name: 'Approval', exact: true }).getByText('block_network', { exact: true }).last().waitFor()
  await eventually(async () => {
    const { items } = await ask<{ items: { address: string }[] }>(dashboard.url, '/v1/blocks')
    return items.some(({ address }) => address === '198.51.100.0/24')
  }, 'the network is blocked')
  await page.context().close()
})

test('a dead letter is retried, and an edited copy of it is sent', async () => {
  const { page } = await dashboard.open('/dead-letters')
  const letter = page.getByRole('region', { name: 'Dead letter', exact: true })
  await letter.getByText('division by zero').first().waitFor()
  const before = await letters()
  await letter.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('Retried', { exact: true }).waitFor()
  // It fails again, as a letter of its own.
  await eventually(async () => {
    const found = await letters()
    return found.length === 1 && found[0] !== before[0]
  }, 'the retry has failed')
  await page.reload()
  await letter.getByRole('button', { name: 'Edit a copy' }).click()
  const text = page.getByLabel('Event, as JSON')
  await text.fill('{')
  await page.getByRole('button', { name: 'Send the copy' }).click()
  await page.getByRole('alert').getByText('This is not JSON').waitFor()
  await text.fill('{"type": "http.request", "method": "GET", "path": "/", "headers": {}}')
  await page.getByRole('button', { name: 'Send the copy' }).click()
  await page.getByRole('alert').or(page.getByText('The copy was sent')).first().waitFor()
  expect(await page.getByRole('alert').allTextContents()).toEqual([])
  await eventually(async () => (await letters()).length === 0, 'the letter is discarded')
  await page.getByText('There is no dead letter.').waitFor()
  await page.context().close()
})

const letters = async (): Promise<string[]> => {
  const { items } = await ask<{ items: { id: string }[] }>(dashboard.url, '/v1/dlq')
  return items.map(({ id }) => id)
}

test('a key is shown once, works, and does not after it was revoked', async () => {
  const { page } = await dashboard.open('/keys')
  await page.getByRole('button', { name: 'Create a key' }).click()
  await page.getByLabel('Name').fill('<b>reader</b>\u202e')
  await page.getByLabel('Scopes: patterns').fill('ssh/*')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const key = await page.getByLabel('Key', { exact: true }).inputValue()
  const works = async () => (await fetch(`${dashboard.url}/v1/scopes`, { headers: { authorization: `Bearer ${key}` } })).status
  expect(await works()).toBe(200)
  await page.getByRole('button', { name: 'Done' }).click()
  // The name is shown as text, with the mark that would reverse it spelled out.
  await page.getByText('<b>reader</b>\\u202e').waitFor()
  expect(await page.content()).not.toContain(key)
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('No key was created yet.').waitFor()
  expect(await works()).toBe(401)
  await page.context().close()
})
