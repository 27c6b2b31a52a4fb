import { expect, test } from 'vitest'
import type { Story } from '../../examples/market/trade.ts'
import { script } from './command-line.ts'

test('the example learns, sells without a model, buys, spares model calls, pays a royalty, and loses no unit', async () => {
  const { REFLEX_SERVER = '', REFLEX_BUILT = '' } = process.env
  const env = { REFLEX_SERVER, REFLEX_BUILT }
  const { code, stdout, stderr } = await script('examples/market/index.ts', ['--json', '--mails', '1000'], { env })
  expect({ code, stderr }).toMatchObject({ code: 0 })
  const { learned, purchases, resale, accounts, audit, buyer_calls, before } = JSON.parse(stdout) as Story
  expect(learned.length).toBeGreaterThan(0)
  expect(purchases).toHaveLength(learned.length)
  expect(purchases.filter(({ by }) => by.includes('without a model'))).toHaveLength(1)
  for (const { deal, tried } of purchases) {
    expect(deal).toMatchObject({ kind: 'licence', buyer: 'scope:desk/oslo', seller: 'scope:desk/lisbon' })
    expect(JSON.stringify(tried)).not.toContain('function reflex')
  }
  const calls = (part: readonly number[]) => part.reduce((sum, one) => sum + one, 0)
  expect(calls(buyer_calls.slice(-before))).toBeLessThan(calls(buyer_calls.slice(0, before)))
  const { seller, buyer, third, escrow } = accounts
  expect(resale).toMatchObject({ sale: { seller: 'scope:desk/oslo', buyer: 'scope:desk/bergen', price: 100, paid: 100 }, royalty: 20 })
  const licences = purchases.reduce((sum, { deal }) => sum + deal.paid, 0)
  expect(licences).toBeGreaterThan(0)
  expect(seller.balance).toBe(licences + resale.copy.paid + resale.royalty)
  expect(third.balance).toBe(100)
  expect(seller.balance + buyer.balance + third.balance + escrow.balance).toBe(1200)
  expect(audit).toMatchObject({ ok: true, minted: 1200, problems: [] })
})
