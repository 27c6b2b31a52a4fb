import { counted } from '../../../src/base/amounts.ts'

export { counted }
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const share = new Intl.NumberFormat('en', { maximumSignificantDigits: 3, maximumFractionDigits: 2, roundingPriority: 'lessPrecision' })
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

type Value = number | null | undefined
const NOTHING = '–'

export const count = (value: Value): string => (value === null || value === undefined ? NOTHING : whole.format(value))
/** 12,345 as 12.3K. */
export const compact = (value: Value): string =>
  value === null || value === undefined ? NOTHING : (Math.abs(value) < 1000 ? small : short).format(value)
export const percent = (value: Value): string =>
  value === null || value === undefined ? NOTHING : `${value > 0 && value < 0.00005 ? '<0.01' : share.format(value * 100)} %`
export function usd(value: Value): string {
  if (value === null || value === undefined) return NOTHING
  return `$${value !== 0 && Math.abs(value) < 0.995 ? small.format(value) : value.toFixed(2)}`
}
/** An amount of the market's money. */
export const scrip = (amount: Value): string => (amount === null || amount === undefined ? NOTHING : `${count(amount)} scrip`)
/** A sum that leaves out calls whose price is unknown says how many those are. */
export function money(sum: number, unpriced: number): string {
  if (unpriced === 0) return usd(sum)
  return sum === 0 ? `price unknown (${counted(unpriced, 'call')})` : `${usd(sum)} + ${counted(unpriced, 'call')} of unknown price`
}
export const bytes = (value: number): string => {
  if (value < 1000) return `${value} B`
  const [unit, length] = value < 1e6 ? ['kB', 1e3] : value < 1e9 ? ['MB', 1e6] : ['GB', 1e9]
  return `${small.format(value / length)} ${unit}`
}
