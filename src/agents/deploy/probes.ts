type Window = 'open' | 'closed'

/** Hours of a day in UTC, and days from Sunday on, 0 to 6. What is not listed here is closed. */
const windows: Readonly<Record<string, { days: readonly number[]; from: number; to: number }>> = {
  staging: { days: [0, 1, 2, 3, 4, 5, 6], from: 0, to: 24 },
  production: { days: [1, 2, 3, 4], from: 8, to: 16 },
}

/** Whether deployments to an environment are allowed at that time. */
export function deployWindow(environment: unknown, now: Date): Window {
  const window = typeof environment === 'string' && Object.hasOwn(windows, environment) ? windows[environment] : undefined
  if (!window) return 'closed'
  const hour = now.getUTCHours()
  return window.days.includes(now.getUTCDay()) && hour >= window.from && hour < window.to ? 'open' : 'closed'
}

/** `REGISTRY/REPOSITORY:TAG` or `…@sha256:DIGEST`: the last part says which version runs. */
const PINNED = /(?::(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/

/** An image that may be another one tomorrow is a high risk: nobody could say what runs, nor go back to it. */
export function riskScan(args: unknown): 'high' | 'low' {
  const image = typeof args === 'object' && args !== null && 'image_tag' in args ? args.image_tag : null
  const name = typeof image === 'string' ? (image.split('/').at(-1) ?? '') : ''
  return PINNED.test(name) ? 'low' : 'high'
}
