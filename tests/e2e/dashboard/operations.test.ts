import { afterAll, beforeAll, expect, test } from 'vitest'
import { FAILING_CONDITION } from '../../../cli/demo/failing-scope.ts'
import { ask, eventually, scopePath } from '../api.ts'
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
  expect(await audit(page)).toEqual([])
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
  expect(await audit(page)).toEqual([])
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

test('many dead letters are discarded and retried at once', async () => {
  const scope = 'demo/bulk'
  const set = (body: object) => ask(dashboard.url, scopePath(scope), { method: 'PATCH', body })
  await set({ instructions: 'Say what arrives.', when: FAILING_CONDITION, max_attempts: 1 })
  for (const id of ['one', 'two', 'three']) {
    await ask(dashboard.url, '/v1/events', { body: { id, type: 'ws.message', scope, source: 'test', connection_id: 'c', content: id } })
  }
  const left = async () => (await ask<{ items: object[] }>(dashboard.url, `/v1/dlq?scope=${encodeURIComponent(scope)}`)).items.length
  await eventually(async () => (await left()) === 3, 'the events are dead letters')
  const { page, faults } = await dashboard.open(`/dead-letters?scope=${encodeURIComponent(scope)}`)
  const dialog = page.getByRole('dialog')
  await page
    .getByLabel(/^Choose ws\.message /)
    .first()
    .check()
  await page.getByRole('button', { name: 'Discard 1 …' }).click()
  await dialog.getByText('They leave this list.').waitFor()
  expect(await audit(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Discard' }).click()
  await page.getByText('1 discarded').waitFor()
  expect(await left()).toBe(2)
  // With another condition they succeed.
  await set({ when: null })
  await page.getByLabel('All 2 shown').check()
  await page.getByRole('button', { name: 'Retry 2 …' }).click()
  await dialog.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('2 retried').waitFor()
  await page.getByText('No dead letter matches the filter.').waitFor()
  await eventually(async () => (await left()) === 0, 'both are retried')
  expect(faults).toEqual([])
  await page.context().close()
})

test('an incident is closed with a reason, and a block is lifted', async () => {
  const { page, faults } = await dashboard.open('/incidents?tab=open')
  const card = page.getByRole('article').first()
  const title = await card.getByRole('heading').textContent()
  await card.getByLabel('Reason').fill('the attack has ended')
  await card.getByRole('button', { name: 'Close the incident' }).click()
  await page.getByText(`${title}: closed`).waitFor()
  await page.getByRole('link', { name: 'Closed' }).click()
  await page.getByRole('article').first().locator('.status', { hasText: 'closed' }).waitFor()
  expect(await audit(page)).toEqual([])
  await page.goto(`${dashboard.url}/incidents`)
  await page.getByRole('button', { name: 'Details of the block of 203.0.113.45' }).click()
  await page.getByRole('button', { name: 'Lift the block' }).click()
  await page.getByText('203.0.113.45 is not blocked any more').waitFor()
  const { items } = await ask<{ items: { address: string }[] }>(dashboard.url, '/v1/blocks')
  expect(items.map(({ address }) => address)).not.toContain('203.0.113.45')
  expect(faults).toEqual([])
  await page.context().close()
})
