import type { Json } from '../base/json.ts'
import type { FoundSkill } from '../skills/manifest/manifest.ts'
import type { Journal, JournalEntry, Phase, StepEnd } from '../skills/runner/ports.ts'
import type { ApprovedRun, RunEnd, RunRecord, RunsPort, SkillUsage } from '../skills/session/ports.ts'
import { memoryLog, memoryRows, type LogStore, type Rows } from './rows.ts'

export type OutputStore = { get(key: string): Promise<Json | undefined>; put(key: string, output: Json): Promise<void> }

/** The log entry of a step's end is not written here: the log is a store of its own. */
type JournalStore = Omit<Journal, 'end'> & {
  end(run_id: string, place: { phase: Phase; index: number }, end: StepEnd): Promise<void>
}

type RunStore = Omit<RunsPort, 'end'> & {
  end(run_id: string, end: Pick<RunEnd, 'skill_id' | 'status' | 'ended_at'>): Promise<void>
  /** Runs that have begun and not ended, including runs of a process that died. */
  unfinished(): readonly RunRecord[]
  usage(skill_id: string): SkillUsage
  recentSuccess(): ReadonlySet<string>
}

/**
 * Parked runs. `runs.begin` removes an approved run in the transaction that stores its record, so
 * that a crash before finds the approval and a crash after resumes the run.
 */
type ApprovalStore = {
  put(run: ApprovedRun): void
  /** Returns a waiting run once, then null. */
  approve(approval_id: string): ApprovedRun | null
  waiting(): readonly ApprovedRun[]
  approved(): readonly ApprovedRun[]
  /** Returns false if the run does not exist. */
  remove(approval_id: string): boolean
}

/** State outside of a scope: in memory, or in a file with `reflex-agents/wrap/node`. */
export type Storage = {
  skills: { all(): readonly FoundSkill[]; put(skill: FoundSkill): void }
  journal: JournalStore
  runs: RunStore
  outputs: OutputStore
  approvals: ApprovalStore
  /** Verdicts and the position of the control plane, and unsent numbers for it. */
  control: ControlStore
  log: LogStore
  close(): void
}

type ControlStore = { get<Value>(key: string): Value | undefined; put(key: string, value: unknown): void }

type Usage = { skill_id: string; last_run_at: number; succeeded: boolean | null }
type Approval = { run: ApprovedRun; approved: boolean }

/** A storage over rows of JSON. `log` is separate, since its writes may be lost in a crash. */
export function storageOver(rows: Rows, log: LogStore, close: () => void = () => {}): Storage {
  return {
    skills: {
      all: () => rows.all<FoundSkill>('skill'),
      put: (skill) => rows.put('skill', `${skill.manifest.id}@${skill.manifest.version}`, skill),
    },
    journal: journalOver(rows),
    runs: runsOver(rows),
    outputs: {
      get: async (key) => rows.get<Json>('output', key),
      put: async (key, output) => rows.put('output', key, output),
    },
    approvals: approvalsOver(rows),
    control: { get: (key) => rows.get('control', key), put: (key, value) => rows.put('control', key, value) },
    log,
    close,
  }
}

function journalOver(rows: Rows): JournalStore {
  const put = (run_id: string, entry: JournalEntry) => rows.put('journal', `${run_id} ${entry.phase} ${entry.index}`, entry, run_id)
  return {
    load: async (run_id) => rows.all<JournalEntry>('journal', run_id),
    begin: async (run_id, begun) => put(run_id, { phase: begun.phase, index: begun.index, begun, end: null }),
    end: async (run_id, { phase, index }, end) => {
      const known = rows.get<JournalEntry>('journal', `${run_id} ${phase} ${index}`)
      put(run_id, { phase, index, begun: known?.begun ?? null, end })
    },
  }
}

function runsOver(rows: Rows): RunStore {
  const usageOf = (skill_id: string) => rows.get<Usage>('usage', skill_id)
  return {
    begin: async (record) =>
      rows.atomic(() => {
        const { run_id, skill_id, started_at, approval_id } = record
        rows.put('run', run_id, record, skill_id)
        rows.put('usage', skill_id, { skill_id, last_run_at: started_at, succeeded: usageOf(skill_id)?.succeeded ?? null })
        if (approval_id !== null) rows.delete('approval', approval_id)
      }),
    // The record and the journal hold secrets, and nothing resumes an ended run.
    end: async (run_id, { skill_id, status, ended_at }) =>
      rows.atomic(() => {
        rows.delete('run', run_id)
        rows.deleteOf('journal', run_id)
        const succeeded = status === 'ok' || status === 'reused'
        rows.put('usage', skill_id, { skill_id, last_run_at: usageOf(skill_id)?.last_run_at ?? ended_at, succeeded })
      }),
    unfinished: () => rows.all<RunRecord>('run'),
    usage: (skill_id) => ({ last_run_at: usageOf(skill_id)?.last_run_at ?? null, running: rows.all('run', skill_id).length }),
    recentSuccess: () => new Set(rows.all<Usage>('usage').flatMap(({ skill_id, succeeded }) => (succeeded === true ? [skill_id] : []))),
  }
}

function approvalsOver(rows: Rows): ApprovalStore {
  const those = (approved: boolean) => rows.all<Approval>('approval').flatMap((one) => (one.approved === approved ? [one.run] : []))
  return {
    put: (run) => rows.put('approval', run.approval_id, { run, approved: false }),
    approve: (approval_id) =>
      rows.atomic(() => {
        const found = rows.get<Approval>('approval', approval_id)
        if (!found || found.approved) return null
        rows.put('approval', approval_id, { run: found.run, approved: true })
        return found.run
      }),
    waiting: () => those(false),
    approved: () => those(true),
    remove: (approval_id) => rows.delete('approval', approval_id),
  }
}

/** Lost with the process; the log keeps its newest entries. */
export const memoryStorage = (): Storage => storageOver(memoryRows(), memoryLog())
