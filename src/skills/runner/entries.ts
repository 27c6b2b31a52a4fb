import { oncePer } from '../../base/once-per.ts'
import { byteLength, type Json, type JsonFields } from '../../base/json.ts'
import { maskOf, type SecretMask } from '../gate/mask.ts'
import type { CompiledPlan } from '../plan/compile.ts'
import type { CompiledCompensation, CompiledStep } from '../plan/unroll.ts'
import type { PlanRun, RunEntry, RunResult, StepEnd } from './ports.ts'

export type Entries = (kind: string, fields: JsonFields) => RunEntry

/** A log is read by people; the whole outputs are in the journal. */
const MOST_LOGGED = 10_000

export function entriesOf({ plan, run_id }: PlanRun): Entries {
  const mask = planMask(plan)
  const { id, version } = plan.manifest
  const head = { run_id, skill_id: id, version }
  const shown = (value: Json): Json => {
    const bytes = byteLength(JSON.stringify(value))
    return bytes <= MOST_LOGGED ? mask.value(value) : { not_logged: `${bytes} bytes` }
  }
  return (kind, fields) => ({ ...Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(value)])), kind, ...head })
}

export function stepEntry(entries: Entries, { name, index, tool }: CompiledStep, end: StepEnd): RunEntry {
  const output: Json = end.output?.kind === 'json' ? end.output.value : end.output
  return entries('skill-step-ended', { ...end, step: name, index, tool, output })
}

export function compensationEntry(
  entries: Entries,
  { index, tool }: CompiledCompensation,
  { undoes, end: { status, error } }: { undoes: string | null; end: StepEnd },
): RunEntry {
  return entries('skill-compensation-ended', { index, undoes, tool, status, error })
}

export function endEntry(entries: Entries, result: RunResult): RunEntry {
  const { status, reason, detail, outputs, cost_usd, latency_ms } = result
  if (status === 'reused') return entries('skill-reused', { outputs })
  return entries('skill-applied', { status, reason, detail, outputs, cost_usd, duration_ms: latency_ms })
}

/** Made once per plan: preparing its patterns takes longer than one step's log entry. */
export const planMask = oncePer((plan: CompiledPlan): SecretMask => maskOf(plan.manifest, plan.inputs))
