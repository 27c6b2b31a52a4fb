import { CONTROL_PLANE } from '../../contract/policy.ts'
import type { FeedItem } from './contract/skill-feed.ts'
import { manifestOf } from './feed-item.ts'
import { heldVersions } from './store/control-plane.ts'
import type { ControlPlane } from './client/client.ts'
import { registerSkill, skills } from '../../artifacts/kinds.ts'

/** Pages of one run. The next run continues. */
const MOST_PAGES = 10
const MOST_WHOLE_PAGES = 200
const MOST_SKIPPED = 100
const LONGEST_REASON = 300

const WITHDRAWN = 'withdrawn by the control plane'

export type Followed = { feed: string; revision: number; skipped: Record<string, string> }
type TakeSkillsParts = { db: D1Database; client: Pick<ControlPlane, 'skills'>; now: number }

/**
 * Follows the feed from `at`. The registry receives new versions, and those that were withdrawn are
 * deprecated. From revision 0, and if the control plane's registry is older than `at`, the feed is
 * read as a whole: versions that it lacks are deprecated too.
 */
export async function takeSkills(parts: TakeSkillsParts, at: Followed): Promise<Followed> {
  return at.revision === 0 ? takeAll(parts, at.feed) : takeChanges(parts, at)
}

async function takeAll(parts: TakeSkillsParts, feed: string): Promise<Followed> {
  const named = new Set<string>()
  const taken: Followed = { feed, revision: 0, skipped: {} }
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

async function takeChanges(parts: TakeSkillsParts, at: Followed): Promise<Followed> {
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

async function note(parts: TakeSkillsParts, taken: Followed, item: FeedItem): Promise<void> {
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
