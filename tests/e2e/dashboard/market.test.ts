import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LocalServer } from '../../../cli/lib/local-server.ts'
import type { FoundListing } from '../../../src/features/market/contract/listing.ts'
import { agreementsNeeded } from '../../../src/reflexes/promotion.ts'
import { ask, eventually, scopePath } from '../api.ts'
import { scriptedModel } from '../scripted-model.ts'
import { closePages, flawsOf, startDashboard, type Dashboard } from './harness.ts'

const PARIS = 'shop/paris'
const BERLIN = 'shop/berlin'
const NEEDED = agreementsNeeded(0.95)
const CODE = `function reflex(context) {
  return context.event.content === 'thanks' ? { action_type: 'reply', content: 'You said thanks.', consume: true } : null
}
`

const model = await scriptedModel(async function* () {
  yield 'You said thanks.'
})
/** Calls the other shop's reflex, which a contract allows. */
const ASK = `function reflex(context) {
  if (context.event.content !== 'ask') return null
  return { action_type: 'invoke_artifact', artifact_id: 'genesis_contracts', method: 'invoke', args: ['reflex:thanks', { content: 'thanks' }] }
}
`
/** Keys of the seller, who covers one shop, and of a stranger, who covers the other. */
const keys = { maker: '', stranger: '' }
let dashboard: Dashboard

beforeAll(async () => {
  // A model with a known price.
  dashboard = await startDashboard({ seed, more: { ...model.vars, REFLEX_MODEL: 'openai-compatible/gpt-5-mini' } })
})
afterAll(async () => {
  await dashboard?.close()
  model.stop()
})

/** Two shops that answer by a model. One has a reflex that is proven there, and sells licences. */
async function seed({ url }: LocalServer): Promise<void> {
  const keyOf = async (name: string, scope: string) =>
    (await ask<{ key: string }>(url, '/v1/keys', { body: { name, roles: ['operator'], scopes: [scope] } })).key
  keys.maker = await keyOf('maker', PARIS)
  keys.stranger = await keyOf('stranger', BERLIN)
  const set = (scope: string, settings: object) => ask(url, scopePath(scope), { method: 'PATCH', body: settings })
  const shop = { agent: 'prompted', instructions: 'Answer customers.', learning: { min_agreement: 0.95 } }
  await set(BERLIN, { ...shop, market: { opening_grant: 100 }, reflexes: [{ id: 'ask-paris' }] })
  const by_maker = { key: keys.maker }
  await ask(url, '/v1/reflexes', { ...by_maker, body: { id: 'thanks', code: CODE, description: 'Answers thanks', state: 'shadow' } })
  await ask(url, '/v1/reflexes', { key: keys.stranger, body: { id: 'ask-paris', code: ASK, description: 'Asks the other shop' } })
  await set(PARIS, { ...shop, market: {}, reflexes: [{ id: 'thanks' }] })
  await Promise.all([thank(url, BERLIN, 3), thank(url, PARIS, NEEDED)])
  const body = { state: 'active', reason: 'it is proven', force: true }
  await ask(url, '/v1/reflexes/thanks@1/state', { ...by_maker, body })
  const listing = { artifact: 'reflex:thanks@1', kind: 'licence', price: 30, seller: 'key:maker', terms: { fires: 30 } }
  await ask(url, '/v1/market/listings', { ...by_maker, body: listing })
  const isCertified = async () => {
    const { items } = await ask<{ items: FoundListing[] }>(url, '/v1/market/listings')
    return items[0]?.figures.agreement?.state === 'proven'
  }
  await eventually(isCertified, 'the listing has a certificate')
}

type Decided = { outcome: { by?: string } }

/** Sends them one by one: a turn that considered two events would confirm the decision on one. */
async function thank(url: string, scope: string, times: number): Promise<Decided[]> {
  const records: Decided[] = []
  for (let index = 0; index < times; index += 1) records.push(...(await say(url, scope, 'thanks')))
  return records
}

async function say(url: string, scope: string, content: string): Promise<Decided[]> {
  const body = { type: 'ws.message', connection_id: 'ann', content }
  return (await ask<{ events: Decided[] }>(url, `${scopePath(scope)}/events?wait=outcome`, { body })).events
}

const accountPage = (id: string): string => `/market?account=${encodeURIComponent(id)}`

test('a stranger can buy a reflex in the dashboard and read in its trace what it saved', async () => {
  const [{ page, faults }, seller] = await Promise.all([
    dashboard.open('/', { key: keys.stranger }),
    dashboard.open(accountPage('key:maker'), { key: keys.maker }),
  ])
  await page.getByRole('link', { name: 'Settings', exact: true }).click()
  await page.getByRole('link', { name: 'Market' }).click()
  await page.getByLabel('Search listings').fill('thanks')
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByRole('link', { name: 'reflex:thanks@1' }).click()
  await page.getByRole('region', { name: 'Proof' }).getByText('proven', { exact: true }).waitFor()
  await page.getByText(/It agrees with the slow path in at least \d+(\.\d)? % of decisions, certified over \d+\./).waitFor()
  await page.getByLabel('Scope', { exact: true }).fill(BERLIN)
  await page.getByRole('button', { name: 'Evaluate on the last 7 days' }).click()
  await page.getByText(/it fires 3 times: 3 decisions agreed, 0 differed/).waitFor()

  await page.getByLabel('Buyer').fill(`scope:${BERLIN}`)
  await page.getByRole('button', { name: 'Offer 30' }).click()
  await page.getByRole('heading', { level: 1, name: 'Deal' }).waitFor()
  await page.getByText('offered').first().waitFor()
  await seller.page.reload()
  await seller.page.getByRole('region', { name: 'Deals' }).getByRole('link', { name: 'reflex:thanks@1' }).click()
  await seller.page.getByLabel('Reason').fill('welcome')
  await seller.page.getByRole('button', { name: 'Accept' }).click()
  await page.getByText('reflex:thanks@1 in shop/berlin').waitFor()
  expect(await page.getByRole('listitem').filter({ hasText: 'key:maker' }).textContent()).toContain('welcome')

  await page.getByRole('button', { name: 'Run it there' }).click()
  await page.getByText('It is compared with the turns there first').waitFor()
  const compared = await thank(dashboard.url, BERLIN, NEEDED)
  expect(new Set(compared.map(({ outcome }) => outcome.by))).toEqual(new Set(['turn']))
  await page.getByRole('link', { name: BERLIN, exact: true }).click()
  await page.getByRole('button', { name: 'Send an event' }).click()
  await page.getByLabel('Its fields, as JSON').fill('{"connection_id": "ann", "content": "thanks"}')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('dialog').getByText('completed').waitFor()
  await page.getByLabel('Close').click()
  await page.getByRole('listitem').filter({ hasText: 'under the deal' }).getByRole('link').click()
  const licence = page.getByRole('region', { name: 'Licence' })
  await licence.getByText(/^It saved about 1\.0 model calls, 20 tokens and \$0\.0000\d+$/).waitFor()
  await licence.getByText('thanks acted under a licence').waitFor()
  await licence.getByRole('link', { name: 'key:maker' }).waitFor()
  expect(await flawsOf(page)).toEqual([])

  await licence.getByRole('link', { name: 'this deal' }).click()
  await page.getByText('30 scrip: 1 paid, 29 held').waitFor()
  await seller.page.getByRole('link', { name: 'key:maker' }).first().click()
  await seller.page.getByRole('region', { name: 'Deals' }).getByText('sells').waitFor()
  await seller.page.getByRole('region', { name: 'Statement' }).getByText('+1 scrip', { exact: true }).waitFor()
  await page.goto(dashboard.url + accountPage(`scope:${BERLIN}`))
  await page.getByRole('region', { name: 'Statement' }).getByText('−30').first().waitFor()
  await page.getByRole('region', { name: 'Deals' }).getByText('buys').waitFor()
  expect({ bought: faults, sold: seller.faults }).toEqual({ bought: [], sold: [] })
  await closePages(page, seller.page)
})

test('a stranger proposes a contract, the other side accepts it, a call is paid, disputed with its trace, and it is ended', async () => {
  const [{ page, faults }, other] = await Promise.all([
    dashboard.open(accountPage(`scope:${BERLIN}`), { key: keys.stranger }),
    dashboard.open(accountPage(`scope:${PARIS}`), { key: keys.maker }),
  ])
  await page.getByLabel('Service').fill('reflex:thanks')
  await page.getByLabel('Counterparty').fill(`scope:${PARIS}`)
  await page.getByLabel('Price per invocation').fill('2')
  await page.getByLabel('Limit').fill('10')
  await page.getByRole('button', { name: 'Propose a contract' }).click()
  await page.getByRole('heading', { level: 1, name: 'Contract' }).waitFor()
  await page.locator('.status', { hasText: 'proposed' }).waitFor()
  await other.page.reload()
  await other.page.getByRole('region', { name: 'Contracts' }).getByRole('link', { name: 'reflex:thanks' }).click()
  await other.page.getByRole('button', { name: 'Accept' }).click()
  await page.locator('.status', { hasText: 'accepted' }).waitFor()

  // The scope hears of the contract in force a moment later.
  const isPaid = async () => {
    await say(dashboard.url, BERLIN, 'ask')
    const { items } = await ask<{ items: { paid: number }[] }>(
      dashboard.url,
      `/v1/market/contracts?account=scope:${encodeURIComponent(BERLIN)}`,
    )
    return items[0]?.paid === 2
  }
  await eventually(isPaid, 'a call is paid')
  await page.getByText('1 of 10').waitFor()
  await page.getByLabel('Reason').fill('rude')
  await page.getByRole('button', { name: 'Dispute' }).click()
  const disputes = page.getByRole('region', { name: 'Disputes' })
  await disputes.getByText('rude').waitFor()
  await page.getByRole('button', { name: 'End' }).click()
  await page.locator('.status', { hasText: 'ended' }).waitFor()
  await disputes.getByRole('link', { name: /^[0-9a-f]{32}$/ }).click()
  await page.getByRole('button', { name: /^genesis_contracts\.invoke: ok/ }).waitFor()
  expect({ proposed: faults, accepted: other.faults }).toEqual({ proposed: [], accepted: [] })
  await closePages(page, other.page)
})
