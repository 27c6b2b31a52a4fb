import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import { readControlPlane, writeControlPlane, type ControlPlaneState } from './store/control-plane.ts'
import { storeOf } from '../../store/store.ts'
import { controlPlaneOf, type ControlPlane, type ControlPlaneVariables } from './client/client.ts'
import { reportSkills } from './report-skills.ts'
import { takeSkills } from './take-skills.ts'

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
