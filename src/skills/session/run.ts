import { evaluate, type ExpressionScope } from '../expression.ts'
import { probeSession } from '../expression/probes.ts'
import type { Mask } from '../gate/mask.ts'
import type { Json } from '../json.ts'
import type { Manifest } from '../manifest.ts'
import type { CompiledPlan } from '../plan.ts'
import { runPlan } from '../runner.ts'
import type { RunnerPorts, RunResult } from '../runner/ports.ts'
import type { SessionContext } from './context.ts'
import { maskFor } from './decide.ts'
import type { RunRecord } from './ports.ts'

/** Runs a plan whose record is kept, to its end, and keeps what it wrote to the blackboard. */
export async function runRecorded(
  context: SessionContext,
  record: RunRecord,
  { plan, signal }: { plan: CompiledPlan; signal: AbortSignal | undefined },
): Promise<RunResult> {
  const { run_id, skill_id } = record
  const mask = maskFor(plan.manifest, plan.inputs, plan)
  const ports = runnerPorts(context, record, { manifest: plan.manifest, mask })
  const result = await runPlan({ run_id, plan, ports, ...(signal ? { signal } : {}) })
  await context.ports.runs.end(run_id, { skill_id, status: result.status, ended_at: context.ports.now() })
  if (result.writes.length > 0) {
    context.keep(result.blackboard)
    const changes = result.writes.map((change): Json => mask.value(change))
    context.log('blackboard-changed', { run_id, skill_id, revision: context.revision, changes })
  }
  return result
}

function runnerPorts(context: SessionContext, record: RunRecord, { manifest, mask }: { manifest: Manifest; mask: Mask }): RunnerPorts {
  const { ports, settings } = context
  const { run_id, skill_id, version, trace_id } = record
  const chain = [...(settings.ancestors ?? []), skill_id]
  return {
    ...ports.runner({ run_id, skill_id, version, trace_id, chain }),
    now: () => ports.now(),
    log: ({ kind, ...fields }) => context.log(kind, fields),
    evaluate: (expression: string, scope: ExpressionScope) => {
      const probes = probeSession({ probes: ports.probes, hide: (value) => mask.value(value) })
      const evaluation = evaluate(expression, scope, probes)
      const outcome = evaluation.ok ? evaluation.value : mask.text(evaluation.detail)
      const head = { run_id, skill_id: manifest.id, version: manifest.version }
      context.log('skill-guard-evaluated', { ...head, expression, outcome, probes: probes.calls })
      return evaluation
    },
  }
}
