import { fitsBytes, sameJson, type JsonFields, type Json } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import { skillName } from '../../contract/reflex.ts'
import { buildBulletin, goalOf, type Goal } from '../bulletin/bulletin.ts'
import { hashManifest, type Manifest, type FoundSkill } from '../manifest/manifest.ts'
import type { Blackboard } from '../plan/blackboard.ts'
import { compilePlan, type CompiledPlan } from '../plan/compile.ts'
import type { RunResult, RunEntry, RunnerPorts } from '../runner/ports.ts'
import { differenceFrom, park, deliberate, maskFor, type Case, type SessionDecision } from './decide.ts'
import { DEEPEST_CHAIN, MOST_PROPOSALS, SessionContext, type SessionSettings } from './context.ts'
import type { ApprovedRun, RunRecord, SessionPorts, SkillUsage, ProposalRequest, SkillProposal } from './ports.ts'
import { answer, ranAs, reportOf, unreached, type ProposalHead, type ProposalResult } from './result.ts'
import type { Result } from '../../base/result.ts'
import { evaluate, type ExpressionScope, probeSession } from '../cel/expression.ts'
import type { SecretMask } from '../gate/mask.ts'
import { runPlan } from '../runner/run-plan.ts'

/** Runs a recorded plan. Its end, result and writes are stored in one write. */
async function runRecorded(
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

type End = { run: RunResult; result: ProposalResult; entry: RunEntry; mask: SecretMask }

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
  { manifest, mask, clock }: { manifest: Manifest; mask: SecretMask; clock: number[] },
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

function recordOf(
  { ports, blackboard, settings }: SessionContext,
  { proposal_id, skill, manifest_hash, request, approval }: Case,
  { decision, enforced, inputs }: SessionDecision,
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
async function compiledAgain(
  { skill_id, version, manifest_hash, inputs, blackboard }: RunRecord,
  skill: FoundSkill | null,
): Promise<Result<{ plan: CompiledPlan }>> {
  const name = `${skill_id}@${version}`
  if (!skill) return { ok: false, detail: `the run cannot be resumed: there is no skill ${name} any more` }
  if ((await hashManifest(skill.manifest)) !== manifest_hash)
    return { ok: false, detail: `the run cannot be resumed: ${name} is another one` }
  return compilePlan(skill.manifest, inputs, blackboard)
}

export type ProposalSession = {
  bulletin: (text: string) => string
  propose: (proposal: SkillProposal, request: ProposalRequest) => Promise<ProposalResult>
}

/**
 * The skills in one turn.
 *
 * 1. The bulletin is built once per session.
 * 2. Nothing runs without the gate's permission. A policy that is only observed refuses nothing:
 *    the log says what it would have refused.
 * 3. One proposal at a time, so that a skill cannot propose by way of its own tools. A turn has a
 *    limited number.
 * 4. Each proposal has exactly one result, and each execution a record before it begins and after
 *    it ended.
 * 5. The blackboard is seeded once and changes only by what runs write; the seed, each change and
 *    each decision are logged.
 * 6. Only the approved work runs, by the hashes of the manifest and of the inputs.
 */
export class SkillSession implements ProposalSession {
  readonly #context: SessionContext
  #told = false
  #proposals = 0
  #current: string | null = null

  constructor(settings: SessionSettings, ports: SessionPorts) {
    this.#context = new SessionContext(settings, ports)
    this.#context.logSeed()
  }

  get blackboard(): Blackboard {
    return this.#context.blackboard
  }

  get trace_id(): string {
    return this.#context.settings.trace_id
  }

  /** The bulletin for the system prompt; empty if no skill fits, or if it was given before. */
  bulletin(text: string): string {
    if (this.#told) return ''
    this.#told = true
    const { ports, settings } = this.#context
    const { place: compat, goal_labels = [], entity_types = [], goal_postconditions, k_cards: k } = settings
    const index = ports.registry.index()
    const recent_success = ports.registry.recentSuccess()
    const situation = { text, goal_labels, entity_types, compat }
    const goal = goalOf(goal_postconditions, this.blackboard, ports.registry.transitions?.())
    const bulletin = buildBulletin({ ...situation, index, recent_success, goal, k })
    const cards = bulletin.cards.map(({ skill_id, version, score, tokens }) => ({ skill_id, version, score, tokens }))
    this.#context.log('bulletin-built', { cards, tokens: bulletin.tokens, ...ranked(cards, recent_success, goal) })
    return bulletin.text
  }

  /** Decides on a proposal and runs it if it is allowed. Throws only if a port does. */
  async propose(proposal: SkillProposal, request: ProposalRequest): Promise<ProposalResult> {
    const { id, version } = skillName(proposal.skill_id)
    const dry_run = request.dry_run ?? false
    const result = await this.#alone(id, { is_free: dry_run, counts: true }, async (head) => {
      const skill = await this.#context.ports.registry.find(id, version)
      if (!skill) return this.#refused(head, `there is no skill ${proposal.skill_id}`)
      if (!fitsBytes(JSON.stringify(proposal.inputs), limits.inputs_bytes))
        return this.#refused(head, `the inputs take more than ${limits.inputs_bytes} bytes as JSON`)
      const manifest_hash = await hashManifest(skill.manifest)
      const { proposal_id } = head
      const { inputs, why } = proposal
      return this.#decideAndRun({ proposal_id, skill, manifest_hash, inputs, why, request, approval: null })
    })
    return { ...result, dry_run }
  }

  /** Runs an approved proposal if only the approver changed it. All else is checked again. */
  async runApproved(approval: ApprovedRun, { signal }: { signal?: AbortSignal } = {}): Promise<ProposalResult> {
    const { skill_id, version, why, approval_id, recent_success } = approval
    const inputs = { ...approval.inputs, ...approval.edits }
    return this.#alone(skill_id, { is_free: false, counts: false }, async (head) => {
      const skill = await this.#context.ports.registry.find(skill_id, version)
      if (!skill) return this.#refused(head, `there is no skill ${skill_id}@${version} any more`)
      const manifest_hash = await hashManifest(skill.manifest)
      const difference = await differenceFrom(approval, { skill, manifest_hash }, this.#context)
      if (difference !== null) return this.#refused({ ...head, version }, difference)
      const { from, roles, text, goal_labels, entity_types } = approval
      const request = { from, roles, text, goal_labels, entity_types, signal }
      const { proposal_id } = head
      return this.#decideAndRun({
        proposal_id,
        skill,
        manifest_hash,
        inputs,
        why,
        request,
        approval: { approval_id, recent_success, ...(approval.edits && { asked: approval.inputs }) },
      })
    })
  }

  /** Resumes a run from its journal. With `give_up`, it ends as `unknown` with that reason. */
  async resume(record: RunRecord, { signal, give_up }: { signal?: AbortSignal; give_up?: string } = {}): Promise<ProposalResult> {
    const { skill_id, version, run_id } = record
    return this.#alone(skill_id, { is_free: false, counts: false }, async ({ trace_id }) => {
      const head: ProposalHead = { proposal_id: record.proposal_id, skill_id, version, trace_id }
      const skill = await this.#context.ports.registry.find(skill_id, version)
      const compiled = give_up === undefined ? await compiledAgain(record, skill) : { ok: false as const, detail: give_up }
      if (compiled.ok) return this.#run(head, record, { plan: compiled.plan, signal })
      const result = answer(head, { status: 'unknown', reason: compiled.detail, decision: record.decision, run_id })
      const told = this.#context.entry('skill-refused', { ...head, run_id, reason: compiled.detail })
      const { ports } = this.#context
      await ports.runs.end(run_id, { skill_id, status: 'unknown', cancelled: false, ended_at: ports.now(), result }, [told])
      return result
    })
  }

  /** Admits one proposal at a time: a skill's tools must not propose while it runs. */
  async #alone(
    skill_id: string,
    { is_free, counts }: { is_free: boolean; counts: boolean },
    work: (head: ProposalHead) => Promise<ProposalResult>,
  ): Promise<ProposalResult> {
    const { ports, settings } = this.#context
    const head = { proposal_id: ports.newId(), skill_id, version: null, trace_id: settings.trace_id }
    const refusal = this.#admission(skill_id, { is_free, counts })
    if (refusal !== null) return this.#refused(head, refusal)
    if (is_free) return work(head)
    this.#current = skill_id
    try {
      return await work(head)
    } finally {
      this.#current = null
    }
  }

  #admission(skill_id: string, { is_free, counts }: { is_free: boolean; counts: boolean }): string | null {
    const { ancestors = [], max_proposals = MOST_PROPOSALS } = this.#context.settings
    if (ancestors.includes(skill_id)) return `${skill_id} must not run within itself: ${[...ancestors, skill_id].join(' → ')}`
    if (ancestors.length >= DEEPEST_CHAIN) return `skills run at most ${DEEPEST_CHAIN} deep: ${[...ancestors, skill_id].join(' → ')}`
    if (!is_free && this.#current === skill_id) return `${skill_id} is being run: one at a time, and not by its own tools`
    if (!is_free && this.#current !== null) return `one at a time: ${this.#current} is being run`
    if (is_free || !counts) return null
    this.#proposals += 1
    return this.#proposals > max_proposals ? `a turn has at most ${max_proposals} proposals` : null
  }

  async #decideAndRun(proposed: Case): Promise<ProposalResult> {
    const { skill, request } = proposed
    const head = this.#headOf(proposed)
    const decided = await deliberate(this.#context, proposed)
    const decision = reportOf(decided.decision, decided.enforced)
    const { verdict, reason, questions } = decided.decision
    if (verdict === 'clarify')
      return answer(head, { status: 'clarify', reason: [reason, ...decided.unparsed].join('; '), questions, decision })
    if (verdict !== 'allow' && decided.enforced) {
      if (verdict !== 'needs_approval') return answer(head, { status: 'refused', reason, decision })
      if (request.dry_run) return answer(head, { status: 'needs_approval', reason, decision })
      if (request.waits === false) return this.#refused(head, `it needs an approval, for which it does not wait: ${reason}`, decision)
      const parked = await park(this.#context, proposed, decided)
      if (!parked.ok) return this.#refused(head, parked.detail, decision)
      return answer(head, { status: 'needs_approval', reason, approval_id: parked.approval_id, decision })
    }
    const compiled = compilePlan(skill.manifest, decided.inputs, this.#context.blackboard)
    if (!compiled.ok) return this.#refused(head, maskFor(skill.manifest, decided.inputs, this.#context).text(compiled.detail), decision)
    if (request.dry_run) return answer(head, { status: 'ok', decision, steps: plannedSteps(compiled.plan) })
    // Another session may have begun it since: no wait lies between this look and `begin`.
    if (!sameJson(decided.usage, this.#usageOf(skill))) return this.#decideAndRun({ ...proposed, inputs: decided.inputs })
    const record = recordOf(this.#context, proposed, decided)
    await this.#context.ports.runs.begin(record)
    return this.#run(head, record, { plan: compiled.plan, signal: request.signal })
  }

  #usageOf({ manifest }: FoundSkill): SkillUsage {
    const { last_run_at, running } = this.#context.ports.registry.usage(manifest.id)
    return { last_run_at, running }
  }

  #headOf({ proposal_id, skill: { manifest } }: Case): ProposalHead {
    return { proposal_id, skill_id: manifest.id, version: manifest.version, trace_id: this.trace_id }
  }

  async #run(
    head: ProposalHead,
    record: RunRecord,
    { plan, signal }: { plan: CompiledPlan; signal: AbortSignal | undefined },
  ): Promise<ProposalResult> {
    const mask = maskFor(plan.manifest, plan.inputs, plan)
    const { decision, run_id, from } = record
    const resultOf = (run: RunResult): ProposalResult => {
      const result = answer(head, { ...ranAs(run), decision, run_id })
      // A model receives no secrets; a caller of the API receives the outputs as they are.
      if (from === 'caller') return result
      const reason = result.reason === null ? null : mask.text(result.reason)
      return { ...result, reason, outputs: mask.value(result.outputs) as ProposalResult['outputs'] }
    }
    return runRecorded(this.#context, record, { plan, signal, resultOf })
  }

  #refused(head: ProposalHead, reason: string, decision = unreached(reason)): ProposalResult {
    this.#context.log('skill-refused', { ...head, reason })
    return answer(head, { status: 'refused', reason, decision })
  }
}

/** The history of the shown skills, by which they were ranked. */
function ranked(cards: readonly { skill_id: string }[], recent_success: ReadonlySet<string>, { transition_prior }: Goal): JsonFields {
  const shown = cards.map(({ skill_id }) => skill_id)
  const recent = shown.filter((id) => recent_success.has(id))
  const followed = shown.flatMap((id) => (transition_prior?.has(id) ? [[id, transition_prior.get(id) ?? 0] as const] : []))
  return { ...(recent.length > 0 && { recent_success: recent }), ...(followed.length > 0 && { transitions: Object.fromEntries(followed) }) }
}

const plannedSteps = ({ steps }: CompiledPlan): ProposalResult['steps'] =>
  steps.map(({ index, tool }) => ({ index, tool, status: 'planned', duration_ms: 0 }))
