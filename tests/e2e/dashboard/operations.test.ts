import { afterAll, beforeAll, expect, test } from 'vitest'
import { FAILING_CONDITION } from '../../../cli/demo/run.ts'
import { ask, eventually, scopePath } from '../api.ts'
import { audit, closePages, startDashboard, type Dashboard } from './harness.ts'

let dashboard: Dashboard
beforeAll(async () => {
  dashboard = await startDashboard({ demo: true, more: { REFLEX_ALERT_DEAD_LETTERS: '1' } })
})
afterAll(() => dashboard?.close())

test('the first page begins with what needs somebody, and the menu counts it; it folds in a narrow window', async () => {
  const { page, faults } = await dashboard.open('/')
  const menu = page.getByRole('navigation', { name: 'Pages' })
  await menu.getByRole('link', { name: /^Now ?2 waiting$/ }).waitFor()
  const first = page.getByRole('main').getByRole('region').first()
  await first.getByText('Dead letters: 1').waitFor()
  await first.getByText('Approvals: 1').waitFor()
  expect(await first.getAttribute('aria-label')).toBe('What needs you')
  // A column of the chart leads to what happened in its time.
  const column = page.getByRole('region', { name: 'Events, by who decided them' }).locator('figure a').last()
  expect(await column.getAttribute('href')).toMatch(/^\/traces\?since=20.*&until=20/)

  await page.setViewportSize({ width: 390, height: 800 })
  await menu.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: /^Menu/ }).click()
  expect(await audit(page)).toEqual([])
  await menu.getByRole('link', { name: 'Decisions' }).click()
  await page.getByRole('heading', { level: 1, name: 'Reflexes' }).waitFor()
  await menu.waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: /^Menu/ }).click()
  await menu.getByRole('link', { name: 'Skills' }).click()
  await page.getByRole('heading', { level: 1, name: 'Skills' }).waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('the first page names a model that does not answer and tools that fail, and the scope asks the model at once', async () => {
  const { page, faults } = await dashboard.open('/keys')
  const at = new Date(Date.now() - 60_000).toISOString()
  const changed = (path: RegExp, change: (body: object) => object) =>
    page.route(path, async (route) => route.fulfill({ json: change((await (await route.fetch()).json()) as object) }))
  const calls = { scopes_failing: 2, scopes_waiting: 2, asks_at: at, failing_since: at, error: '503 from the provider' }
  await changed(/\/health\/detailed/, (health) => ({
    ...health,
    model_calls: { ...calls, status: 'silent', failures: 3, last_answer_at: null },
  }))
  const series = (total: number) => ({ series: [{ label: 'http.refund', total, points: [] }] })
  await changed(/metric=tool\.failed/, (body) => ({ ...body, ...series(5) }))
  await changed(/metric=tool\.calls/, (body) => ({ ...body, ...series(10) }))
  await page.getByRole('link', { name: /^Now/ }).click()
  const first = page.getByRole('main').getByRole('region').first()
  await first.getByText(/The model does not answer/).waitFor()
  await first.getByText(/3 calls failed since .* the events of 2 wait for it\. It never answered\./).waitFor()
  await page
    .getByRole('region', { name: 'Tools that failed' })
    .getByRole('row', { name: /http\.refund.*5.*50 % of 10/ })
    .waitFor()
  await page.getByRole('link', { name: 'Scopes that wait for the model' }).click()
  await page.waitForURL(/state=model/)

  const waiting_for_model = { since: at, until: new Date(Date.now() + 60_000).toISOString(), tries: 2, detail: '503 from the provider' }
  await changed(/\/v1\/scopes\/ssh%2Fweb-1$/, (state) => ({ ...state, waiting_for_model }))
  await page.goto(`${dashboard.url}/scopes/ssh~web-1`)
  await page.getByText(/The model provider is unavailable since .* 2 turns failed/).waitFor()
  await page.getByRole('button', { name: 'Ask now' }).click()
  // The server knows of no outage.
  await page.getByText('The scope did not wait for the model any more.').waitFor()
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  expect(faults).toEqual([])
  await closePages(page)
})

test('costs are shown by scope, model and reflex, and sorted by the address', async () => {
  const { page, faults } = await dashboard.open('/costs?sort=Scope')
  const scopes = page.getByRole('region', { name: 'Costs by scope' })
  await scopes.getByRole('row', { name: 'ssh/web-1' }).waitFor()
  const order = () => scopes.getByRole('link').allInnerTexts()
  // In one look: the list is loaded again now and then.
  const shown = await order()
  expect(shown).toEqual(shown.toSorted())
  await scopes.getByRole('button', { name: 'Model calls' }).click()
  await page.waitForURL(/sort=-Model\+calls/)
  await scopes.getByRole('columnheader', { name: 'Model calls' }).and(page.locator('[aria-sort=descending]')).waitFor()
  await expect.poll(async () => (await order())[0]).toBe('ssh/web-1')
  await page.getByRole('region', { name: 'Costs by model' }).getByRole('row', { name: 'offline' }).waitFor()
  await page.getByRole('region', { name: 'Costs by reflex' }).getByRole('link', { name: 'ssh-brute-force' }).waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('Ctrl-K finds scopes, pages and traces; other keys move through lists, search, and are explained', async () => {
  const { page, faults } = await dashboard.open('/scopes')
  await page.getByRole('region', { name: 'Scopes' }).getByRole('link', { name: 'ssh/web-1' }).waitFor()
  await page.keyboard.press('j')
  await page.locator('.table tbody a:focus').waitFor()
  await page.keyboard.press('?')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('these keys').waitFor()
  expect(await audit(page)).toEqual([])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await page.keyboard.press('/')
  await page.locator('main input[type=search]:focus').waitFor()
  await page.keyboard.press('Control+k')
  await dialog.getByRole('searchbox').fill('web-1')
  await dialog
    .getByRole('link')
    .first()
    .and(page.getByRole('link', { name: 'scope ssh/web-1' }))
    .waitFor()
  expect(await audit(page)).toEqual([])
  await dialog.getByRole('searchbox').press('Enter')
  await page.getByRole('heading', { level: 1, name: 'ssh/web-1' }).waitFor()
  await page.keyboard.press('Control+k')
  await dialog.getByRole('searchbox').fill('costs')
  await dialog.getByRole('link', { name: 'page Costs' }).click()
  await page.getByRole('heading', { level: 1, name: 'Costs' }).waitFor()
  const description = 'Block the address where line has "root". Learned by rules.'
  const code = 'function reflex(context) { return null }'
  await ask(dashboard.url, '/v1/reflexes', { body: { id: 'learned.block.1', code, description } })
  await page.keyboard.press('Control+k')
  await dialog.getByRole('searchbox').fill('has "root"')
  await dialog.getByRole('link', { name: 'reflex Block the address where line has "root"' }).click()
  await page.getByRole('heading', { level: 1, name: 'Block the address where line has "root"' }).waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('an edited copy of a dead letter is sent in its place', async () => {
  const { page } = await dashboard.open('/dead-letters')
  const letter = page.getByRole('region', { name: 'Dead letter', exact: true })
  await letter.getByText('division by zero').first().waitFor()
  await letter.getByRole('button', { name: 'Edit a copy' }).click()
  const text = page.getByLabel('Event, as JSON')
  expect(await audit(page)).toEqual([])
  await text.fill('{')
  await page.getByRole('button', { name: 'Send the copy' }).click()
  await page.getByRole('alert').getByText('This is not JSON').waitFor()
  await text.fill('{"type": "http.request", "method": "GET", "path": "/", "headers": {}}')
  await page.getByRole('button', { name: 'Send the copy' }).click()
  // The answer replaces what was said of the text before.
  await page.getByText('The copy was sent').waitFor()
  expect(await page.getByRole('alert').allTextContents()).toEqual([])
  await eventually(async () => (await letters()).length === 0, 'the letter is discarded')
  await page.getByText('There is no dead letter.').waitFor()
  await closePages(page)
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
  await page.getByLabel('Expires after days').fill('30')
  await page.getByRole('button', { name: 'Create', exact: true }).click()
  const key = await page.getByLabel('Key', { exact: true }).inputValue()
  expect(await audit(page)).toEqual([])
  const works = async () => (await fetch(`${dashboard.url}/v1/scopes`, { headers: { authorization: `Bearer ${key}` } })).status
  expect(await works()).toBe(200)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('region', { name: 'Keys' }).getByRole('columnheader', { name: 'Last used' }).waitFor()
  const [made] = (await ask<{ items: { expires_at: string }[] }>(dashboard.url, '/v1/keys')).items
  expect(Date.parse(made?.expires_at ?? '')).toBeGreaterThan(Date.now() + 29 * 86_400_000)
  // The name is shown as text, with the mark that would reverse it spelled out.
  await page.getByText('<b>reader</b>\\u202e').waitFor()
  expect(await page.content()).not.toContain(key)
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('No key was created yet.').waitFor()
  expect(await works()).toBe(401)
  await closePages(page)
})

test('what people did is listed, and filtered by the address', async () => {
  const { page, faults } = await dashboard.open('/audit')
  const list = page.getByRole('region', { name: 'Audit' })
  await list.getByRole('row', { name: 'deleteKey' }).first().waitFor()
  await page.getByLabel('Action').fill('createKey')
  await page.getByLabel('Since').fill('2020-01-01T00:00')
  await page.getByRole('button', { name: 'Filter' }).click()
  await list.getByRole('row', { name: 'deleteKey' }).first().waitFor({ state: 'detached' })
  await list.getByRole('row', { name: 'createKey' }).first().waitFor()
  expect(new URL(page.url()).searchParams.get('since')).toMatch(/^20(?:19-12-31|20-01-01)T.*Z$/)
  expect(await page.getByLabel('Since').inputValue()).toBe('2020-01-01T00:00')
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('a filter is saved under a name, which the address and the browser keep, and is forgotten again', async () => {
  const { page, faults } = await dashboard.open('/audit')
  const views = page.getByRole('navigation', { name: 'Saved views' })
  await page.getByLabel('Action').fill('createKey')
  await page.getByRole('button', { name: 'Filter' }).click()
  await views.getByLabel('Name of this view').fill('New keys')
  await views.getByRole('button', { name: 'Save view' }).click()
  await page.waitForURL('**/audit?action=createKey&view=New+keys')

  await page.goto(`${dashboard.url}/audit`)
  await views.getByRole('link', { name: 'New keys' }).click()
  await page.waitForURL('**/audit?action=createKey&view=New%20keys')
  expect(await page.getByLabel('Action').inputValue()).toBe('createKey')
  expect(await views.getByRole('link').getAttribute('aria-current')).toBe('page')

  // A shared address has the filter and the name, which its reader may keep.
  await views.getByRole('button', { name: 'Forget this view' }).click()
  await views.getByRole('link').waitFor({ state: 'detached' })
  await page.goto(`${dashboard.url}/audit?action=createKey&view=Shared`)
  expect(await views.getByLabel('Name of this view').inputValue()).toBe('Shared')
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('alerts of the sweep are listed, filtered by the address, and counted by the first page', async () => {
  const scope = 'demo/alerts'
  const settings = { instructions: 'Say what arrives.', when: FAILING_CONDITION, max_attempts: 1 }
  await ask(dashboard.url, scopePath(scope), { method: 'PATCH', body: settings })
  const event = { id: 'for-the-sweep', type: 'ws.message', scope, source: 'test', connection_id: 'c', content: 'hi' }
  await ask(dashboard.url, '/v1/events', { body: event })
  const raised = () => ask<{ items: object[] }>(dashboard.url, '/v1/alerts?name=dead-letters')
  await eventually(async () => (await raised()).items.length > 0, 'the sweep has found the dead letter')
  const { page, faults } = await dashboard.open('/')
  await page.getByRole('region', { name: 'What needs you' }).getByRole('link', { name: 'Alerts' }).click()
  const list = page.getByRole('region', { name: 'Alerts' })
  await list
    .getByRole('row', { name: /new dead letters since/ })
    .first()
    .waitFor()
  expect(await audit(page)).toEqual([])
  await page.getByLabel('Name').fill('tool-failing')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.waitForURL(/name=tool-failing/)
  await page.getByText('No alert matches.').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
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
  await closePages(page)
})

test('dead letters are grouped by error, and a group is retried by the server while its progress is shown', async () => {
  const scope = 'demo/groups'
  const set = (body: object) => ask(dashboard.url, scopePath(scope), { method: 'PATCH', body })
  await set({ instructions: 'Say what arrives.', when: FAILING_CONDITION, max_attempts: 1 })
  for (const id of ['one', 'two']) {
    await ask(dashboard.url, '/v1/events', { body: { id, type: 'ws.message', scope, source: 'test', connection_id: 'c', content: id } })
  }
  const left = async () => (await ask<{ items: object[] }>(dashboard.url, `/v1/dlq?scope=${encodeURIComponent(scope)}`)).items.length
  await eventually(async () => (await left()) === 2, 'the events are dead letters')
  await set({ when: null })
  const { page, faults } = await dashboard.open(`/dead-letters?scope=${encodeURIComponent(scope)}`)
  const groups = page.getByRole('region', { name: 'Groups' })
  await groups.getByRole('link', { name: /division by zero/ }).click()
  await page.waitForURL(/error=/)
  await page.getByLabel('All 2 shown').waitFor()
  expect(await audit(page)).toEqual([])
  await groups.getByRole('button', { name: /^Retry all: .*division by zero/ }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('with their attempts reset').waitFor()
  expect(await audit(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Retry' }).click()
  await page.getByText('2 retried').waitFor()
  await page.getByText('No dead letter matches the filter.').waitFor()
  await eventually(async () => (await left()) === 0, 'both are retried')
  expect(faults).toEqual([])
  await closePages(page)
})

test('an incident leads from its log lines to their traces, is closed with a reason, and a block is lifted', async () => {
  const { page, faults } = await dashboard.open('/incidents?tab=open')
  const card = page.getByRole('article').first()
  await card.locator('summary', { hasText: /^\d+ log lines?$/ }).click()
  await card.getByRole('link', { name: 'Their traces' }).click()
  await page.getByRole('region', { name: 'Activity' }).getByRole('row', { name: 'ssh' }).first().waitFor()
  expect(page.url()).toMatch(/traces\?scope=ssh.*&until=/)
  await page.goBack()
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
  await closePages(page)
})
