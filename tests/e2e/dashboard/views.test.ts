import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LocalServer } from '../../../cli/lib/local-server.ts'
import { ask, eventually, scopePath } from '../api.ts'
import { faultsOf, flawsOf, startDashboard, type Dashboard } from './harness.ts'
import { learnedRun, seedDecision, TRIAGE } from './seed.ts'

const SCOPE = 'ssh/web-1'
const AT = '/scopes/ssh~web-1'
const OTHER = 'ssh/db-1'
const REFLEX = 'ssh-brute-force'

let dashboard: Dashboard
/** All views are shown in one page, which is loaded once. */
let page: Page
let faults: string[]
/** The names that stand in the addresses of the table. */
const ids: Record<string, string> = {}

beforeAll(async () => {
  dashboard = await startDashboard({ demo: true, seed })
  ;({ page, faults } = await dashboard.open('/'))
})
afterAll(() => dashboard?.close())

async function seed(server: LocalServer): Promise<void> {
  const { url } = server
  const { code } = await ask<{ code: string }>(url, `/v1/reflexes/${REFLEX}`)
  await ask(url, '/v1/reflexes', { body: { id: REFLEX, code: `${code}\n// The second version.\n`, state: 'shadow' } })
  await ask(url, `${scopePath(SCOPE)}/timers/daily`, { method: 'PUT', body: { cron: '0 6 * * *' } })
  await Promise.all([seedDecision(server), seedMarket(url)])
  const { items } = await ask<{ items: { trace_id: string; span_id: string; skill_id: string }[] }>(
    url,
    `${scopePath(SCOPE)}/log?kind=skill-decided&limit=1000`,
  )
  const held = items.find(({ skill_id }) => skill_id === 'network.block')
  ids['TRACE'] = `${held?.trace_id}?span=${held?.span_id}`
}

/** A deal in force and a disputed contract. */
async function seedMarket(url: string): Promise<void> {
  const post = <Body>(path: string, body: object = {}) => ask<Body>(url, path, { method: 'POST', body })
  const { key } = await post<{ key: string }>('/v1/keys', { name: 'maker', roles: ['operator'], scopes: ['maker/*'] })
  await ask(url, '/v1/reflexes', { key, body: { id: 'quiet', code: 'function reflex(context) {\n  return null\n}\n' } })
  const buyer = `scope:${SCOPE}`
  await post('/v1/ledger/mint', { id: 'mint-1', to: buyer, amount: 50 })
  const listing = { artifact: 'reflex:quiet@1', kind: 'licence', price: 7, seller: 'key:maker', terms: { days: 1 } }
  const { listing_id } = await post<{ listing_id: string }>('/v1/market/listings', listing)
  await post(`/v1/market/listings/${listing_id}/offers`, { id: 'deal-1', buyer })
  await post('/v1/market/deals/deal-1/accept')
  const contract = { proposer: buyer, counterparty: `scope:${OTHER}`, service: `reflex:${REFLEX}`, price_per_invocation: 2, limit: 10 }
  await post('/v1/market/contracts', { id: 'contract-1', ...contract })
  await post('/v1/market/contracts/contract-1/accept')
  await post('/v1/market/contracts/contract-1/dispute', { reason: 'rude', traces: ['a'.repeat(32)] })
  await eventually(async () => (await ask<{ items: object[] }>(url, '/v1/market/listings')).items.length === 1, 'the listing is found')
  ids['LISTING'] = listing_id
}

const click = (name: string | RegExp) => (shown: Page) => shown.getByRole('button', { name }).first().click()
async function chooseAll(shown: Page): Promise<void> {
  await shown.getByLabel(/^All \d+ shown$/).check()
  await click(/^Discard \d+ …$/)(shown)
}
/** The answer of a path with some of its fields replaced, while a view is shown. */
const faked = (path: RegExp, change: (body: object) => object) => async (shown: Page) => {
  await shown.route(path, async (route) => {
    const response = await route.fetch()
    const body = response.ok() ? ((await response.json()) as object) : {}
    await route.fulfill({ status: 200, json: change(body) })
  })
}
const turning = faked(/\/v1\/scopes\/ssh%2Fweb-1$/, (state) => ({ ...state, turn: { since: new Date().toISOString(), events: 1 } }))
const learned = faked(/\/v1\/learn\/runs\/a-run$/, () => learnedRun({ trace_id: 'a'.repeat(32), scope: SCOPE, reflex: REFLEX }))

type View = {
  path: string
  /** A text that is there once the view is. */
  ready: string | RegExp
  /** Before it is shown. */
  prepare?: (shown: Page) => Promise<void>
  /** Opens a dialog, whose name or text is `opened`. */
  open?: (shown: Page) => Promise<void>
  opened?: string | RegExp
}

const views: View[] = [
  { path: '/', ready: 'Turns that failed' },
  {
    path: '/?range=day',
    ready: 'Turns that failed',
    open: (shown) => shown.locator('summary', { hasText: 'admin' }).click(),
    opened: 'Sign out',
  },
  { path: '/scopes', ready: SCOPE },
  { path: AT, ready: /The event ended as completed/ },
  { path: `${AT}?tab=events`, ready: 'log.line' },
  { path: `${AT}?tab=events`, ready: 'log.line', open: click('Send an event'), opened: 'Its fields, as JSON' },
  { path: `${AT}?tab=events`, ready: 'log.line', prepare: turning, open: click('Cancel the turn'), opened: /stay\.$/ },
  { path: `${AT}?tab=context`, ready: 'As it is now' },
  { path: `${AT}?tab=chain`, ready: /^Reflex 1/ },
  { path: `${AT}?tab=timers`, ready: 'cron 0 6 * * *' },
  { path: `${AT}?tab=settings`, ready: 'Find a setting' },
  { path: `${AT}?tab=settings`, ready: 'Find a setting', open: click('Edit as JSON'), opened: 'The settings now' },
  { path: '/traces', ready: /log\.line/ },
  { path: '/traces/TRACE', ready: 'Stages' },
  { path: '/traces/TRACE', ready: 'Stages', open: click('What if …'), opened: 'Decide again' },
  { path: '/traces/TRACE', ready: 'Stages', open: click('Replay'), opened: /decisions are the same/ },
  { path: '/reflexes', ready: REFLEX },
  { path: `/reflexes/${REFLEX}`, ready: /^Fired/ },
  { path: `/reflexes/${REFLEX}?tab=proof`, ready: /certificate/i },
  { path: `/reflexes/${REFLEX}?tab=code`, ready: '// The second version.' },
  { path: `/reflexes/${REFLEX}?tab=code`, ready: '// The second version.', open: click('Promote'), opened: /becomes/ },
  { path: `/reflexes/${REFLEX}?tab=try`, ready: 'Changed code' },
  { path: '/skills', ready: 'network.block' },
  { path: '/skills/network.block', ready: 'is_private_network(network)' },
  { path: '/skills/network.block?tab=activity', ready: /needs approval/ },
  { path: '/skills/network.block?tab=tests', ready: 'Test it', open: click('Test it'), opened: 'Mutations' },
  { path: '/skills/network.block?tab=versions', ready: 'Manifests' },
  { path: '/skills/network.block?tab=propose', ready: 'Dry run' },
  { path: '/learning', ready: 'No scope has learned yet.' },
  { path: '/learning?run=a-run', ready: /97\.5 %/, prepare: learned },
  { path: '/learning?run=a-run', ready: /97\.5 %/, prepare: learned, open: click('Reject'), opened: 'Reason' },
  { path: '/decisions', ready: 'triage' },
  { path: '/decisions', ready: 'triage', open: (shown) => shown.getByLabel('Another scope').fill(TRIAGE), opened: 'Trace' },
  { path: '/market', ready: 'reflex:quiet@1' },
  { path: '/market?listing=LISTING', ready: 'Nothing has been measured yet.' },
  { path: '/market?deal=deal-1', ready: 'Run it there' },
  { path: '/market?contract=contract-1', ready: 'rude' },
  { path: `/market?account=scope:${encodeURIComponent(SCOPE)}`, ready: `reflex:${REFLEX}` },
  { path: '/approvals', ready: 'unblock_network' },
  { path: '/approvals', ready: 'unblock_network', open: (shown) => shown.keyboard.press('a'), opened: /198\.51\.100/ },
  { path: '/dead-letters', ready: 'division by zero' },
  { path: '/dead-letters', ready: 'division by zero', open: click('Edit a copy'), opened: 'Event, as JSON' },
  { path: '/dead-letters', ready: 'division by zero', open: chooseAll, opened: 'They leave this list.' },
  { path: '/incidents', ready: '203.0.113.45' },
  { path: '/incidents', ready: '203.0.113.45', open: click(/^Details of the block/), opened: 'Lift the block' },
  { path: '/incidents?tab=open', ready: 'Close the incident' },
  { path: '/costs', ready: 'By reflex' },
  { path: '/keys', ready: 'You are signed in with' },
  { path: '/audit', ready: 'createKey' },
  { path: '/keys', ready: 'You are signed in with', open: click('Create a key'), opened: 'Further roles, for policies of skills' },
  { path: '/keys', ready: 'You are signed in with', open: click('Revoke'), opened: 'Revoke maker?' },
  { path: '/no/such/page', ready: 'There is no page at this address.' },
]

/** As a link within the page does. */
const go = (path: string) =>
  page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`)
const shows = (text: string | RegExp) => page.locator('main, dialog, header').getByText(text).first().waitFor()

test.each(views.map((view): [string, View] => [`${view.path}${view.opened === undefined ? '' : `, ${String(view.opened)}`}`, view]))(
  'axe finds nothing at %s, in light and dark, narrow and wide',
  async (_, { path, ready, prepare, open, opened }) => {
    await go('/keys')
    await prepare?.(page)
    await go(path.replace(/TRACE|LISTING/, (name) => ids[name] ?? ''))
    await shows(ready)
    await open?.(page)
    if (opened !== undefined) await shows(opened)
    expect(await flawsOf(page)).toEqual([])
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.keyboard.press('Escape')
  },
)

test('axe finds nothing where a key is asked for, and the views had no error', async () => {
  expect(faults).toEqual([])
  const signedOut = await dashboard.browser.newPage()
  const wrong = faultsOf(signedOut, dashboard.url)
  await signedOut.goto(dashboard.url)
  await signedOut.getByLabel('Key', { exact: true }).fill('wrong')
  await signedOut.keyboard.press('Enter')
  await signedOut.getByRole('alert').waitFor()
  expect(await flawsOf(signedOut)).toEqual([])
  expect(wrong).toEqual([])
  await signedOut.close()
})
