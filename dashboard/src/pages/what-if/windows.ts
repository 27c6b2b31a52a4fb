export const windows: Record<string, [text: string, ms: number]> = {
  '1h': ['the last hour', 3_600_000],
  '24h': ['the last day', 86_400_000],
  '7d': ['the last 7 days', 604_800_000],
  '30d': ['the last 30 days', 2_592_000_000],
}

/** The times of a window that ends now. */
export function rangeOf(window: string): { since: string; until: string } {
  const until = Date.now()
  return { since: new Date(until - (windows[window]?.[1] ?? 0)).toISOString(), until: new Date(until).toISOString() }
}
