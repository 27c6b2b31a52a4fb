import type { ToolSet } from 'ai'
import type { Seeds } from '../skills/plan/blackboard.ts'
import type { Probes } from '../skills/cel/expression.ts'
import { placeOf, type Place } from '../skills/manifest/compat.ts'
import type { PolicyMode } from '../skills/session/ports.ts'
import type { ParseRequest } from '../skills/plan/slots.ts'
import type { Protocol } from '../skills/model/protocol.ts'
import type { SkillReport } from '../skills/model/settle-intents.ts'
import type { Storage } from './storage.ts'
import type { Redaction } from './tools/tool-log.ts'
import type { ToolPolicies } from './tools/tool-proxy.ts'

export type StandaloneControlPlane = {
  url: string
  key: string
  fetch?: typeof fetch
  /** Patterns of the tools that its skills may use here; all by default. */
  tools?: readonly string[]
  /**
   * The runs of its skills that wait in `approvals`, whatever their manifests say: `effects`, the
   * default, those with a tool that is not `repeatable` by its policy.
   */
  approval?: 'effects' | 'always' | 'never'
}

export type ReflexConfig = {
  project: string
  compat?: { env?: readonly string[]; toolset?: string; repo?: string }
  /** A file is for `createReflex` of `reflex-agents/wrap/node`. */
  storage?: 'memory' | Storage
  /** A deployment whose skills and policy this process follows: docs/control-plane.md. */
  control_plane?: StandaloneControlPlane
  /** Skill cards in the bulletin, up to five. */
  k_cards?: number
  /** The share of what its cues can score that a skill without a `tau` of its own must reach. */
  tau?: number
  redaction?: Redaction
  policy_mode?: PolicyMode
  /** Roles of the turns' principal. Without any, no skill may run. */
  roles?: readonly string[]
  goal_labels?: readonly string[]
  entity_types?: readonly string[]
  /**
   * Manifests as JSON, or `{manifest, state}`; active by default. Throws for an invalid or changed
   * one.
   */
  skills?: readonly unknown[]
  probes?: Probes
  blackboard?: Omit<Seeds, 'override'>
  /** For plans only; no model sees them. Their names may have dots. */
  tools?: ToolSet
  tool_policies?: ToolPolicies
  /** Answers pinned parsers. Defaults to the wrapped model, if a parser is pinned to it. */
  ask?: (request: ParseRequest, signal: AbortSignal | undefined) => Promise<string>
  protocol?: Protocol
  /** Model calls for one call of the wrapped model. */
  max_rounds?: number
  onReport?: (report: SkillReport) => void
  now?: () => number
  wait?: (ms: number, signal: AbortSignal) => Promise<void>
  newId?: () => string
}

export const placeIn = ({ project, compat = {} }: ReflexConfig): Place => placeOf({ ...compat, project })
