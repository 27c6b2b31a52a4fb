import { secretsOf } from '../plan/secret-reference.ts'
import { resolveStep, type CompiledCompensation, type StepOutputs } from '../plan/compile.ts'
import { callStep } from './call-step.ts'
import { compensationEntry, type Entries } from './entries.ts'
import type { CompensationReport, JournalEntry, Run, RunEntry, StepEnd } from './ports.ts'
import { hiderOf, keyFor, notBegun } from './run-step.ts'

/** True if the effect must be undone: also if it was cut off or its output was unusable. */
export const mayHaveHappened = ({ status, reason }: StepEnd): boolean =>
  status === 'ok' || status === 'timeout' || status === 'unknown' || reason === 'output'

/** Undoes effects, newest step first, then those of the plan. A failure does not stop the rest. */
export async function compensate(
  run: Run,
  { ends, outputs, entries, told }: { ends: readonly StepEnd[]; outputs: StepOutputs; entries: readonly JournalEntry[]; told: Entries },
): Promise<CompensationReport[]> {
  const happened = ends.map(mayHaveHappened)
  if (!happened.includes(true)) return []
  const due = run.plan.compensation
    .filter(({ undoes }) => undoes === null || happened[undoes] === true)
    .toSorted((left, right) => (right.undoes ?? -1) - (left.undoes ?? -1) || right.index - left.index)
  const reports: CompensationReport[] = []
  for (const entry of due) {
    const known = entries.find(({ phase, index }) => phase === 'compensation' && index === entry.index)
    const undoes = entry.undoes === null ? null : (run.plan.steps[entry.undoes]?.name ?? null)
    const tell = (undone: StepEnd) => compensationEntry(told, entry, { undoes, end: undone })
    const end = known?.end ?? (await undo(run, entry, { outputs, begun: known?.begun != null, tell }))
    reports.push({ index: entry.index, undoes, tool: entry.tool, status: end.status, error: end.error })
  }
  return reports
}

async function undo(
  run: Run,
  entry: CompiledCompensation,
  { outputs, begun, tell }: { outputs: StepOutputs; begun: boolean; tell: (end: StepEnd) => RunEntry },
): Promise<StepEnd> {
  const { ports, run_id, plan } = run
  const place = { phase: 'compensation', index: entry.index } as const
  const idempotence_key = keyFor(run, `undo-${entry.index}`)
  const end = begun && idempotence_key === null ? lost(entry.tool) : await call()
  await ports.journal.end(run_id, place, end, tell(end))
  return end

  async function call(): Promise<StepEnd> {
    const resolved = resolveStep(entry, plan, outputs)
    if (!resolved.ok) return notBegun('failed', 'template', resolved.detail)
    await ports.journal.begin(run_id, { ...place, tool: entry.tool, idempotence_key, at: ports.now() })
    // Neither the plan's budget nor its cancellation stops what puts things right.
    return callStep({
      ports,
      tool: entry.tool,
      args: resolved.args,
      timeout_ms: entry.timeout_ms,
      idempotence_key,
      hide: hiderOf(run),
      secrets: secretsOf(plan.manifest, plan.inputs),
      max_attempts: 1,
      backoff_ms: 0,
      left_ms: null,
      left_usd: null,
    })
  }
}

const lost = (tool: string): StepEnd => notBegun('unknown', 'lost', `the process died while ${tool} ran: look whether it happened`)
