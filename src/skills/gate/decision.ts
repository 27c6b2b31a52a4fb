import type { ControlPlaneVerdict } from '../../contract/policy.ts'
import type { OriginMode } from '../../contract/origin.ts'
import type { SkillState } from '../../contract/skill.ts'
import type { Blackboard, InputSource } from '../plan/blackboard.ts'
import type { ProbeCall, Probes } from '../cel/expression.ts'
import type { JsonFields } from '../../base/json.ts'
import type { Place } from '../manifest/compat.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { ScoreComponent, ScoreName } from '../bulletin/score.ts'
import type { Question } from '../plan/slots.ts'
import type { Sensitive } from './mask.ts'

/** All that a decision is made from: the same request gives the same decision. Times in ms. */
export type GateRequest = {
  manifest: Manifest
  state: SkillState
  compat: Place
  inputs: JsonFields
  inputs_from: InputSource
  text: string
  /** The text is not the proposer's `why`, as in a turn: a keyword there does not count. */
  why_counts?: false
  goal_labels: readonly string[]
  entity_types: readonly string[]
  blackboard: Blackboard
  tools: readonly string[]
  absent_tools?: Readonly<Record<string, string>>
  recent_success: boolean
  /** Every role of the caller, those that another one implies included. */
  roles: readonly string[]
  last_run_at: number | null
  running: number
  /** The outputs of an earlier run with the same key answer it, so that no pace is kept. */
  answered?: boolean
  /** Someone who may has approved this run. */
  approved?: boolean
  /** A contract names the skill, which says that it is meant: the score is not asked for. */
  named?: boolean
  /** The scope's operators refuse the skill, by the setting `refused_skills`. */
  refused_here?: boolean
  /** The anchors of the scope that the plan touches, by name. */
  anchored?: readonly string[]
  /** Destinations of the plan that no trusted origin names, in sentences. */
  origins?: { mode: OriginMode; said: readonly string[] }
  /** Sentences on what an approved run touches by an edit alone, and its question did not name. */
  unasked?: readonly string[]
  /** The verdict of the control plane, if there is one. */
  control_plane?: ControlPlaneVerdict
  probes?: Probes
  /** A replay's: the probe calls of the decision that it repeats. */
  recorded?: readonly ProbeCall[]
  default_tau_ratio?: number
  now: number
}

export const STAGES = ['compat', 'preconditions', 'score', 'policy'] as const
export type GateStage = (typeof STAGES)[number]

/** `refused`: a stage before the policy failed. `clarify`: only slots are missing. */
export type GateVerdict = 'allow' | 'deny' | 'needs_approval' | 'needs_promotion' | 'refused' | 'clarify'

export type GateCheck = { check: string; passed: boolean; detail: string }
export type StageResult = { stage: GateStage; status: 'passed' | 'failed' | 'not_reached'; checks: GateCheck[] }

/** A change that would let the stage pass. It contains no secret. */
export type Need = { message: string } & (
  | { need: 'compat'; field: keyof Place }
  | { need: 'json' }
  | { need: 'slot'; slot: string; parsable: boolean }
  | { need: 'slot_type'; slot: string; type: string }
  | { need: 'no_such_slot'; slot: string }
  | { need: 'tool'; tool: string }
  | { need: 'data'; path: string }
  | { need: 'invariant'; expression: string; values: { path: string; value: string }[] }
  | { need: 'cooldown'; until: number }
  | { need: 'concurrency'; running: number; max: number }
  | { need: 'score'; short_by: number; cues: ScoreName[] }
  | { need: 'policy_field'; field: string }
  | { need: 'role'; any_of: string[] }
  | { need: 'slot_not_from_model'; slot: string }
  | { need: 'slot_without_secret'; slot: string; looks_like: Sensitive }
  | { need: 'residency'; any_of: string[] }
  | { need: 'not_denied'; expression: string; values: { path: string; value: string }[] }
  | { need: 'state'; state: SkillState }
  | { need: 'promotion' }
  | { need: 'control_plane' }
  | { need: 'not_refused_here' }
  | { need: 'person' }
  | { need: 'approval'; expression: string }
)

export type GateDecision = {
  skill_id: string
  version: string
  verdict: GateVerdict
  /** The stage that refused; null if it is allowed. */
  stage: GateStage | null
  reason: string
  stages: StageResult[]
  /** Null where this stage was not reached. */
  score: { score: number; tau: number; components: ScoreComponent[] } | null
  needs: Need[]
  to_pass: string[]
  /** With the verdict `clarify`: the question for each missing slot. */
  questions: Question[]
  /** The missing slots that a pinned parser may fill. */
  parsable: string[]
  probes: ProbeCall[]
  decided_at: number
}

export type StageOutcome = { checks: GateCheck[]; needs: Need[] }
