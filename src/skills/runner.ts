import { diff } from './blackboard.ts'
import { maskOf } from './gate/mask.ts'
import type { Json, JsonFields } from './json.ts'
import { resultMap, writeOutputs, type CompiledStep } from './plan.ts'
import { compensate, mayHaveHappened } from './runner/compensate.ts'
import type { CompensationReport, JournalEntry, Run, RunResult, RunStatus, StepEnd } from './runner/ports.ts'
import { runStep } from './runner/run-step.ts'

/**
 * Runs a compiled plan, durably, against ports.
 *
 * 1. One step after the other. A step is in the journal before its tool is called and when it has ended.
 * 2. A step whose end is in the journal is never run again. One without an end is run again under the same key; where the plan has no key it is not:
 *    then the run ends as `unknown`.
 * 3. After a failure nothing more of the plan runs; what may have happened is compensated, the newest first, whatever fails on the way.
 * 4. A run with a key whose outputs are known does nothing and gives them.
 * 5. Called again with the same `run_id`, after a crash at any place, it comes to the same end. What a port of storage throws passes through.
 */
export async function runPlan(run: Run): Promise<RunResult> {
  const entries = await run.ports.journal.load(run.run_id)
  const teller = tellerOf(run)
  const reused = entries.length === 0 ? await lastGood(run) : null
  if (reused) {
    teller('skill-reused', { outputs: reused.outputs })
    return reused
  }
  teller(entries.length === 0 ? 'skill-started' : 'skill-resumed', { inputs: run.plan.inputs })
  const state = await runSteps(run, entries, teller)
  const result = await conclude(run, state, entries)
  for (const { index, undoes, tool, status, error } of result.compensation) {
    teller('skill-compensation-ended', { index, undoes, tool, status, error })
  }
  const { status, reason, detail, outputs, cost_usd, latency_ms } = result
  teller('skill-applied', { status, reason, detail, outputs, cost_usd, duration_ms: latency_ms })
  return result
}

/** A key that has good outputs: nothing is run. */
async function lastGood({ plan, ports }: Run): Promise<RunResult | null> {
  if (plan.idempotence_key === null) return null
  const outputs = await ports.lastGood(plan.idempotence_key)
  if (outputs === null) return null
  const written = writeOutputs(plan, outputs)
  const blackboard = written.ok ? written.blackboard : plan.blackboard
  const none = { reason: null, detail: null, cost_usd: 0, latency_ms: 0, steps: [], compensation: [] }
  return { status: 'reused', outputs, blackboard, writes: diff(plan.blackboard, blackboard), ...none }
}

type State = { ends: StepEnd[]; outputs: Record<string, Json>; failed: StepEnd | null; spent_ms: () => number }

async function runSteps(run: Run, entries: readonly JournalEntry[], teller: Teller): Promise<State> {
  const { plan, ports } = run
  const resumed_at = ports.now()
  const before_ms = entries.reduce((sum, { phase, end }) => sum + (phase === 'step' ? (end?.duration_ms ?? 0) : 0), 0)
  const state: State = { ends: [], outputs: {}, failed: null, spent_ms: () => before_ms + ports.now() - resumed_at }
  for (const step of plan.steps) {
    const entry = entries.find(({ phase, index }) => phase === 'step' && index === step.index)
    const progress = { outputs: state.outputs, spent_usd: costOf(state.ends), spent_ms: state.spent_ms }
    const end = entry?.end ?? (await runStep(run, step, { progress, entry }))
    if (!entry?.end) tellStep(teller, step, end)
    state.ends.push(end)
    if (end.status === 'ok') keep(state, step, end)
    else if (end.status !== 'skipped') return { ...state, failed: end }
  }
  return state
}

/** What is too large stays out: a template that needs it fails. */
function keep({ outputs }: State, { name, index }: CompiledStep, { output }: StepEnd): void {
  if (output?.kind !== 'json') return
  outputs[name] = output.value
  outputs[String(index)] = output.value
}

async function conclude(run: Run, state: State, entries: readonly JournalEntry[]): Promise<RunResult> {
  const { plan, ports } = run
  const mapped = state.failed ? null : resultMap(plan, state.outputs)
  if (mapped?.ok) {
    if (plan.idempotence_key !== null) await ports.remember(plan.idempotence_key, mapped.outputs)
    const { outputs, blackboard } = mapped
    const fine = { status: 'ok', reason: null, detail: null, outputs, blackboard, writes: diff(plan.blackboard, blackboard) } as const
    return { ...fine, ...reportOf(run, state, []) }
  }
  const compensation = await compensate(run, { ends: state.ends, outputs: state.outputs, entries })
  const reason = state.failed ? state.failed.reason : 'result'
  const detail = state.failed?.error ?? (mapped?.ok === false ? mapped.detail : null)
  const status = statusOf(state.ends, compensation)
  return { status, reason, detail, outputs: {}, blackboard: plan.blackboard, writes: [], ...reportOf(run, state, compensation) }
}

function statusOf(ends: readonly StepEnd[], compensation: readonly CompensationReport[]): RunStatus {
  if ([...ends, ...compensation].some(({ status }) => status === 'unknown')) return 'unknown'
  return ends.some(mayHaveHappened) ? 'partial_failure' : 'failed'
}

function reportOf({ plan }: Run, { ends, spent_ms }: State, compensation: CompensationReport[]) {
  const steps = ends.map(({ status, reason, error, cost_usd, attempts, duration_ms }, index) => {
    const step = plan.steps[index]
    return { name: step?.name ?? String(index), tool: step?.tool ?? '', status, reason, error, cost_usd, attempts, duration_ms }
  })
  return { cost_usd: costOf(ends), latency_ms: spent_ms(), steps, compensation }
}

const costOf = (ends: readonly StepEnd[]): number => ends.reduce((sum, { cost_usd }) => sum + cost_usd, 0)

type Teller = (kind: string, fields: JsonFields) => void

/** A log is read by people; the whole outputs are in the journal. */
const MOST_LOGGED = 10_000

function tellerOf({ plan: { manifest, inputs }, run_id, ports }: Run): Teller {
  const mask = maskOf(manifest, inputs)
  const head = { run_id, skill_id: manifest.id, version: manifest.version }
  const shown = (value: Json): Json => {
    const characters = JSON.stringify(value).length
    return characters <= MOST_LOGGED ? mask.value(value) : { not_logged: `${characters} characters` }
  }
  return (kind, fields) => {
    ports.log({ ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value)])), kind, ...head })
  }
}

function tellStep(teller: Teller, { name, index, tool }: CompiledStep, end: StepEnd): void {
  const output: Json = end.output?.kind === 'json' ? end.output.value : end.output
  teller('skill-step-ended', { ...end, step: name, index, tool, output })
}
