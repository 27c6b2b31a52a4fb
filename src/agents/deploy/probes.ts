type Window = 'open' | 'closed'

/** Hours in UTC, and days from Sunday (0) to Saturday (6). Unlisted environments are closed. */
const windows: Readonly<Record<string, { days: readonly number[]; from: number; to: number }>> = {
  staging: { days: [0, 1, 2, 3, 4, 5, 6], from: 0, to: 24 },
  production: { days: [1, 2, 3, 4], from: 8, to: 16 },
}

/** True if deployments to the environment are allowed at that time. */
export function deployWindow(environment: unknown, now: Date): Window {
  const window = typeof environment === 'string' && Object.hasOwn(windows, environment) ? windows[environment] : undefined
  if (!window) return 'closed'
  const hour = now.getUTCHours()
  return window.days.includes(now.getUTCDay()) && hour >= window.from && hour < window.to ? 'open' : 'closed'
}

/** `REGISTRY/REPOSITORY:TAG` or `…@sha256:DIGEST`: the last part identifies the version. */
const PINNED = /(?::(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/

/**
 * An image whose tag can move is a high risk: nobody could say which version runs, or roll back to
 * it.
 */
export function riskScan(args: unknown): 'high' | 'low' {
  const image = typeof args === 'object' && args !== null && 'image_tag' in args ? args.image_tag : null
  const name = typeof image === 'string' ? (image.split('/').at(-1) ?? '') : ''
  return PINNED.test(name) ? 'low' : 'high'
}
