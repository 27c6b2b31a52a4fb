import { nearestFirst } from '../base/nearest.ts'
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

type PerTurn<Value> = Value | (() => Value)
type BlackboardConfig = { [Source in Exclude<keyof Seeds, 'override'>]?: PerTurn<NonNullable<Seeds[Source]>> }

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
  /** OpenTelemetry's variables, such as `process.env`: spans go to the collector that they name. */
  otlp?: Readonly<Record<string, string | undefined>>
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
  /** First values of each turn. A function is asked at each turn. */
  blackboard?: BlackboardConfig
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

const SETTINGS: Readonly<Record<keyof ReflexConfig, true>> = {
  project: true,
  compat: true,
  storage: true,
  control_plane: true,
  k_cards: true,
  tau: true,
  redaction: true,
  otlp: true,
  policy_mode: true,
  roles: true,
  goal_labels: true,
  entity_types: true,
  skills: true,
  probes: true,
  blackboard: true,
  tools: true,
  tool_policies: true,
  ask: true,
  protocol: true,
  max_rounds: true,
  onReport: true,
  now: true,
  wait: true,
  newId: true,
}
const PARTS: Readonly<Record<string, readonly string[]>> = {
  compat: ['env', 'toolset', 'repo'],
  redaction: ['fields', 'salt'],
  blackboard: ['settings', 'agent_state', 'probes'],
  control_plane: ['url', 'key', 'fetch', 'tools', 'approval'],
}
/** Numbers with their bounds. */
const BOUNDS = { k_cards: [0, 5], tau: [0, 1], max_rounds: [1, Infinity] } as const

/** Throws for a setting that does not exist, or for a number out of its bounds. */
export function checkConfig(config: ReflexConfig): void {
  demandKnown(config, Object.keys(SETTINGS), '')
  for (const [part, names] of Object.entries(PARTS)) {
    const value: unknown = config[part as keyof ReflexConfig]
    if (typeof value === 'object' && value !== null) demandKnown(value, names, `${part}.`)
  }
  for (const [name, [least, most]] of Object.entries(BOUNDS)) {
    const value = config[name as keyof typeof BOUNDS]
    if (value === undefined || (value >= least && value <= most)) continue
    throw new RangeError(`${name} is ${value}: it is a number from ${least}${most === Infinity ? ' on' : ` to ${most}`}`)
  }
}

function demandKnown(given: object, known: readonly string[], path: string): void {
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue
    const [nearest = '', ...rest] = nearestFirst(name, known)
    const all = rest.toSorted().join(', ')
    throw new TypeError(`there is no setting ${path}${name}: the nearest is ${path}${nearest}; the others are ${all}`)
  }
}
