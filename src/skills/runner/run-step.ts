import type { Json, JsonFields } from '../../base/json.ts'
import { guardScope, resolveStep, templateScope, type StepOutputs } from '../plan/compile.ts'
import { secretsOf } from '../plan/secret-reference.ts'
import { turnOf, type CompiledStep } from '../plan/unroll.ts'
import { callStep } from './call-step.ts'
import { planMask, stepEntry, type Entries } from './entries.ts'
import type { JournalEntry, PlanRun, StepEnd, StepReason, StepStatus } from './ports.ts'

type Progress = { outputs: StepOutputs; spent_usd: number; spent_ms: () => number }

/** Runs one step to its end, which is in the journal when this resolves. */
export async function runStep(
  run: PlanRun,
  step: CompiledStep,
  { progress, entry, told }: { progress: Progress; entry: JournalEntry | undefined; told: Entries },
): Promise<StepEnd> {
  const begun = entry !== undefined && entry.begun !== null
  const idempotence_key = keyFor(run, step.name)
  const prepared = begun && idempotence_key === null ? { ok: false as const, end: LOST } : prepare(run, step, { progress, begun })
  const end = prepared.ok ? await call(run, step, { args: prepared.args, progress, idempotence_key }) : prepared.end
  if (isOver(end)) return end
  await run.ports.journal.end(run.run_id, { phase: 'step', index: step.index }, end, stepEntry(told, step, end))
  return end
}

async function call(
  run: PlanRun,
  { index, tool, timeout_ms, retry }: CompiledStep,
  { args, progress, idempotence_key }: { args: JsonFields; progress: Progress; idempotence_key: string | null },
): Promise<StepEnd> {
  const { ports, run_id, plan, signal } = run
  await ports.journal.begin(run_id, { phase: 'step', index, tool, idempotence_key, at: ports.now() })
  const { max_attempts, backoff_ms } = retry ?? { max_attempts: 1, backoff_ms: 0 }
  const left_ms = () => plan.budget.max_latency_ms - progress.spent_ms()
  const left_usd = plan.budget.max_cost_usd - progress.spent_usd
  const hide = hiderOf(run)
  const secrets = secretsOf(plan.manifest, plan.inputs)
  return callStep({ ports, tool, args, timeout_ms, idempotence_key, hide, secrets, max_attempts, backoff_ms, left_ms, left_usd, signal })
}

type Prepared = { ok: true; args: JsonFields } | { ok: false; end: StepEnd }

/**
 * Checks before a step begins. A begun step may have happened, so guards and budgets are skipped.
 */
function prepare(run: PlanRun, step: CompiledStep, { progress, begun }: { progress: Progress; begun: boolean }): Prepared {
  const { plan, ports } = run
  const turn = turnOf(step, templateScope(plan, progress.outputs))
  if (!turn.ok) return stopped('failed', 'template', turn.detail)
  if (turn.over) return stopped('skipped', null, null)
  const resolved = resolveStep(step, plan, progress.outputs)
  const spent = begun ? null : stopFor(run, progress)
  if (spent) return { ok: false, end: spent }
  if (step.guard !== undefined && !begun) {
    const guard = ports.evaluate(step.guard, guardScope(plan, progress.outputs, { resolved, item: turn.item }))
    if (!guard.ok) return stopped('failed', 'guard', `the guard ${step.guard} cannot be evaluated: ${guard.detail}`)
    if (!guard.value) return stopped('skipped', 'guard', null)
  }
  return resolved.ok ? resolved : stopped('failed', 'template', resolved.detail)
}

function stopFor({ plan: { budget }, signal }: PlanRun, { spent_usd, spent_ms }: Progress): StepEnd | null {
  if (signal?.aborted) return notBegun('failed', 'cancelled', 'the run was cancelled')
  if (spent_usd > budget.max_cost_usd) return notBegun('failed', 'budget_cost', `${spent_usd} of ${budget.max_cost_usd} USD are spent`)
  if (spent_ms() < budget.max_latency_ms) return null
  return notBegun('failed', 'budget_latency', `${spent_ms()} of ${budget.max_latency_ms} ms are spent`)
}

const stopped = (status: StepStatus, reason: StepReason | null, detail: string | null): Prepared => ({
  ok: false,
  end: notBegun(status, reason, detail),
})

export const notBegun = (status: StepStatus, reason: StepReason | null, error: string | null): StepEnd => ({
  status,
  reason,
  output: null,
  error,
  cost_usd: 0,
  attempts: 0,
  duration_ms: 0,
})

const LOST = notBegun('unknown', 'lost', 'the process died while the step ran, and it has no idempotency key: it is not run again')

export function hiderOf({ plan }: PlanRun): (value: Json) => Json {
  const mask = planMask(plan)
  return (value) => mask.value(value)
}

/** True for the steps beyond the last item of a list: nothing happened, and nothing is written. */
export const isOver = ({ status, reason }: StepEnd): boolean => status === 'skipped' && reason === null

/** The key of a step in one run. Other runs use other keys, since this run may be undone. */
export const keyFor = ({ plan, run_id }: PlanRun, name: string): string | null =>
  plan.idempotence_key === null ? null : `${plan.idempotence_key}:${run_id}:${name}`
