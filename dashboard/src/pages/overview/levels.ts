import type { z } from 'zod'
import type { statistics, statisticsSummary } from '../../../../src/features/statistics/contract/statistics.ts'
import type { ServerHealth } from '../../api/health.ts'
import { bytes, percent } from '../../ui/numbers.ts'
import { duration } from '../../ui/time.tsx'
import { MOST_BYTES } from './incidents.ts'

export type StatisticsSeries = z.infer<typeof statistics>
export type Summary = z.infer<typeof statisticsSummary>
export type Totals = Readonly<Record<string, number | null>>
type Level = { name: string; value: number | null; target: number; show: (value: number) => string }

const share = (totals: Totals, part: string, whole: string): number | null => {
  const all = totals[whole] ?? 0
  return all === 0 ? null : (totals[part] ?? 0) / all
}

/** Service levels: a value above its target is missed, and null is not measured yet. */
export const levelsOf = (totals: Totals, health: ServerHealth | undefined): Level[] => [
  { name: 'Reflex, 95th percentile', value: totals['reflexes.p95_ms'] ?? null, target: 100, show: duration },
  {
    name: 'Events that became dead letters',
    value: share(totals, 'events.dead_lettered', 'events.accepted'),
    target: 0.001,
    show: percent,
  },
  { name: 'Turns that failed', value: share(totals, 'turns.failed', 'turns'), target: 0.01, show: percent },
  { name: 'Model calls that failed', value: share(totals, 'model.failures', 'model.calls'), target: 0.01, show: percent },
  { name: 'Tool calls that failed', value: share(totals, 'effects.failed', 'effects'), target: 0.01, show: percent },
  { name: 'Audits that disagreed', value: share(totals, 'reflexes.audits_disagreed', 'reflexes.audits'), target: 0.05, show: percent },
  { name: 'Gate, median', value: totals['gate.p50_ms'] ?? null, target: 5, show: duration },
  { name: 'Replayed decisions that differ', value: share(totals, 'replays.changed', 'replays.compared'), target: 0, show: percent },
  { name: 'Size of D1', value: health?.deployment?.database_bytes ?? null, target: 0.8 * MOST_BYTES, show: bytes },
  { name: 'Size of the Ledger', value: health?.ledger?.bytes ?? null, target: 0.8 * MOST_BYTES, show: bytes },
  { name: 'Answer of D1', value: health ? health.database.duration_ms : null, target: 100, show: duration },
]
