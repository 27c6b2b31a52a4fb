import type { SkillAggregate, Telemetry } from './contract/telemetry.ts'
import { MOST_TELEMETRY_SKILLS } from './contract/telemetry.ts'
import { bucketStart, bucketSteps, OTHER_LABEL } from '../statistics/contract/statistics.ts'
import { percentile } from '../../reflexes/metrics.ts'
import { sumStatistics, type Sum } from '../statistics/store/query.ts'
import type { ControlPlane } from './client/client.ts'

/** Scopes report an hour to D1 with a delay. */
const DELAY_MS = 300_000
/** Hours of one run. The next run continues. */
const MOST_HOURS = 24
/** Hours older than this are not reported: the control plane was away for too long. */
const OLDEST_MS = 7 * bucketSteps.day
const TURN_KEYS = ['turns', 'turn_cost_usd', 'turn_ms']

type ReportSkillsParts = { db: D1Database; client: Pick<ControlPlane, 'report'>; name: string; now: number }

/** Reports the hours that have ended since `until`, and returns the end of the last one. */
export async function reportSkills({ db, client, name, now }: ReportSkillsParts, until: number | null): Promise<number> {
  const end = bucketStart('hour', now - DELAY_MS)
  let at = Math.max(until ?? end, bucketStart('hour', now - OLDEST_MS))
  for (let hours = 0; at < end && hours < MOST_HOURS; hours += 1) {
    const skills = await aggregatesOf(db, at)
    const window = { since: new Date(at).toISOString(), until: new Date(at + bucketSteps.hour).toISOString() }
    if (skills.length > 0) await client.report({ client: name, window, skills } satisfies Telemetry)
    at += bucketSteps.hour
  }
  return at
}

type Numbers = Record<string, number>

async function aggregatesOf(db: D1Database, since: number): Promise<SkillAggregate[]> {
  const hour = { bucket: 'hour', since, until: since + bucketSteps.hour, patterns: ['*'] } as const
  const used = await sumStatistics(db, { ...hour, family: 'skill', keys: ['ok', 'failed', ...TURN_KEYS], by: 'label' })
  if (used.length === 0) return []
  const all = numbersOf(await sumStatistics(db, { ...hour, family: 'scope', keys: TURN_KEYS, by: null }))
  const skills = Map.groupBy(used, ({ series }) => series)
  return [...skills]
    .map(([skill_id, sums]) => aggregateOf(skill_id, numbersOf(sums), all))
    .filter(({ skill_id, calls }) => calls > 0 && skill_id !== OTHER_LABEL)
    .toSorted((one, other) => other.calls - one.calls)
    .slice(0, MOST_TELEMETRY_SKILLS)
}

const numbersOf = (sums: readonly Sum[]): Numbers => Object.fromEntries(sums.map(({ key, value }) => [key, value]))

function aggregateOf(skill_id: string, mine: Numbers, all: Numbers): SkillAggregate {
  const others = Object.fromEntries(Object.entries(all).map(([key, value]) => [key, value - (mine[key] ?? 0)]))
  const change = (of: (numbers: Numbers) => number | null): number | null => {
    const with_it = of(mine)
    const without = of(others)
    return with_it === null || without === null || without <= 0 ? null : with_it / without - 1
  }
  const { ok = 0, failed = 0 } = mine
  return { skill_id, calls: ok + failed, success: ok, delta_cost: change(meanCost), delta_p95: change(p95) }
}

function meanCost({ turns = 0, turn_cost_usd = 0 }: Numbers): number | null {
  return turns > 0 ? turn_cost_usd / turns : null
}

function p95(numbers: Numbers): number | null {
  const samples = Object.entries(numbers).filter(([key, value]) => key.startsWith('turn_ms.') && value > 0)
  const buckets = Object.fromEntries(samples.map(([key, value]) => [key.slice('turn_ms.'.length), value]))
  const count = samples.reduce((sum, [, value]) => sum + value, 0)
  return count === 0 ? null : percentile({ buckets, count }, 0.95)
}
