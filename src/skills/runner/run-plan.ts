import { diff } from '../plan/blackboard.ts'
import { type Json, type JsonFields, byteLength } from '../../base/json.ts'
import {
  resultMap,
  writeOutputs,
  type CompiledPlan,
  resolveStep,
  type StepOutputs,
  type CompiledCompensation,
  type CompiledStep,
  guardScope,
  templateScope,
  turnOf,
} from '../plan/compile.ts'
import type { CompensationReport, JournalEntry, PlanRun, RunResult, RunStatus, StepEnd, RunEntry, StepReason, StepStatus } from './ports.ts'
import { secretsOf } from '../plan/template.ts'
import { callStep } from './call-step.ts'
import { oncePer } from '../../base/once-per.ts'
import { maskOf, type SecretMask } from '../gate/mask.ts'

type Entries = (kind: string, fields: JsonFields) => RunEntry

/** A log is read by people; the whole outputs are in the journal. */
const MOST_LOGGED = 10_000

function entriesOf({ plan, run_id }: PlanRun): Entries {
  const mask = planMask(plan)
  const { id, version } = plan.manifest
  const head = { run_id, skill_id: id, version }
  const shown = (value: Json): Json => {
    const bytes = byteLength(JSON.stringify(value))
    return bytes <= MOST_LOGGED ? mask.value(value) : { not_logged: `${bytes} bytes` }
  }
  return (kind, fields) => ({ ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value)])), kind, ...head })
}

function stepEntry(entries: Entries, { name, index, tool }: CompiledStep, end: StepEnd): RunEntry {
  const output: Json = end.output?.kind === 'json' ? end.output.value : end.output
  return entries('skill-step-ended', { ...end, step: name, index, tool, output })
}

function compensationEntry(
  entries: Entries,
  { index, tool }: CompiledCompensation,
  { undoes, end: { status, error } }: { undoes: string | null; end: StepEnd },
): RunEntry {
  return entries('skill-compensation-ended', { index, undoes, tool, status, error })
}

function endEntry(entries: Entries, result: RunResult): RunEntry {
  const { status, reason, detail, outputs, cost_usd, latency_ms } = result
  if (status === 'reused') return entries('skill-reused', { outputs })
  return entries('skill-applied', { status, reason, detail, outputs, cost_usd, duration_ms: latency_ms })
}

/** Made once per plan: preparing its patterns takes longer than one step's log entry. */
const planMask = oncePer((plan: CompiledPlan): SecretMask => maskOf(plan.manifest, plan.inputs))

type Progress = { outputs: StepOutputs; spent_usd: number; spent_ms: () => number }

/** Runs one step to its end, which is in the journal when this resolves. */
async function runStep(
  run: PlanRun,
  step: CompiledStep,
  { progress, entry, told }: { progress: Progress; entry: JournalEntry | undefined; told: Entries },
): Promise<StepEnd> {
  // A step that has ended does not come here: one with an entry has begun.
  const begun = entry !== undefined
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

const notBegun = (status: StepStatus, reason: StepReason | null, error: string | null): StepEnd => ({
  status,
  reason,
  output: null,
  error,
  cost_usd: 0,
  attempts: 0,
  duration_ms: 0,
})

const LOST = notBegun('unknown', 'lost', 'the process died while the step ran, and it has no idempotency key: it is not run again')

function hiderOf({ plan }: PlanRun): (value: Json) => Json {
  const mask = planMask(plan)
  return (value) => mask.value(value)
}

/** True for the steps beyond the last item of a list: nothing happened, and nothing is written. */
const isOver = ({ status, reason }: StepEnd): boolean => status === 'skipped' && reason === null

/** The key of a step in one run. Other runs use other keys, since this run may be undone. */
const keyFor = ({ plan, run_id }: PlanRun, name: string): string | null =>
  plan.idempotence_key === null ? null : `${plan.idempotence_key}:${run_id}:${name}`

/** True if the effect must be undone: also if it was cut off or its output was unusable. */
const mayHaveHappened = ({ status, reason }: StepEnd): boolean =>
  status === 'ok' || status === 'timeout' || status === 'unknown' || reason === 'output'

/**
 * Undoes effects, newest step first, then the effects of the plan. A failure does not stop the
 * rest.
 */
async function compensate(
  run: PlanRun,
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
  run: PlanRun,
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

/**
 * Runs a compiled plan, durably, against ports.
 *
 * 1. Steps run one after the other. A step is journalled before its tool is called and after it
 *    ended.
 * 2. A step whose end is journalled never runs again. A step without an end runs again under the
 *    same key; if the plan has no key, the run ends as `unknown`.
 * 3. After a failure no further step runs. Effects that may have happened are compensated, newest
 *    first, even if a compensation fails.
 * 4. A run with a key whose outputs are known returns them; if the key is in use, the run waits.
 * 5. The end and its log entry are written together.
 * 6. Called again with the same `run_id` after a crash at any point, the run comes to the same end.
 *    Errors of the storage ports pass through.
 */
export async function runPlan(run: PlanRun): Promise<RunResult> {
  const { idempotence_key } = run.plan
  return idempotence_key === null ? runAlone(run) : run.ports.alone(idempotence_key, () => runAlone(run))
}

async function runAlone(run: PlanRun): Promise<RunResult> {
  const entries = await run.ports.journal.load(run.run_id)
  const told = entriesOf(run)
  const reused = entries.length === 0 ? await lastGood(run) : null
  const result = reused ?? (await runWhole(run, { entries, told }))
  await run.ports.ended(result, endEntry(told, result))
  return result
}

type Journalled = { entries: readonly JournalEntry[]; told: Entries }

async function runWhole(run: PlanRun, { entries, told }: Journalled): Promise<RunResult> {
  run.ports.log(told(entries.length === 0 ? 'skill-started' : 'skill-resumed', { inputs: run.plan.inputs }))
  const state = await runSteps(run, { entries, told })
  return conclude(run, state, { entries, told })
}

/** A key that has good outputs: nothing is run. */
async function lastGood({ plan, ports }: PlanRun): Promise<RunResult | null> {
  if (plan.idempotence_key === null) return null
  const good = await ports.lastGood(plan.idempotence_key)
  if (good === null) return null
  if ('not_free' in good) return notRun(plan, good.not_free)
  const { outputs, detail } = good
  const written = outputs === null ? null : writeOutputs(plan, outputs)
  const blackboard = written?.ok ? written.blackboard : plan.blackboard
  return {
    ...NOTHING,
    status: 'reused',
    reason: null,
    detail,
    outputs: outputs ?? {},
    blackboard,
    writes: diff(plan.blackboard, blackboard),
  }
}

const NOTHING = { cost_usd: 0, latency_ms: 0, steps: [], compensation: [] }

const notRun = ({ blackboard }: CompiledPlan, detail: string): RunResult => ({
  ...NOTHING,
  status: 'failed',
  reason: 'key',
  detail,
  outputs: {},
  blackboard,
  writes: [],
})

type PlanState = { ends: StepEnd[]; outputs: Record<string, Json>; failed: StepEnd | null; spent_ms: () => number }

async function runSteps(run: PlanRun, { entries, told }: Journalled): Promise<PlanState> {
  const { plan, ports } = run
  const resumed_at = ports.now()
  const before_ms = entries.reduce((sum, { phase, end }) => sum + (phase === 'step' ? (end?.duration_ms ?? 0) : 0), 0)
  const state: PlanState = { ends: [], outputs: {}, failed: null, spent_ms: () => before_ms + ports.now() - resumed_at }
  for (const step of plan.steps) {
    const entry = entries.find(({ phase, index }) => phase === 'step' && index === step.index)
    if (step.turn === 0) give(state, step, [])
    const progress = { outputs: state.outputs, spent_usd: costOf(state.ends), spent_ms: state.spent_ms }
    const end = entry?.end ?? (await runStep(run, step, { progress, entry, told }))
    state.ends.push(end)
    if (end.status === 'ok') keep(state, step, end)
    else if (end.status !== 'skipped') return { ...state, failed: end }
  }
  return state
}

/**
 * Only a step for each item has a list before. An output that is too large is left out: a template
 * that needs it fails.
 */
function keep(state: PlanState, step: CompiledStep, { output }: StepEnd): void {
  if (output?.kind !== 'json') return
  const before = state.outputs[step.gives]
  give(state, step, Array.isArray(before) ? [...before, output.value] : output.value)
}

function give({ outputs }: PlanState, { gives, place }: CompiledStep, value: Json): void {
  outputs[gives] = value
  outputs[String(place)] = value
}

async function conclude(run: PlanRun, state: PlanState, { entries, told }: Journalled): Promise<RunResult> {
  const { plan, ports } = run
  const mapped = state.failed ? null : resultMap(plan, state.outputs)
  if (mapped?.ok) {
    if (plan.idempotence_key !== null) await ports.remember(plan.idempotence_key, mapped.outputs)
    const { outputs, blackboard } = mapped
    const fine = { status: 'ok', reason: null, detail: null, outputs, blackboard, writes: diff(plan.blackboard, blackboard) } as const
    return { ...fine, ...reportOf(run, state, []) }
  }
  const compensation = await compensate(run, { ends: state.ends, outputs: state.outputs, entries, told })
  const reason = state.failed ? state.failed.reason : 'result'
  const detail = state.failed?.error ?? (mapped?.ok === false ? mapped.detail : null)
  const status = statusOf(state.ends, compensation)
  return { status, reason, detail, outputs: {}, blackboard: plan.blackboard, writes: [], ...reportOf(run, state, compensation) }
}

function statusOf(ends: readonly StepEnd[], compensation: readonly CompensationReport[]): RunStatus {
  if ([...ends, ...compensation].some(({ status }) => status === 'unknown')) return 'unknown'
  return ends.some(mayHaveHappened) ? 'partial_failure' : 'failed'
}

function reportOf({ plan }: PlanRun, { ends, spent_ms }: PlanState, compensation: CompensationReport[]) {
  const steps = ends.flatMap((end, index) => {
    if (isOver(end)) return []
    const { status, reason, error, cost_usd, attempts, duration_ms } = end
    const step = plan.steps[index]
    return { name: step?.name ?? String(index), tool: step?.tool ?? '', status, reason, error, cost_usd, attempts, duration_ms }
  })
  return { cost_usd: costOf(ends), latency_ms: spent_ms(), steps, compensation }
}

const costOf = (ends: readonly StepEnd[]): number => ends.reduce((sum, { cost_usd }) => sum + cost_usd, 0)
