import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, eventually, scopePath, stateOf, wholeLog } from '../api.ts'
import { gate, scriptedModel } from '../scripted-model.ts'
import { audit, closePages, startDashboard, type Dashboard } from './harness.ts'

const model = await scriptedModel(async function* (question) {
  if (question.includes('send three mails')) {
    for (const name of ['ann', 'bob', 'cy']) yield { tool: 'http_mail', input: { to: `${name}@evil.example` } }
    return
  }
  yield `You said ${question}.`
})
let dashboard: Dashboard
beforeAll(async () => {
  dashboard = await startDashboard({ more: model.vars })
})
afterAll(async () => {
  await dashboard?.close()
  model.stop()
})

const message = (content: string, id?: string) => ({ type: 'ws.message', connection_id: 'alice', content, ...(id && { id }) })
const send = (scope: string, ...events: object[]) =>
  ask<unknown>(dashboard.url, `${scopePath(scope)}/events?wait=outcome&timeout_ms=20000`, { body: events })
const change = (scope: string, settings: object) => ask<unknown>(dashboard.url, scopePath(scope), { method: 'PATCH', body: settings })
const pageOf = (scope: string, query = '') => `/scopes/${scope.replaceAll('/', '~')}${query}`
const lines = (page: Page) => page.getByRole('region', { name: 'Log' }).getByRole('listitem')
const live = (page: Page) => page.getByText('Live', { exact: true }).waitFor()
/** An element, as far as these tests use it: the tests do not have the types of the DOM. */
type Box = {
  scrollTop: number
  clientHeight: number
  scrollHeight: number
  textContent: string
  scrollTo: (left: number, top: number) => void
  scrollBy: (left: number, top: number) => void
  getBoundingClientRect: () => { top: number }
  querySelectorAll: (selector: string) => Iterable<Box>
}
const inside = <Result>(element: Locator, look: (box: Box) => Result): Promise<Result> =>
  element.evaluate(look as unknown as (element: HTMLElement | SVGElement) => Result)
/** The kinds that the page shows, without those out of view. */
const shownKinds = (page: Page): Promise<string[]> => lines(page).getByRole('button').allTextContents()

test('somebody finds a scope by a part of its name, and opens it', async () => {
  await Promise.all([send('chat/needle', message('Hello')), send('chat/hay', message('Hello'))])
  const { page, faults } = await dashboard.open('/scopes')
  const rows = page.getByRole('table').getByRole('link')
  for (const name of ['chat/needle', 'chat/hay'])
    await eventually(async () => (await page.getByRole('link', { name }).count()) === 1, `the list has the scope ${name}`)
  await page.getByLabel('Search').fill('NEED')
  await eventually(async () => (await rows.allTextContents()).join() === 'chat/needle', 'the list has the scope alone')
  expect(page.url()).toContain('search=NEED')
  await rows.click()
  await page.getByRole('heading', { level: 1, name: 'chat/needle' }).waitFor()
  await live(page)
  expect(faults).toEqual([])
  await closePages(page)
})

test('somebody scrolls through ten thousand scopes, of which the page holds only those in view', async () => {
  const { page } = await dashboard.open('/keys')
  const total = 10_000
  await page.route(/\/v1\/scopes\?/, async (route) => {
    const after = Number(new URL(route.request().url()).searchParams.get('cursor') ?? 0)
    const items = Array.from({ length: 1000 }, (_, index) => ({
      scope: `many/${String(after + index + 1).padStart(5, '0')}`,
      agent: 'prompted',
      open: index,
      turn_since: null,
      parked: 0,
      asks_model_at: null,
      accepted: index,
      fire_share: 0.5,
      cost_usd: 0.01,
      unpriced_model_calls: 0,
      updated_at: new Date().toISOString(),
    }))
    const next = after + items.length
    await route.fulfill({ json: { items, next_cursor: next < total ? String(next) : null } })
  })
  await page.getByRole('link', { name: 'Scopes', exact: true }).click()
  await page.getByRole('link', { name: 'many/00001' }).waitFor()
  const toEnd = () => inside(page.getByRole('region', { name: 'Scopes' }), (frame) => frame.scrollTo(0, frame.scrollHeight))
  await eventually(async () => {
    await toEnd()
    return (await page.getByRole('link', { name: 'many/10000' }).count()) === 1
  }, 'the last scope is shown')
  await page.getByText('10,000 shown').waitFor()
  expect(await page.getByRole('table').getByRole('row').count()).toBeLessThan(100)
  await closePages(page)
})

test('the log reads as sentences while events happen, and each line leads to its trace', async () => {
  const scope = 'chat/story'
  const { page, faults } = await dashboard.open(pageOf(scope))
  await page.getByText('Nothing has happened in this scope yet.').waitFor()
  await live(page)
  await send(scope, message('Good morning'))
  await page.getByText(/^ws\.message from .* arrived by http$/).waitFor()
  await page.getByText('The agent chat considers 1 event').waitFor()
  await page.getByText('The agent replies “You said Good morning.”').waitFor()
  await page.getByText(/^The event ended as completed\./).waitFor()
  const [{ trace_id }] = (await wholeLog(dashboard.url, scope)) as [{ trace_id: string }]
  expect(await lines(page).first().getByRole('link').getAttribute('href')).toContain(`/traces/${trace_id}?span=`)
  await lines(page).getByRole('button', { name: 'reply-sent' }).click()
  await page
    .getByRole('region', { name: /^Entry \d+$/ })
    .getByText('"You said Good morning."')
    .waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('on a phone, an entry of the log is whole: its time, its kind, its sentence and the link to its trace', async () => {
  const scope = 'chat/phone'
  await send(scope, message('Good morning'))
  const { page } = await dashboard.open(pageOf(scope), { width: 360 })
  const entry = lines(page).filter({ hasText: 'event-accepted' }).first()
  await entry.waitFor()
  const frame = await page.getByRole('region', { name: 'Log' }).boundingBox()
  const edge = (frame?.x ?? 0) + (frame?.width ?? 0)
  for (const part of [entry.locator('time'), entry.getByRole('button'), entry.locator('.text'), entry.getByRole('link')]) {
    const box = await part.boundingBox()
    expect(box!.x + box!.width).toBeLessThanOrEqual(edge)
    expect(box!.width).toBeGreaterThan(20)
  }
  // The list reckons with rows of this height.
  expect((await entry.boundingBox())?.height).toBe(54)
  await closePages(page)
})

test('somebody shows some kinds alone, by a link that can be shared', async () => {
  const scope = 'chat/kinds'
  await send(scope, message('one'))
  await send(scope, message('two'))
  const { page } = await dashboard.open(pageOf(scope))
  await lines(page).first().waitFor()
  await page.getByLabel('Show').selectOption('turn-ended')
  await eventually(async () => (await shownKinds(page)).join() === 'turn-ended,turn-ended', 'only ends of turns are shown')
  expect(page.url()).toContain('kind=turn-ended')
  await live(page)
  await send(scope, message('three'))
  await eventually(async () => (await shownKinds(page)).join() === 'turn-ended,turn-ended,turn-ended', 'the new one is shown, too')
  await page.getByLabel('Show').selectOption('event-ended')
  await eventually(async () => {
    const shown = await shownKinds(page)
    return shown.length === 6 && new Set(shown).size === 2
  }, 'both kinds are shown')
  await page.getByRole('button', { name: 'turn-ended ✕' }).click()
  await eventually(async () => (await shownKinds(page)).join() === 'event-ended,event-ended,event-ended', 'one kind is left out again')
  expect(page.url()).toContain('kind=event-ended')
  await closePages(page)
})

test('an entry of a kind that the page does not know is shown as it is', async () => {
  const scope = 'chat/future'
  await send(scope, message('Hello'))
  const { page, faults } = await dashboard.open('/keys')
  await page.route(/\/log\?/, async (route) => {
    const response = await route.fetch()
    const { items, next_cursor } = (await response.json()) as { items: { seq: number }[]; next_cursor: null }
    const [first] = items
    await route.fulfill({ json: { items: [{ ...first, kind: 'star-aligned', omen: 'good', stars: 7 }, ...items.slice(1)], next_cursor } })
  })
  await page.goto(`${dashboard.url}${pageOf(scope)}`)
  const line = lines(page).filter({ hasText: 'star-aligned' })
  await line.getByText('"omen":"good","stars":7').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('somebody pauses the log: nothing moves until they continue, and then nothing is missing', async () => {
  const scope = 'chat/pause'
  await send(scope, message('one'))
  const { page } = await dashboard.open(pageOf(scope))
  await live(page)
  const before = await shownKinds(page)
  await page.getByRole('button', { name: 'Pause p' }).click()
  await send(scope, message('two'))
  await page.getByText(/newer entries/).waitFor()
  expect(await shownKinds(page)).toEqual(before)
  await page.getByRole('button', { name: 'Continue' }).click()
  const all = await wholeLog(dashboard.url, scope)
  await eventually(async () => (await lines(page).count()) === all.length, 'all entries are shown')
  expect(await shownKinds(page)).toEqual(all.map(({ kind }) => kind))
  await closePages(page)
})

test('who reads older entries keeps their place while new ones arrive, and reaches the first one', async () => {
  const scope = 'chat/place'
  for (let batch = 0; batch < 4; batch += 1)
    await send(scope, ...Array.from({ length: 50 }, (_, index) => message(' ', `${batch}-${index}`)))
  const { page } = await dashboard.open(pageOf(scope))
  await live(page)
  const frame = page.getByRole('region', { name: 'Log' })
  const visible = () =>
    inside(frame, (box) => {
      const { top } = box.getBoundingClientRect()
      const row = [...box.querySelectorAll('li')].find((one) => one.getBoundingClientRect().top >= top)
      return { text: row?.textContent, at: Math.round((row?.getBoundingClientRect().top ?? 0) - top) }
    })
  await inside(frame, (box) => box.scrollBy(0, -1000))
  await page.getByRole('button', { name: 'Go to the newest' }).waitFor()
  const place = await visible()
  await send(scope, message(' ', 'late'))
  await eventually(async () => (await stateOf(dashboard.url, scope)).last_seq > 400, 'the log is longer')
  expect(await visible()).toEqual(place)
  const first = (await wholeLog(dashboard.url, scope))[0] as { at: string }
  await eventually(async () => {
    await inside(frame, (box) => box.scrollTo(0, 0))
    return (await lines(page).first().locator('time').getAttribute('datetime')) === first.at
  }, 'the first entry is shown')
  await page.getByRole('button', { name: 'Go to the newest' }).click()
  const isAtEnd = () => inside(frame, ({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight >= scrollHeight - 1)
  await eventually(isAtEnd, 'the end is shown')
  await closePages(page)
})

test('the server is killed and comes back: the page says so, and the log continues without a gap or a duplicate', async () => {
  const scope = 'chat/away'
  await send(scope, message('before'))
  const { page } = await dashboard.open(pageOf(scope))
  await live(page)
  await dashboard.kill()
  await page.getByText('The server does not answer.').waitFor()
  await page.getByText('The connection is lost and continues by itself').waitFor()
  await dashboard.restart()
  await send(scope, message('after'))
  await live(page)
  const all = await wholeLog(dashboard.url, scope)
  await eventually(async () => (await lines(page).count()) === all.length, 'all entries are shown')
  expect(await shownKinds(page)).toEqual(all.map(({ kind }) => kind))
  expect(await page.getByText('The server does not answer.').isVisible()).toBe(false)
  await closePages(page)
})

const hostile = {
  html: '<img src=x onerror="window.ran=1"><script>window.ran=1</script><b>bold</b>',
  escapes: '\u001b[31mred\u001b[0m \u0007 bell',
  reversed: 'safe \u202Egpj.exe',
  long: 'x'.repeat(90_000),
}

test('hostile content is shown as text in every part of the page', async () => {
  const scope = 'hostile/one'
  const events = Object.values(hostile).map((content) => message(content))
  await send(scope, ...events)
  const { page, faults } = await dashboard.open(pageOf(scope, '?tab=context'))
  const table = page.getByRole('table', { name: '' })
  await table.getByText('<img src=x onerror=').waitFor()
  await table.getByText('\\u202egpj.exe').waitFor()
  await page.getByRole('link', { name: 'Events' }).click()
  for (const [index, content] of Object.values(hostile).toReversed().entries()) {
    await page
      .getByRole('table')
      .getByRole('row')
      .nth(index + 1)
      .click()
    const chosen = page.getByRole('region', { name: 'The chosen event' })
    await chosen
      .getByText(content.startsWith('x') ? 'All 90,000 characters' : 'content:')
      .first()
      .waitFor()
  }
  await page.goto(`${dashboard.url}${pageOf(scope)}`)
  await lines(page).first().waitFor()
  expect(await page.evaluate<boolean>(`'ran' in window || document.querySelector('main img, main script, main bdi b') !== null`)).toBe(
    false,
  )
  expect(await page.evaluate<boolean>(`/[\\u202E\\u001b]/.test(document.body.textContent)`)).toBe(false)
  expect(faults).toEqual([])
  await closePages(page)
})

test('somebody looks at the context as it was after an earlier entry, and returns to now', async () => {
  const scope = 'past/one'
  await send(scope, message('first', 'a'))
  const { last_seq } = await stateOf(dashboard.url, scope)
  await send(scope, message('second', 'b'))
  const { page } = await dashboard.open(pageOf(scope, '?tab=context'))
  await page.getByText('"content":"second"').waitFor()
  const field = page.getByLabel('After entry')
  await field.fill(String(last_seq))
  await send(scope, message('third', 'c'))
  await page.getByText('"content":"third"').waitFor()
  expect(await field.inputValue()).toBe(String(last_seq))
  await field.press('Tab')
  await page.getByRole('button', { name: 'Back to now' }).waitFor()
  await page.getByText('"content":"first"').waitFor()
  await eventually(async () => (await page.getByText('"content":"second"').count()) === 0, 'the later event is not shown')
  expect(page.url()).toContain(`at=${last_seq}`)
  await page.getByRole('slider').press('Home')
  await page.getByText('The context holds no events.').waitFor()
  await page.getByRole('button', { name: 'Back to now' }).click()
  await page.getByText('"content":"second"').waitFor()
  await closePages(page)
})

test('somebody changes settings by the form: it helps, says what is wrong, and restores a default', async () => {
  const scope = 'settings/one'
  const settingsOf = async () => (await ask<{ settings: Record<string, unknown> }>(dashboard.url, scopePath(scope))).settings
  const { page, faults } = await dashboard.open(pageOf(scope, '?tab=settings'))
  await page.getByText('Maximum number of considered events in the DecisionContext. The oldest leave first.').waitFor()
  await page.getByLabel('context_limit').fill('200')
  // Links ask before they leave what is not saved.
  const asked: string[] = []
  page.once('dialog', (question) => {
    asked.push(question.message())
    void question.dismiss()
  })
  await page.getByRole('link', { name: 'Chain' }).click()
  expect(asked).toEqual(['Leave without saving context_limit?'])
  expect(await page.getByLabel('context_limit').inputValue()).toBe('200')
  await page.getByLabel('consumer').selectOption('pull')
  await page.getByLabel('redact').fill('email\nphone')
  await page.getByRole('button', { name: 'Save context_limit, consumer, redact' }).click()
  await page.getByRole('button', { name: 'Nothing to save' }).waitFor()
  expect(await settingsOf()).toMatchObject({ context_limit: 200, consumer: 'pull', redact: ['email', 'phone'] })
  await page.getByRole('button', { name: 'Restore the default of context_limit' }).click()
  await page.getByRole('button', { name: 'Save context_limit' }).click()
  await page.getByRole('button', { name: 'Nothing to save' }).waitFor()
  expect(await settingsOf()).toMatchObject({ context_limit: 1000, consumer: 'pull' })
  await page.getByLabel('when', { exact: true }).fill('total >')
  await page.getByRole('button', { name: 'Save when' }).click()
  await page.getByRole('alert').getByText(/when/).first().waitFor()
  await page.getByRole('button', { name: 'Edit as JSON' }).click()
  await page.getByLabel('A merge patch').fill('{"max_attempts": 7}')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await eventually(async () => (await settingsOf())['max_attempts'] === 7, 'the patch is applied')
  expect(faults).toEqual([])
  await closePages(page)
})

test('somebody sets a timer, sees its next tick, and cancels it', async () => {
  const scope = 'timers/one'
  const { page } = await dashboard.open(pageOf(scope, '?tab=timers'))
  await page.getByText('No timer is set.').waitFor()
  await page.getByLabel('Name').fill('hourly')
  await page.getByLabel('Seconds between ticks').fill('3600')
  await page.getByRole('button', { name: 'Set the timer' }).click()
  await page.getByRole('table').getByText('every 3600 s').waitFor()
  await page.getByRole('button', { name: 'Cancel the timer hourly' }).click()
  await page.getByText('No timer is set.').waitFor()
  await page.getByLabel('It ticks').selectOption('cron')
  await page.getByLabel('Name').fill('never')
  await page.getByLabel('Cron expression, in UTC').fill('0 0 31 2 *')
  await page.getByRole('button', { name: 'Set the timer' }).click()
  await page
    .getByRole('alert')
    .getByText(/never comes due/)
    .first()
    .waitFor()
  expect(await ask(dashboard.url, `${scopePath(scope)}/timers`)).toEqual({ items: [], next_cursor: null })
  await closePages(page)
})

test('somebody sends an event of a recent type: the receipt is shown, then the outcome; what nothing matched says so', async () => {
  const scope = 'chat/send'
  await send(scope, message('an example'))
  const { page } = await dashboard.open(pageOf(scope, '?tab=events'))
  await page.getByRole('button', { name: 'Send an event' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.locator('datalist option').waitFor({ state: 'attached' })
  await dialog.getByLabel('Its fields, as JSON').fill('{"connection_id": "bob", "content": "Is it on?"}')
  await dialog.getByRole('button', { name: 'Send', exact: true }).click()
  await dialog.getByText('Receipt: accepted').waitFor()
  await dialog.getByText('completed').waitFor()
  await dialog.getByText(/^A turn answered/).waitFor()
  await dialog.getByLabel('Its fields, as JSON').fill('{"connection_id": "bob", "content": " "}')
  await dialog.getByRole('button', { name: 'Send', exact: true }).click()
  await dialog.getByText('Nothing matched: no filter of the agent passed it').waitFor()
  await dialog.getByLabel('Its fields, as JSON').fill('{"content": 7}')
  await dialog.getByRole('button', { name: 'Send', exact: true }).click()
  await dialog.getByRole('alert').waitFor()
  await dialog.getByLabel('Close').click()
  await page.getByRole('table').getByText('Nothing matched: no filter of the agent passed it').waitFor()
  expect((await stateOf(dashboard.url, scope)).counters).toMatchObject({ accepted: 3, completed: 2, ignored: 1 })
  await closePages(page)
})

test('somebody cancels the turn in flight, with a reason', async () => {
  const scope = 'chat/cancel'
  const never = gate()
  const { script } = model
  model.script = async function* () {
    yield 'Half '
    await never.opened
  }
  await ask(dashboard.url, `${scopePath(scope)}/events`, { body: message('Hello') })
  const { page } = await dashboard.open(pageOf(scope, '?tab=events'))
  await page.getByRole('button', { name: 'Cancel the turn' }).click()
  await page.getByLabel('Reason').fill('it went astray')
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the turn' }).click()
  await page.getByRole('table').getByText('Cancelled: it went astray').waitFor()
  await eventually(() => page.getByRole('button', { name: 'Cancel the turn' }).isDisabled(), 'no turn is in flight')
  expect((await stateOf(dashboard.url, scope)).counters).toMatchObject({ cancelled: 1, completed: 0 })
  model.script = script
  never.open()
  await closePages(page)
})

test('the chain shows in which order an event is decided on, and which parts act', async () => {
  const scope = 'chat/chain'
  await change(scope, { reflexes: [{ id: 'not-there', cooldown_s: 5 }] })
  const { page } = await dashboard.open(pageOf(scope, '?tab=chain'))
  await page.getByRole('heading', { name: 'Reflex 1: not-there' }).waitFor()
  const stages = await page.locator('.chain h2').allTextContents()
  expect(stages).toEqual(['Filters', 'Reflex 1: not-there', 'Turn'])
  await page.getByText('no version of reflex not-there is active or in shadow').waitFor()
  await closePages(page)
})

test('the tools of a scope are listed with the arguments that decide where a call goes, and who says so', async () => {
  const scope = 'chat/tools'
  const mail = { name: 'http.mail', description: 'Sends mail', method: 'POST', url: 'https://mail.example.com/', body: { to: '{{whom}}' } }
  const told = { ...mail, name: 'http.told', destinations: [] }
  await change(scope, { http_tools: [mail, told], allowed_hosts: ['mail.example.com'] })
  const { page, faults } = await dashboard.open(pageOf(scope, '?tab=tools'))
  const row = (name: string) => page.getByRole('table').getByRole('row').filter({ hasText: name })
  await row('http.mail').getByText('whom (assumed)').waitFor()
  await row('http.told').getByText('none', { exact: true }).waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('somebody approves some of the calls that a turn left to them: only the boxes that stay checked are made', async () => {
  const scope = 'prompted/three-mails'
  const sent: string[] = []
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    sent.push((JSON.parse(await text(request)) as { to: string }).to)
    response.setHeader('content-type', 'application/json').end('{}')
  }
  const mails = createServer((request, response) => void receive(request, response)).listen(0, '127.0.0.1')
  await once(mails, 'listening')
  const host = `127.0.0.1:${(mails.address() as AddressInfo).port}`
  const mail = { name: 'http.mail', description: 'Sends mail', method: 'POST', url: `http://${host}/`, body: { to: '{{to}}' } }
  await change(scope, { agent: 'prompted', instructions: 'Help.', origins: 'ask', http_tools: [mail], allowed_hosts: [host] })
  await send(scope, message('send three mails'))
  const { page, faults } = await dashboard.open('/approvals')
  await page.getByRole('row', { name: scope }).getByText('http.mail', { exact: true }).click()
  await page.getByText('Where the arguments of 3, http.mail come from').waitFor()
  await page.getByRole('button', { name: 'Approve a' }).click()
  const dialog = page.getByRole('dialog')
  const boxes = dialog.getByRole('checkbox')
  await boxes.nth(2).waitFor()
  expect(await boxes.count()).toBe(3)
  for (const box of await boxes.all()) expect(await box.isChecked()).toBe(true)
  await dialog.getByLabel('Make call 2, http.mail').uncheck()
  expect(await audit(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('http.mail: approved').waitFor()
  await eventually(() => Promise.resolve(sent.length === 2), 'two mails are sent')
  expect(sent).toEqual(['ann@evil.example', 'cy@evil.example'])
  const { items } = await ask<{ items: object[] }>(dashboard.url, `/v1/approvals?scope=${encodeURIComponent(scope)}`)
  expect(items).toMatchObject([{ kind: 'calls', status: 'approved', edits: { 2: null } }])
  expect(faults).toEqual([])
  await closePages(page)
  mails.close()
})

test('a scope is paused and resumed, and its reflexes are switched off and on', async () => {
  const scope = 'chat/paused'
  await change(scope, { reflexes: [{ id: 'greet' }] })
  const { page, faults } = await dashboard.open(pageOf(scope, '?tab=chain'))
  await page.getByRole('button', { name: 'Pause scope' }).click()
  await page.getByText('The scope is paused: its events wait').waitFor()
  await page.getByText('the scope is paused', { exact: true }).waitFor()
  expect(await audit(page)).toEqual([])
  await page.getByRole('button', { name: 'Resume scope' }).click()
  await page.getByRole('button', { name: 'Pause scope' }).waitFor()
  await page.getByRole('button', { name: 'Switch greet off' }).click()
  await page.getByText('the setting reflexes_off of this scope names it').waitFor()
  const setting = async () => (await ask<{ settings: { reflexes_off?: string[] } }>(dashboard.url, scopePath(scope))).settings.reflexes_off
  expect(await setting()).toEqual(['greet'])
  await page.getByRole('button', { name: 'Switch all reflexes off' }).click()
  await page.getByRole('button', { name: 'Switch all reflexes on' }).click()
  await page.getByRole('button', { name: 'Switch greet on' }).click()
  await page.getByRole('button', { name: 'Switch greet off' }).waitFor()
  expect(await setting()).toBeUndefined()
  expect(faults).toEqual([])
  await closePages(page)
})

test('a scope says why its budget allows no call of its model', async () => {
  const scope = 'chat/unpriced'
  await send(scope, message('Hello'))
  const { page, faults } = await dashboard.open(pageOf(scope))
  await page.getByText('Cost of the last day').waitFor()
  expect(await page.getByText('No model call').count()).toBe(0)
  await page.route(/\/v1\/scopes\/[^/]+$/, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, json: { ...(await answer.json()), budget_problem: 'the model <b>x</b> has no price' } })
  })
  await page.reload()
  await page.getByText('No model call: the model <b>x</b> has no price').waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('a viewer sees which role each change needs', async () => {
  const scope = 'chat/viewer'
  await send(scope, message('Hello'))
  const { key } = await ask<{ key: string }>(dashboard.url, '/v1/keys', { body: { name: 'eye', roles: ['viewer'], scopes: ['chat/*'] } })
  const { page, faults } = await dashboard.open(pageOf(scope), { key })
  await live(page)
  expect(await page.getByRole('button', { name: 'Cancel the turn' }).isDisabled()).toBe(true)
  await page.getByRole('button', { name: 'Send an event' }).click()
  await page.getByText('Sending events needs the role publisher.').waitFor()
  await page.getByLabel('Close').click()
  await page.getByRole('link', { name: 'Timers' }).click()
  await page.getByText('Timers needs the role operator.').waitFor()
  await page.getByRole('navigation', { name: 'Parts of the scope' }).getByRole('link', { name: 'Settings' }).click()
  await page.getByText('Changing settings needs the role operator.').waitFor()
  expect(await page.getByLabel('context_limit').isDisabled()).toBe(true)
  await page.goto(`${dashboard.url}${pageOf('team/other')}`)
  await page.getByRole('alert').getByText('(403)').first().waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('a log of 500 entries a second is followed to its end, with only the lines in view in the document', async () => {
  const [scope, total, per_burst, burst_ms] = ['chat/fast', 3000, 10, 20]
  const { page, faults } = await dashboard.open('/keys')
  let sent = 0
  await page.routeWebSocket(/\/ws\?/, (socket) => {
    socket.send(JSON.stringify({ type: 'open', seq: 0 }))
    const timer = setInterval(() => {
      for (let index = 0; index < per_burst && sent < total; index += 1)
        socket.send(JSON.stringify({ type: 'log', entries: [entry((sent += 1))] }))
      if (sent === total) clearInterval(timer)
    }, burst_ms)
  })
  await page.goto(`${dashboard.url}${pageOf(scope)}`)
  await live(page)
  await page.evaluate(`window.frames_at = []; requestAnimationFrame(function note(at) { frames_at.push(at); requestAnimationFrame(note) })`)
  await page.getByText(`line ${total} `).waitFor()
  const frames = await page.evaluate<number[]>('frames_at')
  const steps = frames.slice(1).map((at, index) => at - (frames[index] ?? 0))
  const seconds = ((frames.at(-1) ?? 0) - (frames[0] ?? 0)) / 1000
  const slow = steps.filter((step) => step > 25).length
  console.info(
    `live log: ${Math.round(sent / seconds)} entries/s, ${Math.round(steps.length / seconds)} frames/s, ${slow} of ${steps.length} frames late`,
  )
  expect(await lines(page).count()).toBeLessThan(100)
  expect(faults).toEqual([])
  await closePages(page)
})

const entry = (seq: number) => ({
  seq,
  at: new Date().toISOString(),
  kind: 'reply-sent',
  trace_id: 'a'.repeat(32),
  span_id: 'b'.repeat(16),
  parent_id: null,
  event_ids: [String(seq)],
  duration_ms: 3,
  turn_id: null,
  reflex_id: 'echo',
  content: `line ${seq} ${'of the log '.repeat(20)}`,
})
