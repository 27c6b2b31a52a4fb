import type { Json } from '../base/json.ts'
import type { SkillState } from '../contract/skill.ts'
import type { Manifest } from '../skills/manifest/manifest.ts'
import type { Journal, Phase, StepEnd } from '../skills/runner/ports.ts'
import type { ApprovedRun, RunEnd, RunRecord, RunsPort, SkillUsage } from '../skills/session/ports.ts'
import type { LogStore } from './log.ts'

export type StoredSkill = { manifest: Manifest; state: SkillState }

/** What a tool or a plan gave under a key. */
export type OutputStore = { get(key: string): Promise<Json | undefined>; put(key: string, output: Json): Promise<void> }

/** What is told of an end is in the log, which is another store. */
export type JournalStore = Omit<Journal, 'end'> & {
  end(run_id: string, place: { phase: Phase; index: number }, end: StepEnd): Promise<void>
}

export type RunStore = Omit<RunsPort, 'end'> & {
  end(run_id: string, end: Pick<RunEnd, 'skill_id' | 'status' | 'ended_at'>): Promise<void>
  /** Runs that have begun and not ended: those of a process that died among them. */
  unfinished(): readonly RunRecord[]
  usage(skill_id: string): SkillUsage
  recentSuccess(): ReadonlySet<string>
}

/**
 * Parked runs. An approved one stays until `runs.begin` has its record, which takes it out in the same write: a process that dies before finds it again, and
 * one that dies after resumes the run.
 */
export type ApprovalStore = {
  put(run: ApprovedRun): void
  /** Gives a waiting run once. */
  approve(approval_id: string): ApprovedRun | null
  /** Those that nobody has decided on. */
  waiting(): readonly ApprovedRun[]
  /** Those that were approved and have not begun. */
  approved(): readonly ApprovedRun[]
  /** Whether it was there. */
  remove(approval_id: string): boolean
}

/** What Reflex keeps outside of a scope: in memory, or in a file with `reflex/wrap/node`. */
export type Storage = {
  skills: { all(): readonly StoredSkill[]; put(skill: StoredSkill): void }
  journal: JournalStore
  runs: RunStore
  outputs: OutputStore
  approvals: ApprovalStore
  log: LogStore
  close(): void
}
