import { expect, test } from 'vitest'
import { money as onPage } from '../../../dashboard/src/ui/numbers.ts'
import { money } from '../../../cli/lib/text.ts'

test.each([
  [1.5, 0, '$1.5000', '$1.50'],
  [0, 0, '$0', '$0.00'],
  [0, 728, 'price unknown (728 calls)', 'price unknown (728 calls)'],
  [1.5, 1, '$1.5000 + 1 call of unknown price', '$1.50 + 1 call of unknown price'],
])('a cost of $%s with %s calls of unknown price is never shown as if it were all', (usd, unpriced, written, shown) => {
  expect(money(usd, unpriced)).toBe(written)
  expect(onPage(usd, unpriced)).toBe(shown)
})
