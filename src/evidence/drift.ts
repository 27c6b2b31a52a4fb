import { type Bar, weights } from './e-process.ts'

/** State of a CUSUM test over audited decisions. */
export type Cusum = { audits: number; disagreed: number; sum: number; alarm: boolean }

export const emptyCusum = (): Cusum => ({ audits: 0, disagreed: 0, sum: 0, alarm: false })

/** Audits that pass on average, or more, before an alarm where agreement is still `good`. */
const FALSE_ALARM_AFTER = 2000

/**
 * Page's CUSUM after one more audit: the evidence for `poor` against `good` agreement since the
 * moment at which this evidence is largest. An alarm is permanent. Each factor is an e-value while
 * an audit disagrees at most as often as `good` does, whatever came before it, so that the sum of
 * the evidence from each moment on, less their number, falls on average: of what stays good, at
 * most n in 2,000 raise an alarm within n audits, in any order and however often one looks.
 */
export function countAudit({ audits, disagreed, sum, alarm }: Cusum, agreed: boolean, bar: Bar): Cusum {
  const weight = weights(bar)
  const next = Math.max(0, sum - (agreed ? weight.agreed : weight.disagreed))
  return {
    audits: audits + 1,
    disagreed: disagreed + (agreed ? 0 : 1),
    sum: next,
    alarm: alarm || next >= Math.log(FALSE_ALARM_AFTER),
  }
}

/** The test without one of its disagreements. What came since then still counts. */
export const withoutDisagreement = ({ sum, ...counts }: Cusum, bar: Bar): Cusum => ({
  ...counts,
  disagreed: counts.disagreed - 1,
  sum: Math.max(0, sum + weights(bar).disagreed),
})

/** Agreements in a row that end the doubt which one disagreement raises. */
const RESTORED_BY = 20

/**
 * The agreements that are still needed after audits have disagreed, before what they speak against
 * may act again; 0: there is no doubt. A second disagreement soon after needs more.
 */
export function doubt({ sum }: Pick<Cusum, 'sum'>, bar: Bar): number {
  // With a low bound, fewer agreements than those below outweigh a disagreement.
  if (sum === 0) return 0
  const weight = weights(bar)
  const left = (sum + weight.disagreed) / weight.agreed + RESTORED_BY
  // Sums of rounded weights.
  return Math.max(0, Math.ceil(left - 1e-6))
}

/** The last events' shapes, without labels. `unseen`: ordinals of those that were never seen. */
type ShapeWindow = { events: number; unseen: number[]; alarm: boolean }

export const emptyShapeWindow = (): ShapeWindow => ({ events: 0, unseen: [], alarm: false })

const GUARD = { window: 500, margin: 0.03, deviations: 4 } as const

/** Shapes that a certificate remembers by themselves. */
const MOST_SHAPES = 100

/** Shapes of compared events with their counts. `rare`: events whose shape is not remembered. */
export type TaughtShapes = { taught: Record<string, number>; rare: number }

export const emptyTaught = (): TaughtShapes => ({ taught: {}, rare: 0 })

export function teachShape({ taught, rare }: TaughtShapes, shape: string): TaughtShapes {
  const count = taught[shape] ?? 0
  if (count === 0 && Object.keys(taught).length >= MOST_SHAPES) return { taught, rare: rare + 1 }
  return { taught: { ...taught, [shape]: count + 1 }, rare }
}

/** The share of unseen shapes to expect: the share that was seen once (Good-Turing). */
export function unseenShare({ taught, rare }: TaughtShapes): number {
  const counts = Object.values(taught)
  const all = counts.reduce((sum, count) => sum + count, rare)
  return all === 0 ? 0 : (counts.filter((count) => count === 1).length + rare) / all
}

/**
 * The window after `weight` more events. The alarm starts when clearly more shapes are unseen than
 * `baseline`, the share in the events that the rule was judged on.
 */
export function countShape({ events, unseen, alarm }: ShapeWindow, isUnseen: boolean, baseline: number, weight = 1): ShapeWindow {
  const at = events + weight
  const recent = unseen.filter((ordinal) => ordinal > at - GUARD.window)
  if (isUnseen) recent.push(at)
  const spread = GUARD.deviations * Math.sqrt((baseline * (1 - baseline)) / GUARD.window)
  const most = GUARD.window * (baseline + Math.max(GUARD.margin, spread))
  return { events: at, unseen: alarm ? [] : recent, alarm: alarm || recent.length > most }
}
