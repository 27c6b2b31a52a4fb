import { expect, test } from 'vitest'
import type { Story } from '../../examples/market/trade.ts'
import { script } from './command-line.ts'

test('the example learns, sells by a reflex without a model, buys, spares model calls, and no unit is lost', async () => {
  const { code, stdout, stderr } = await script('examples/market/index.ts', ['--json', '--mails', '1400'])
  expect({ code, stderr }).toMatchObject({ code: 0 })
  const { learned, purchases, accounts, audit, buyer_calls, before } = JSON.parse(stdout) as Story
  expect(learned.length).toBeGreaterThan(0)
  expect(purchases).toHaveLength(learned.length)
  expect(purchases.filter(({ by }) => by.includes('without a model'))).toHaveLength(1)
  for (const { deal, tried } of purchases) {
    expect(deal).toMatchObject({ kind: 'licence', buyer: 'scope:desk/oslo', seller: 'scope:desk/lisbon' })
    expect(JSON.stringify(tried)).not.toContain('function reflex')
  }
  const calls = (part: readonly number[]) => part.reduce((sum, one) => sum + one, 0)
  expect(calls(buyer_calls.slice(-before))).toBeLessThan(calls(buyer_calls.slice(0, before)))
  const { seller, buyer, escrow } = accounts
  expect(seller.balance).toBeGreaterThan(0)
  expect(seller.balance + buyer.balance + escrow.balance).toBe(1000)
  expect(audit).toMatchObject({ ok: true, minted: 1000, problems: [] })
})
