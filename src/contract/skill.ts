import { z } from 'zod'

/** `candidate`: registered, not run until someone activates it. `active`: shown to models and run. `deprecated`: run no more. */
export const skillStates = ['candidate', 'active', 'deprecated'] as const
export const skillState = z.enum(skillStates)
export type SkillState = z.infer<typeof skillState>

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
