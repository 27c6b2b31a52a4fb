import type { Json } from '../base/json.ts'
import type { JournalEntry } from '../skills/runner/ports.ts'
import type { ApprovedRun, RunRecord } from '../skills/session/ports.ts'
import type { LogEntry, LogStore } from './log.ts'
import type { ApprovalStore, RunStore, Storage, StoredSkill } from './storage.ts'

/** Nothing here outlives the process; the log keeps its newest entries. */
export function memoryStorage(): Storage {
  const skills = new Map<string, StoredSkill>()
  const journal = new Map<string, Map<string, JournalEntry>>()
  const outputs = new Map<string, Json>()
  const approvals = memoryApprovals()
  const entryAt = (run_id: string, { phase, index }: Pick<JournalEntry, 'phase' | 'index'>) => journal.get(run_id)?.get(`${phase} ${index}`)
  const write = (run_id: string, entry: JournalEntry): Promise<void> => {
    const run = journal.get(run_id) ?? new Map<string, JournalEntry>()
    journal.set(run_id, run.set(`${entry.phase} ${entry.index}`, entry))
    return Promise.resolve()
  }
  return {
    skills: {
      all: () => [...skills.values()],
      put: (skill) => void skills.set(`${skill.manifest.id}@${skill.manifest.version}`, skill),
    },
    journal: {
      load: (run_id) => Promise.resolve([...(journal.get(run_id)?.values() ?? [])]),
      begin: (run_id, begun) => write(run_id, { phase: begun.phase, index: begun.index, begun, end: null }),
      end: (run_id, { phase, index }, end) => write(run_id, { phase, index, begun: entryAt(run_id, { phase, index })?.begun ?? null, end }),
    },
    runs: memoryRuns({ approvals, forget: (run_id) => journal.delete(run_id) }),
    outputs: {
      get: (key) => Promise.resolve(outputs.get(key)),
      put: (key, output) => Promise.resolve(void outputs.set(key, structuredClone(output))),
    },
    approvals,
    log: memoryLog(),
    close: () => undefined,
  }
}

function memoryApprovals(): ApprovalStore {
  const runs = new Map<string, { run: ApprovedRun; approved: boolean }>()
  const those = (approved: boolean) => [...runs.values()].flatMap((one) => (one.approved === approved ? [one.run] : []))
  return {
    put: (run) => void runs.set(run.approval_id, { run, approved: false }),
    approve(approval_id) {
      const parked = runs.get(approval_id)
      if (!parked || parked.approved) return null
      parked.approved = true
      return parked.run
    },
    waiting: () => those(false),
    approved: () => those(true),
    remove: (approval_id) => runs.delete(approval_id),
  }
}

function memoryRuns({ approvals, forget }: { approvals: ApprovalStore; forget: (run_id: string) => void }): RunStore {
  const open = new Map<string, RunRecord>()
  const last = new Map<string, number>()
  const good = new Set<string>()
  return {
    begin(record) {
      open.set(record.run_id, record)
      if (record.approval_id !== null) approvals.remove(record.approval_id)
      last.set(record.skill_id, record.started_at)
      return Promise.resolve()
    },
    end(run_id, { skill_id, status }) {
      open.delete(run_id)
      forget(run_id)
      if (status === 'ok' || status === 'reused') good.add(skill_id)
      else good.delete(skill_id)
      return Promise.resolve()
    },
    unfinished: () => [...open.values()],
    usage(id) {
      const running = [...open.values()].filter(({ skill_id }) => skill_id === id).length
      return { last_run_at: last.get(id) ?? null, running }
    },
    recentSuccess: () => new Set(good),
  }
}

const MOST_ENTRIES = 10_000

function memoryLog(): LogStore {
  let seq = 0
  let entries: LogEntry[] = []
  return {
    append(entry) {
      seq += 1
      entries.push({ ...entry, seq })
      if (entries.length > 2 * MOST_ENTRIES) entries = entries.slice(-MOST_ENTRIES)
    },
    entries: ({ trace_id, after = 0, limit = MOST_ENTRIES } = {}) =>
      entries.filter((entry) => entry.seq > after && (trace_id === undefined || entry.trace_id === trace_id)).slice(0, limit),
  }
}
