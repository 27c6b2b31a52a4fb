import { warn } from '../../base/warn.ts'
import type { Env } from '../../env.ts'
import type { Feature } from '../../feature.ts'
import { countAlerts } from './events/alerts.ts'
import { costRoutes } from './http/cost.ts'
import { prometheusRoutes } from './http/prometheus.ts'
import { read, statisticsRoutes } from './http/statistics.ts'
import { storeOf } from '../../store/store.ts'
import { crowdedOwners, evictSkills, MANY_VERSIONS } from './store/evict-skills.ts'
import { countStatistics } from './scope/statistics.ts'
import { sortStatistics, STATISTICS } from './store/packed.ts'
import { countVersions } from './store/query.ts'
import { forgetStatistics, sumEnded } from './store/sums.ts'
import * as tables from './store/tables.ts'

/** Buckets of statistics; a minute ends three of them. */
const BUCKETS_AT_ONCE = 100
const MINUTE_MS = 60_000

/** Counts of what scopes did, per scope, reflex and skill. */
export const statistics = {
  name: 'statistics',
  inScope: countStatistics,
  operations: [read],
  routes: () => [costRoutes, statisticsRoutes, prometheusRoutes],
  tables,
  health: async (env, patterns) => ({ skills: await skillCounts(storeOf(env), patterns) }),
  alerts: (env, { hour }) => countAlerts(env, hour),
  packs: { name: STATISTICS, sort: sortStatistics },
  sweeps: [
    { name: 'summing statistics', run: (env, now) => sumEnded(storeOf(env), now, BUCKETS_AT_ONCE) },
    { name: 'evicting skills', run: evict },
  ],
  forgets: [{ name: 'statistics', kept: 'by age', forget: forgetStatistics }],
} satisfies Feature

/** Once an hour: it reads all active skills. */
async function evict(env: Env, now: number): Promise<number> {
  if (Math.floor(now / MINUTE_MS) % 60 !== 0) return 0
  const db = storeOf(env)
  const evicted = await evictSkills(db, now)
  for (const { id, version, reason } of evicted) warn({ message: 'a mined skill was deprecated', id, version, reason })
  for (const { owner, active } of await crowdedOwners(db)) {
    const message = `an owner has more than ${MANY_VERSIONS} active versions of skills, and models see five at a time: deprecate some`
    warn({ message, owner, active })
  }
  return evicted.length
}

/** Versions of skills that the key may read. */
async function skillCounts(db: D1Database, patterns: readonly string[]) {
  const rows = (await countVersions(db, patterns)).filter(({ kind }) => kind === 'skill')
  const active = rows.find(({ state }) => state === 'active')?.versions ?? 0
  const is_crowded = active > MANY_VERSIONS
  const warning = is_crowded ? `More than ${MANY_VERSIONS} are active, and models see five at a time: deprecate some.` : null
  return { active, failed: rows.reduce((sum, { failed }) => sum + failed, 0), warning }
}
