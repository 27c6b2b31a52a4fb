import type { ReflexMetrics } from '../protocol/reflex-metrics.ts'
import { agreementOf } from './metrics.ts'

/** What a reflex that an agent wrote must have shown in shadow before it acts. */
export const PROMOTION = { compared_fires: 20, agreement: 0.95, failed_runs: 0.01 } as const
/** What takes an active reflex back: so many, and so large a share. */
export const DEMOTION = {
  failed_runs: { at_least: 5, share: 0.2 },
  failed_effects: { at_least: 3, share: 0.2 },
  overruled: { at_least: 2, share: 0.1 },
} as const

/** `missing` says what it still lacks, in words for its owner. */
export type Promotable = { ok: true } | { ok: false; missing: string[] }

export function promotable(metrics: ReflexMetrics): Promotable {
  const { shadow, runs } = metrics
  const compared = shadow.agreed + shadow.disagreed
  const rate = agreementOf(metrics)
  const failed = failedRuns(metrics)
  const missing: string[] = []
  if (compared < PROMOTION.compared_fires) missing.push(`${compared} of ${PROMOTION.compared_fires} fires in shadow that could be compared`)
  if (rate !== null && rate < PROMOTION.agreement) {
    missing.push(`an agreement of ${percent(PROMOTION.agreement)} with what was decided: it is ${percent(rate)}`)
  }
  if (failed > runs * PROMOTION.failed_runs) {
    missing.push(`at most ${percent(PROMOTION.failed_runs)} of runs that end in an error or at a limit: ${failed} of ${runs} did`)
  }
  return missing.length === 0 ? { ok: true } : { ok: false, missing }
}

/** Why a reflex should act no longer, by what it did since it became active; null where it may go on. */
export function shouldDemote(metrics: Pick<ReflexMetrics, 'runs' | 'passed' | 'acted' | 'failed' | 'overruled'>): string | null {
  const { runs, acted, failed, overruled } = metrics
  const failures = failedRuns(metrics)
  if (reaches(DEMOTION.failed_runs, failures, runs)) return `${failures} of ${runs} runs ended in an error or at a limit`
  if (reaches(DEMOTION.failed_effects, failed, acted)) return `the effects of ${failed} of ${acted} actions failed`
  if (reaches(DEMOTION.overruled, overruled, acted)) return `${overruled} of ${acted} actions were overruled`
  return null
}

const failedRuns = ({ passed }: Pick<ReflexMetrics, 'passed'>): number => passed.error + passed.limit + passed.invalid_action

const reaches = ({ at_least, share }: { at_least: number; share: number }, count: number, of: number): boolean =>
  count >= at_least && count >= of * share

/** Rounded down: what lacks a little must not look as if it were enough. */
const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`
