import type { JsonFields } from '../../../base/json.ts'
import type { Refused, Result } from '../../../base/result.ts'
import type { Foreseen } from '../../../contract/certificate.ts'
import type { StoredManifest } from '../../../contract/skill.ts'
import type { CiReport } from '../../../contract/reports/skill-test.ts'
import type { LearningSettings } from './setting.ts'
import type { ProgramWhy } from './why.ts'
import type { EvidencePart, LearnRequest, Mined, ReadPlace, StartedRun, startedBy } from './runs.ts'

/** A version that audits sent back to shadow mode: they disagree since a place in the log. */
export type Drift = { id: string; version: number; since_seq: number }

/** `by`: a name. */
export type LearnStart = LearnRequest & { started_by: (typeof startedBy)[number]; by: string; drifted?: Drift[] }

/** The RPC interface of the Learner, of which each scope has one. */
export interface LearnerApi {
  /** Starts a run. A scope learns once at a time: a second start answers with the running one. */
  start(request: LearnStart): Promise<StartedRun>
  /** The decisions behind a number of a candidate; null if they are no longer kept. */
  evidence(of: { run_id: string; decision: string; part: EvidencePart }): Promise<ReadPlace[] | null>
  /** Runs a learned program to say why. `saw`: JSON of the context. */
  explain(of: { hash: string; code: string; saw: string }): Promise<{ why: ProgramWhy; fuel: number }>
}

/** A reflex that a run has learned, for its scope to register. */
export type LearnedVersion = {
  run_id: string
  /** Names the decision, the same in all scopes. */
  name: string
  code: string
  description: string
  /** Its action, which the agent of the scope must be able to do; null for `ignore`. */
  needs: readonly { kind: 'tool' | 'skill' | 'event' | 'reply'; name: string }[] | null
  /**
   * It begins with calls whose outputs decide how it continues. Later links of the chain do not see
   * its events: a version with further branches takes its place.
   */
  branches?: true
  /** Versions that it replaces, if they are still in shadow mode. */
  replaces: { id: string; version: number }[]
  /** The comparisons that it was judged by before any in shadow mode; null: none. */
  foreseen: Foreseen | null
}
export type Adoption = Result<
  { id: string; version: number; hash: string },
  Refused<'invalid' | 'lacks' | 'too_many' | 'not_owner' | 'other_content' | 'too_many_versions'>
>

/** The tools and roles that skills may use which are mined from the decisions of a scope. */
export type SkillGrounds = {
  tools: [name: string, facts: { repeatable: boolean; inverse: { tool: string; match: readonly string[] } | null }][]
  roles: string[]
} & Pick<LearningSettings, 'mode' | 'min_support' | 'min_agreement'>
/** A skill that a run has mined, for its scope to register with the tests that it passed. */
export type LearnedSkill = {
  run_id: string
  manifest: StoredManifest
  cases: ({ name: string } & JsonFields)[]
  report: CiReport
  mined: Mined
}
export type SkillAdoption = Result<
  { id: string; version: string },
  Refused<'untested' | 'lacks' | 'not_owner' | 'other_content' | 'too_many_versions'>
>
