import type { Json, JsonFields } from '../../base/json.ts'
import type { Teacher } from '../../contract/certificate.ts'
import type { SenderRole } from '../../contract/principal.ts'
import type { ReflexContext } from '../../reflexes/reflex-context.ts'
import type { TracedAct } from './skills/trace.ts'

export type EpisodePlace = {
  project?: string
  env?: string | readonly string[]
  toolset?: string
  repo?: string
  agent: string
  agent_version: string
}

/**
 * The part of a reflex's context that a decision can depend on. `returned`: the outputs of the acts
 * before a branch, where branches are learned.
 */
export type Saw = Pick<ReflexContext, 'event' | 'recent_events' | 'window' | 'scratch' | 'recent_actions'> & {
  returned?: readonly Json[]
}

/** A context, and what the acts before one returned. */
export type Seen = Saw & { outputs: readonly (Json | undefined)[] }

/**
 * `name`: the tool, the skill, the event's type or the note's key. A reply has the input
 * `{content}`, a note `{value}`.
 */
export type EpisodeAct = TracedAct & { kind: 'tool' | 'reply' | 'skill' | 'emit' | 'note' }

/** A decision of the slow path, with what it was decided from. */
export type Episode = {
  /** The event's id, whose hash draws samples. A later episode of the event replaces it. */
  id: string
  /** In ms. */
  at: number
  trace_id: string
  log_seq: number
  place: EpisodePlace
  teacher: Teacher
  /** The sender of the event: who was authenticated, or else its source. */
  source: string
  /** The role of its key, as far as a setting may trust it. */
  role?: SenderRole
  saw: Saw
  goal?: { text: string; labels: string[] }
  /** As the turn found it: `ctx`, `env`, `work` and `policy`. */
  blackboard?: JsonFields
  /** In order; empty if the decision was to do nothing. */
  acts: EpisodeAct[]
  usage: { model_calls: number; tokens: number; cost_usd: number; duration_ms: number }
  outcome: 'ok' | 'failed' | 'overruled' | 'corrected'
  /** Its events left the context when the turn ended. Unknown for other deciders. */
  left?: boolean
}
