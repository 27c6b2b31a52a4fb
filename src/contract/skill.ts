import { z } from 'zod'

/** `candidate`: registered, not run until someone activates it. `active`: shown to models and run. `deprecated`: run no more. */
export const skillStates = ['candidate', 'active', 'deprecated'] as const
export const skillState = z.enum(skillStates)
export type SkillState = z.infer<typeof skillState>

/** A candidate is what nobody has judged yet, so that nothing becomes one again. What was deprecated may come back, to roll back to it. */
const following: Record<SkillState, readonly SkillState[]> = {
  candidate: ['active', 'deprecated'],
  active: ['deprecated'],
  deprecated: ['active'],
}
export const statesAfter = (state: SkillState): readonly SkillState[] => following[state]
export const statesBefore = (state: SkillState): SkillState[] => skillStates.filter((before) => following[before].includes(state))

/**
 * Who may read a version's manifest. `project`: keys whose scopes overlap with those of its owner. `org`:
 * every key of the deployment. Either way it runs only in the scopes of its owner.
 */
export const skillSharing = ['project', 'org'] as const
export type SkillSharing = (typeof skillSharing)[number]

/** Who registered a version: a key's name, or the agent of a scope, which is then named. */
export type SkillProvenance = { by: string; scope: string | null }

/** A manifest as it was parsed when it was registered. Whoever runs it parses it again: the schema may have changed since. */
export type StoredManifest = {
  id: string
  version: string
  scope?: SkillSharing | undefined
  description?: string | undefined
} & Record<string, unknown>

/**
 * One immutable version of a skill: `manifest` and its `hash` never change, `state` does. `owner`
 * is the name of the key that made it, for people. `owner_id` is whose it is: that key's id; both
 * are `scope:NAME` for what the agent of a scope made. `scopes` are the patterns that the owner may
 * touch, and nowhere else is it shown or run. Times in ms.
 */
export type SkillVersion = {
  id: string
  version: string
  hash: string
  owner: string
  owner_id: string
  scopes: string[]
  manifest: StoredManifest
  state: SkillState
  /** Why it is in this state, where it did not get there by its registration. */
  state_reason: string | null
  state_at: number
  provenance: SkillProvenance
  created_at: number
}

/** A version that became active, or was and is no more: then `manifest` is null. */
export type SkillChange = { id: string; version: string; hash: string; manifest: StoredManifest | null }

/**
 * What changed since a revision, in order. A copy that has applied the changes is at `revision`; `more` is left to ask for from there. `restart`: the
 * registry is older than the revision that was asked for, as after a restored backup, and the changes are all there are: the copy is emptied first.
 */
export type SkillChanges = { changes: SkillChange[]; revision: number; more: boolean; restart?: boolean }
