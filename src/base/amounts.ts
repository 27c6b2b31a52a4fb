export const count = (value: number): string => Math.round(value).toLocaleString('en-US')

/** `1 line`, `2,000 lines`. */
export const counted = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`
}

export const dollars = (usd: number | null): string => (usd === null ? 'price unknown' : usd === 0 ? '$0' : `$${usd.toFixed(4)}`)

/** A sum that leaves out calls whose price is unknown says how many those are. */
export function money(usd: number, unpriced: number): string {
  if (unpriced === 0) return dollars(usd)
  return usd === 0 ? `price unknown (${counted(unpriced, 'call')})` : `${dollars(usd)} + ${counted(unpriced, 'call')} of unknown price`
}
