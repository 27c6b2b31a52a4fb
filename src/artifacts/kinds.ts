import type { Artifact, Owner, Stage } from '../contract/artifact.ts'
import { reflexStates, type Provenance, type ReflexState, type ReflexVersion } from '../contract/reflex.ts'
import { precedenceOf } from '../base/semantic-version.ts'
import type { SkillProvenance, SkillState, SkillVersion } from '../contract/skill.ts'
import { hashProgram } from '../reflexes/static-check.ts'
import { hashPlan, type Manifest } from '../skills/manifest/manifest.ts'
import { updateSharing } from '../store/artifacts/change.ts'
import { Registry, type Changed, type ArtifactDraft, type RegisterResult, type VersionStateChange } from './registry.ts'

export type ReflexHead = Omit<ReflexVersion, 'code'>
export type ListedSkill = Omit<SkillVersion, 'manifest'> & { description: string }

const every: readonly Stage[] = reflexStates

/** Reflexes use the stages' own names, and move between any two of them. */
export const reflexes = new Registry<ReflexState, number, ReflexHead, ReflexVersion>({
  kind: 'reflex',
  words: reflexStates.map((state) => [state, state]),
  following: { draft: every, shadow: every, active: every, retired: every },
  prefers_active: false,
  quota: null,
  tested: false,
  head: ({ state_at: _state_at, provenance, ...row }) => ({ ...row, provenance: provenance as Provenance }),
  whole: (head, { content }) => ({ ...head, code: content }),
})

/** A skill never becomes a candidate again; a rollback reactivates a deprecated version. */
export const skills = new Registry<SkillState, string, ListedSkill, SkillVersion>({
  kind: 'skill',
  words: [
    ['draft', 'candidate'],
    ['active', 'active'],
    ['retired', 'deprecated'],
  ],
  following: { draft: ['active', 'retired'], shadow: [], active: ['retired'], retired: ['active'] },
  prefers_active: true,
  // Every scope that may run them keeps a copy.
  quota: { versions: 1000, bytes: 16_000_000 },
  tested: true,
  head: ({ by_proof: _by_proof, sharing: _sharing, provenance, ...row }) => ({ ...row, provenance: provenance as SkillProvenance }),
  whole: ({ description: _description, ...head }, { content }) => ({ ...head, manifest: JSON.parse(content) as SkillVersion['manifest'] }),
})

/** Changes of a state: who may make one was checked before. */
export const setReflexState = (db: D1Database, change: VersionStateChange<ReflexState, number>): Promise<Changed<ReflexVersion>> =>
  reflexes.setState(db, change)
export const setSkillState = (db: D1Database, change: VersionStateChange<SkillState, string>): Promise<Changed<SkillVersion>> =>
  skills.setState(db, change)

/** Publishes a version of a reflex to all keys, or takes that back. */
export const shareReflex = (
  db: D1Database,
  { id, version, sharing }: { id: string; version: number; sharing: ReflexVersion['sharing'] },
): Promise<void> => updateSharing(db, { kind: 'reflex', id, version: String(version), sharing })

/** A version as a scope's feed brought it. */
export const presentReflex = (row: Artifact): ReflexVersion => reflexes.present(row)

type Registration = Owner & Pick<ArtifactDraft, 'hash' | 'now' | 'may_take_over' | 'sealed'>
export type NewReflex = Registration &
  Pick<ReflexVersion, 'id' | 'code' | 'description' | 'state' | 'provenance'> & { sharing?: ReflexVersion['sharing'] | undefined }
export type NewSkill = Registration & Pick<SkillVersion, 'provenance'> & { manifest: Manifest }

/** For the tenants of its owner, unless it is published: code quotes what its author knows. */
export async function registerReflex(
  db: D1Database,
  { code, sharing = 'project', ...draft }: NewReflex,
): Promise<RegisterResult<ReflexVersion>> {
  return reflexes.register(db, { ...draft, content: code, sharing, program: await hashProgram(code) })
}

export async function registerSkill(db: D1Database, { manifest, ...draft }: NewSkill): Promise<RegisterResult<SkillVersion>> {
  const { id, version, description = '', scope: sharing } = manifest
  const named = { name: version, precedence: precedenceOf(version) }
  const content = JSON.stringify(manifest)
  return skills.register(db, {
    ...draft,
    id,
    version: named,
    description,
    content,
    sharing,
    state: 'draft',
    program: await hashPlan(manifest),
  })
}
