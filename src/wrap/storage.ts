import type { Json } from '../skills/json.ts'
import type { SkillState } from '../protocol/skill.ts'
import type { Manifest } from '../skills/manifest.ts'
import type { Journal } from '../skills/runner/ports.ts'
import type { ApprovedRun, RunRecord, RunsPort, SkillUsage } from '../skills/session/ports.ts'
import type { LogStore } from './log.ts'

export type StoredSkill = { manifest: Manifest; state: SkillState }

/** What a tool or a plan gave under a key. */
export type OutputStore = { get(key: string): Promise<Json | undefined>; put(key: string, output: Json): Promise<void> }

export type RunStore = RunsPort & {
  /** Runs that have begun and not ended: those of a process that died among them. */
  unfinished(): readonly RunRecord[]
  usage(skill_id: string): SkillUsage
  recentSuccess(): ReadonlySet<string>
}

/** What Reflex keeps outside of a scope: in memory, or in a file with `reflex/wrap/node`. */
export type Storage = {
  skills: { all(): readonly StoredSkill[]; put(skill: StoredSkill): void }
  journal: Journal
  runs: RunStore
  outputs: OutputStore
  /** `take` gives a parked run once. */
  approvals: { put(run: ApprovedRun): void; take(approval_id: string): ApprovedRun | null; all(): readonly ApprovedRun[] }
  log: LogStore
  close(): void
}
