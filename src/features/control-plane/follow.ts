import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import { readControlPlane, writeControlPlane, type ControlPlaneState, heldVersions } from './store/control-plane.ts'
import { storeOf } from '../../store/store.ts'
import { controlPlaneOf, type ControlPlane, type ControlPlaneVariables } from './client/client.ts'
import { CONTROL_PLANE } from '../../contract/policy.ts'
import type { FeedItem } from './contract/skill-feed.ts'
import { manifestOf } from './feed-item.ts'
import { registerSkill, skills } from '../../artifacts/kinds.ts'
import { type SkillAggregate, type Telemetry, MOST_TELEMETRY_SKILLS } from './contract/telemetry.ts'
import { bucketStart, bucketSteps, OTHER_LABEL } from '../statistics/contract/statistics.ts'
import { percentile } from '../../reflexes/metrics.ts'
import { sumStatistics, type Sum } from '../statistics/store/query.ts'

type Variables = ControlPlaneVariables & { DB: D1Database }

/**
 * Takes the skills of the control plane and reports on those that ran, from the cron. Safe beside
 * another run. While the control plane is away, the registry keeps what it has.
 */
export async function followControlPlane(env: Variables, now: number): Promise<void> {
  const client = controlPlaneOf(env)
  if (!client) return
  const db = storeOf(env)
  const known = await readControlPlane(db)
  const state = known ?? nothingKnown()
  const next = await followed(db, { client, state, now })
  const was_away = state.failing_since !== null
  const is_away = next.failing_since !== null
  if (!was_away && is_away) warn({ message: 'the control plane is away; using the skills that came from it', error: next.error ?? '' })
  if (was_away && !is_away) warn({ message: 'the control plane answers again', away_since: state.failing_since })
  if (!known || changes(state, next)) await writeControlPlane(db, next)
}

type Followed = { client: ControlPlane; state: ControlPlaneState; now: number }

async function followed(db: D1Database, { client, state, now }: Followed): Promise<ControlPlaneState> {
  let next = state
  try {
    const feed = JSON.stringify([client.url, client.project ?? null])
    const at = { feed, revision: feed === state.feed ? state.revision : 0, skipped: state.skipped }
    next = { ...next, ...(await takeSkills({ db, client, now }, at)) }
    next = { ...next, reported_until: await reportSkills({ db, client, name: state.client, now }, state.reported_until) }
    return { ...next, synced_at: now, failing_since: null, error: null }
  } catch (error) {
    return { ...next, failing_since: state.failing_since ?? now, error: messageOf(error).slice(0, 500) }
  }
}

const nothingKnown = (): ControlPlaneState => ({
  client: crypto.randomUUID(),
  feed: '',
  revision: 0,
  synced_at: null,
  failing_since: null,
  error: null,
  skipped: {},
  reported_until: null,
})

/** The interval at which the time of the last contact is written if nothing else changed. */
const CONTACT_MS = 300_000

function changes(before: ControlPlaneState, after: ControlPlaneState): boolean {
  const facts = ({ synced_at: _synced_at, ...rest }: ControlPlaneState): string => JSON.stringify(rest)
  return facts(before) !== facts(after) || (after.synced_at ?? 0) - (before.synced_at ?? 0) >= CONTACT_MS
}

/** Pages of one run. The next run continues. */
const MOST_PAGES = 10
const MOST_WHOLE_PAGES = 200
const MOST_SKIPPED = 100
const LONGEST_REASON = 300

const WITHDRAWN = 'withdrawn by the control plane'

type FeedPlace = { feed: string; revision: number; skipped: Record<string, string> }
type TakeSkillsParts = { db: D1Database; client: Pick<ControlPlane, 'skills'>; now: number }

/**
 * Follows the feed from `at`. The registry receives new versions, and those that were withdrawn are
 * deprecated. From revision 0, and if the control plane's registry is older than `at`, the feed is
 * read as a whole: versions that it lacks are deprecated too.
 */
async function takeSkills(parts: TakeSkillsParts, at: FeedPlace): Promise<FeedPlace> {
  return at.revision === 0 ? takeAll(parts, at.feed) : takeChanges(parts, at)
}

async function takeAll(parts: TakeSkillsParts, feed: string): Promise<FeedPlace> {
  const named = new Set<string>()
  const taken: FeedPlace = { feed, revision: 0, skipped: {} }
  for (let pages = 0; ; pages += 1) {
    if (pages === MOST_WHOLE_PAGES) throw new Error(`the feed of skills has more than ${MOST_WHOLE_PAGES} pages`)
    const page = await parts.client.skills(taken.revision)
    for (const item of page.items) {
      if (item.manifest === null) named.delete(nameOf(item))
      else named.add(nameOf(item))
      await note(parts, taken, item)
    }
    taken.revision = page.revision
    if (!page.more) break
  }
  for (const held of await heldVersions(parts.db, CONTROL_PLANE)) if (!named.has(nameOf(held))) await withdraw(parts, held)
  return taken
}

async function takeChanges(parts: TakeSkillsParts, at: FeedPlace): Promise<FeedPlace> {
  const taken = { ...at, skipped: { ...at.skipped } }
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await parts.client.skills(taken.revision)
    if (page.revision < taken.revision) return takeAll(parts, at.feed)
    for (const item of page.items) await note(parts, taken, item)
    taken.revision = page.revision
    if (!page.more) break
  }
  return taken
}

async function note(parts: TakeSkillsParts, taken: FeedPlace, item: FeedItem): Promise<void> {
  const name = nameOf(item)
  const problem = item.manifest === null ? await withdraw(parts, item) : await take(parts, item)
  if (problem === null) delete taken.skipped[name]
  else if (Object.keys(taken.skipped).length < MOST_SKIPPED) taken.skipped[name] = problem.slice(0, LONGEST_REASON)
}

/** Returns why the version cannot be taken, or null. */
async function take({ db, now }: TakeSkillsParts, item: FeedItem): Promise<string | null> {
  const read = await manifestOf(item)
  if (!read.ok) return read.problem
  const owner = { owner: CONTROL_PLANE, owner_id: CONTROL_PLANE, scopes: ['*'] }
  // The hash of the control plane: defaults that a later version of Reflex adds do not change it.
  const draft = { ...owner, manifest: read.manifest, hash: item.hash, provenance: { by: CONTROL_PLANE, scope: null }, now }
  const registered = await registerSkill(db, draft)
  if (!registered.ok) return registered.detail
  const { id, version, state, state_reason } = registered.version
  if (state === 'active') return null
  // Someone here, or the sweep, has taken it out of use.
  if (state === 'deprecated' && state_reason !== WITHDRAWN)
    return `it was deprecated in this deployment${state_reason ? `: ${state_reason}` : ''}`
  // Its tests ran at the control plane.
  const reason = 'active at the control plane'
  const changed = await skills.setState(db, { id, version, state: 'active', reason, forced: { by: CONTROL_PLANE, reason, at: now }, now })
  return changed.ok ? null : changed.detail
}

async function withdraw({ db, now }: TakeSkillsParts, { id, version }: { id: string; version: string }): Promise<null> {
  const found = await skills.find(db, id, version)
  if (found?.owner_id !== CONTROL_PLANE || found.state === 'deprecated') return null
  await skills.setState(db, { id, version, state: 'deprecated', reason: WITHDRAWN, now })
  return null
}

const nameOf = ({ id, version }: { id: string; version: string }): string => `${id}@${version}`

/** Scopes report an hour to D1 with a delay. */
const DELAY_MS = 300_000
/** Hours of one run. The next run continues. */
const MOST_HOURS = 24
/** Hours older than this are not reported: the control plane was away for too long. */
const OLDEST_MS = 7 * bucketSteps.day
const TURN_KEYS = ['turns', 'turn_cost_usd', 'turn_ms']

type ReportSkillsParts = { db: D1Database; client: Pick<ControlPlane, 'report'>; name: string; now: number }

/** Reports the hours that have ended since `until`, and returns the end of the last one. */
async function reportSkills({ db, client, name, now }: ReportSkillsParts, until: number | null): Promise<number> {
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
