import type { ScopeLicence } from './licence.ts'
import type { Provenance } from './reflex.ts'
import type { SkillProvenance, SkillSharing } from './skill.ts'

/**
 * The kinds of versioned artifacts. `counted`: the registry numbers versions. `by_owner`: a version
 * reaches the scopes its owner covers, not those that refer to it.
 */
export const artifactKinds = {
  reflex: { counted: true, by_owner: false },
  skill: { counted: false, by_owner: true },
} as const
export type ArtifactKind = keyof typeof artifactKinds

/** The stages of a version. Each kind has its own words for them. */
export const stages = ['draft', 'shadow', 'active', 'retired'] as const
export type Stage = (typeof stages)[number]

/** The owner registered the first version and never changes. `scopes`: the patterns it covers. */
export type Owner = { owner: string; owner_id: string; scopes: readonly string[] }

/** A version without its content. Only the state ever changes. Times in ms. */
export type ArtifactHead = {
  id: string
  version: string
  hash: string
  /** The name of a key, or `scope:NAME` for the agent of a scope. */
  owner: string
  owner_id: string
  scopes: string[]
  description: string
  state: Stage
  state_reason: string | null
  state_at: number
  /** True if its scope activated it by proof. */
  by_proof: boolean
  /** Its content is read by its owner, and by admins who cover all of the owner's scopes. */
  sealed: boolean
  /** `project`: for the tenants of its owner. `org`: published to all. */
  sharing: SkillSharing
  provenance: Provenance | SkillProvenance
  created_at: number
}
/** `licences`: those under which a scope runs it that its owner does not cover. */
export type Artifact = ArtifactHead & { content: string; licences?: ScopeLicence[] }

/** `version` is absent if the registry counts. */
export type NewArtifact = Pick<Artifact, 'id' | 'hash' | 'description' | 'state' | 'provenance' | 'content'> &
  Owner & {
    kind: ArtifactKind
    version?: { name: string; precedence: string } | undefined
    sharing: SkillSharing
    sealed?: boolean | undefined
    /** The hash of what runs. */
    program: string
    now: number
  }

/** Sorts counted versions as text. */
export const precedenceOfCount = (version: number): string => String(version).padStart(7, '0')

/** A reference without a version follows the artifact. */
export type Reference = { id: string; version?: number | undefined }

/**
 * The artifacts of a kind that a scope may run: those it refers to, or else those whose owner
 * covers it, and those it has a licence for. Sealed ones only of such owners or with a licence.
 */
export type ArtifactSubscription = { kind: ArtifactKind; scope: string; references?: readonly Reference[] | undefined }

/** `artifact` is null for a version that the scope may no longer use. */
export type ArtifactChange = { id: string; version: string; artifact: Artifact | null }

/**
 * A page of a subscription's changes, up to `revision`. `whole`: empty the copy first. `restart`:
 * likewise, because the registry is older than the copy.
 */
export type ArtifactChanges = { changes: ArtifactChange[]; revision: number; more: boolean; whole?: boolean; restart?: boolean }
