import type { Result } from '../../base/result.ts'
import { evaluate, type ExpressionScope } from '../cel/expression.ts'
import { probeSession } from '../cel/probes.ts'
import type { Mask } from '../gate/mask.ts'
import type { Json } from '../../base/json.ts'
import { hashManifest, type Manifest } from '../manifest/manifest.ts'
import { compilePlan, type CompiledPlan } from '../plan/compile.ts'
import { runPlan } from '../runner/run-plan.ts'
import type { RunEntry, RunnerPorts, RunResult } from '../runner/ports.ts'
import type { SessionContext } from './context.ts'
import { maskFor, type Case, type Decided } from './decide.ts'
import type { FoundSkill, RunRecord } from './ports.ts'
import { reportOf, type ProposalResult } from './result.ts'

/** Runs a recorded plan. Its end, result and writes are stored in one write. */
export async function runRecorded(
  context: SessionContext,
  record: RunRecord,
  { plan, signal, resultOf }: { plan: CompiledPlan; signal: AbortSignal | undefined; resultOf: (run: RunResult) => ProposalResult },
): Promise<ProposalResult> {
  const { run_id } = record
  const mask = maskFor(plan.manifest, plan.inputs, plan)
  const told = Promise.withResolvers<ProposalResult>()
  const clock: number[] = []
  const ended: RunnerPorts['ended'] = async (run, entry) => {
    const result = resultOf(run)
    await keepEnd(context, record, { run, result, entry: { ...entry, clock }, mask })
    told.resolve(result)
  }
  await runPlan({
    run_id,
    plan,
    ports: { ...runnerPorts(context, record, { manifest: plan.manifest, mask, clock }), ended },
    ...(signal && { signal }),
  })
  return told.promise
}

/** Readings of the clock that the log keeps of one run, in ms since its start: for replays. */
const MOST_READINGS = 1000

type End = { run: RunResult; result: ProposalResult; entry: RunEntry; mask: Mask }

async function keepEnd(context: SessionContext, { run_id, skill_id }: RunRecord, { run, result, entry, mask }: End): Promise<void> {
  const { kind, ...fields } = entry
  const told = [context.entry(kind, fields)]
  if (run.writes.length > 0) {
    context.keep(run.blackboard)
    const changes = run.writes.map((change): Json => mask.value(change))
    told.push(context.entry('blackboard-changed', { run_id, skill_id, revision: context.revision, changes }))
  }
  await context.ports.runs.end(
    run_id,
    { skill_id, status: run.status, cancelled: run.reason === 'cancelled', ended_at: context.ports.now(), result },
    told,
  )
}

function runnerPorts(
  context: SessionContext,
  record: RunRecord,
  { manifest, mask, clock }: { manifest: Manifest; mask: Mask; clock: number[] },
): Omit<RunnerPorts, 'ended'> {
  const { ports, settings } = context
  const { run_id, skill_id, version, trace_id } = record
  const chain = [...(settings.ancestors ?? []), skill_id]
  const { journal, ...host } = ports.runner({ run_id, skill_id, version, trace_id, chain, approved: record.approval_id !== null })
  return {
    ...host,
    journal: {
      load: (id) => journal.load(id),
      begin: (id, begin) => journal.begin(id, begin),
      end: (id, place, end, { kind, ...fields }) => journal.end(id, place, end, context.entry(kind, fields)),
    },
    now() {
      const now = ports.now()
      if (clock.length < MOST_READINGS) clock.push(now - record.started_at)
      return now
    },
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

export function recordOf(
  { ports, blackboard, settings }: SessionContext,
  { proposal_id, skill, manifest_hash, request, approval }: Case,
  { decision, enforced, inputs }: Decided,
): RunRecord {
  const { id: skill_id, version } = skill.manifest
  return {
    run_id: ports.newId(),
    proposal_id,
    skill_id,
    version,
    manifest_hash,
    inputs,
    blackboard,
    from: request.from,
    decision: reportOf(decision, enforced),
    approval_id: approval?.approval_id ?? null,
    trace_id: settings.trace_id,
    started_at: ports.now(),
  }
}

/** The plan of a recorded run, if its skill is unchanged. */
export async function compiledAgain(
  { skill_id, version, manifest_hash, inputs, blackboard }: RunRecord,
  skill: FoundSkill | null,
): Promise<Result<{ plan: CompiledPlan }>> {
  const name = `${skill_id}@${version}`
  if (!skill) return { ok: false, detail: `the run cannot be resumed: there is no skill ${name} any more` }
  if ((await hashManifest(skill.manifest)) !== manifest_hash)
    return { ok: false, detail: `the run cannot be resumed: ${name} is another one` }
  return compilePlan(skill.manifest, inputs, blackboard)
}
