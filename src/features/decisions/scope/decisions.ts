import { backoff, pauses } from '../../../base/backoff.ts'
import { modelQuestions, modelState, replyOf, wireAnswers } from '../agent/answers.ts'
import { isAsked, type DecisionAsked } from '../../../contract/decision-asked.ts'
import { isModelAsked } from '../../../contract/model-asked.ts'
import type { Usage } from '../../../contract/log-entry.ts'
import type { Decision, ReflexVersion } from '../../../contract/reflex.ts'
import { askDecision, type DecisionCall } from '../models/ask.ts'
import { decisionModelName, fullName, resolveDecisionModel } from '../models/resolve.ts'
import { ownPricesOf } from '../../../models/model-call.ts'
import type { Event } from '../../../core/event.ts'
import type { Applied, ScopeFeature, Next } from '../../../engine/feature.ts'
import type { Stored } from '../../../engine/inbox/inbox.ts'
import type { Job } from '../../../engine/jobs.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import { noUsage } from '../../../engine/turns/turn.ts'
import type { AgentRegistry } from '../../../agent/registry.ts'
import { isAskedAbout, judge, type MiddleJudgement } from '../agent/middle.ts'
import type { JsonFields } from '../../../base/json.ts'
import { permit } from '../../../agent/permit.ts'
import type { Action } from '../../../contract/action.ts'
import type { DecisionMade } from '../contract/entry.ts'
import type { DecisionModelSetting } from '../contract/setting.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { MiddleProof } from './middle-proof.ts'
import type { Sockets } from '../../../engine/live/sockets.ts'
import { reflexHead, headOf } from '../../../engine/log/spans.ts'
import { childHead } from '../../../traces/ids.ts'
import type { Actions } from '../../../engine/reflexes/actions.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { proofOf } from '../../proof/scope/in-scope.ts'

type Made = { event: Event; call: DecisionCall } & Pick<DecisionMade, 'middle' | 'audit'>

/** Logs and meters a call, which was paid for even if it failed. Returns the entry's `seq`. */
function recordDecision(unit: Unit, { event, call, ...made }: Made, { budget }: Pick<Lanes, 'budget'>): number {
  const { input_tokens, output_tokens, cost_usd, duration_ms, model } = call
  const usage: Usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
  budget.spend(unit, input_tokens + output_tokens)
  budget.money()?.paid(unit, cost_usd ?? 0, [{ event }])
  unit.count({ model_calls: 1, input_tokens, output_tokens, cost_usd: cost_usd ?? 0, unpriced_calls: cost_usd === null ? 1 : 0 })
  const said = call.ok
    ? { status: 'ok' as const, answered_by: call.result.response.modelId, answers: wireAnswers(call.result), error: null }
    : { status: 'failed' as const, answered_by: null, answers: null, error: call.error }
  return unit.log({ ...childHead(headOf(event)), duration_ms, kind: 'decision-made', model, ...said, usage, ...made })
}

/** Calls of the decision model at once in one scope. */
const AT_ONCE = 32
const TIMEOUT_MS = 20_000

type Asking = { seq: number }
type Again = { waits: boolean; decided: Decision | null; usage: Usage }

/** In the form in which a reflex decides the same. */
const decisionOf = ({ result }: DecisionCall & { ok: true }): Decision => ({
  by: 'turn',
  acts: [{ act: 'reply', content: replyOf(wireAnswers(result)) }],
})

/**
 * Asks the decision model about events that no reflex answered. A call is a job: `decide` is pure,
 * and a turn would wait for the turn in flight. Nothing in the scope waits for a job. Its row is
 * written in the unit that accepts the event, which it holds, and deleted in the unit that ends the
 * event. After a crash in between, the model is asked again.
 */
class DecisionModelCalls implements ScopeFeature {
  readonly name = 'decision model'
  readonly #parts: MiddleParts
  readonly #middle: Middle

  constructor(parts: MiddleParts) {
    this.#parts = parts
    this.#middle = new Middle(parts)
    parts.jobs.handle<Asking>('decision', {
      work: 'action',
      at_once: AT_ONCE,
      attempts: MOST_DEATHS,
      run: (job) => this.#run(job),
      giveUp: (job, reason) => this.#giveUp(job, reason),
    })
  }

  takes(event: Event): boolean {
    return this.#middle.takes(event)
  }

  asked(unit: Unit, { decision }: Applied): Next[] {
    const { seq, event } = decision.one
    if (isModelAsked(event)) return []
    this.#parts.jobs.add(unit, { kind: 'decision', key: String(seq), payload: { seq } satisfies Asking })
    return [{ do: 'run-jobs' }]
  }

  async #run(job: Job<Asking>): Promise<{ again_ms: number } | void> {
    const stored = this.#storedOf(job)
    if (isAsked(stored.event)) return this.#ask(job, stored.event)
    await this.#middle.ask(stored, (unit) => this.#done(unit, job))
  }

  #giveUp(job: Job<Asking>, reason: string): void {
    const { event, seq } = this.#storedOf(job)
    if (isAsked(event)) this.#fail(job, event, reason)
    else this.#middle.release(seq, (unit) => this.#done(unit, job))
  }

  #done(unit: Unit, { key }: Job<Asking>): void {
    this.#parts.jobs.done(unit, 'decision', key)
    this.#parts.guard.done({ kind: 'action', id: key })
  }

  /** Asks about an event that a reflex answered. `waits`: the model cannot be asked now. */
  async again(seq: number): Promise<Again> {
    const { event } = this.#storedOf({ payload: { seq } })
    if (!this.#parts.budget.allow().ok) return { waits: true, decided: null, usage: noUsage() }
    if (!isAsked(event)) return { waits: false, decided: null, usage: noUsage() }
    const call = await this.#call(event)
    const { input_tokens, output_tokens, cost_usd } = call
    this.#parts.unit((unit) => recordDecision(unit, { event, call, middle: null, audit: true }, this.#parts))
    return {
      waits: !call.ok && call.fault?.fault === 'unavailable',
      decided: call.ok ? decisionOf(call) : null,
      usage: { input_tokens, output_tokens, cost_usd, model_calls: 1 },
    }
  }

  #call(event: DecisionAsked): Promise<DecisionCall> {
    const { env, hide, now } = this.#parts
    const name = fullName(decisionModelName(env), event.model)
    const asked = { state: modelState(event.state), questions: modelQuestions(event.questions) }
    return askDecision(() => resolveDecisionModel(name, env), asked, {
      name,
      timeout_ms: TIMEOUT_MS,
      now,
      hide,
      own_prices: ownPricesOf(env),
    })
  }

  async #ask(job: Job<Asking>, event: DecisionAsked): Promise<{ again_ms: number } | void> {
    const { budget, settings } = this.#parts
    const allowed = budget.allow()
    if (!allowed.ok) return this.#fail(job, event, allowed.detail)
    const call = await this.#call(event)
    if (call.ok) return this.#answer(job, event, call)
    const again = call.fault?.fault === 'unavailable' && job.attempts < Math.min(settings().retry.max_attempts, MOST_DEATHS)
    if (!again) return this.#fail(job, event, call.error, call)
    this.#parts.unit((unit) => recordDecision(unit, { event, call, middle: null }, this.#parts))
    return { again_ms: Math.min(call.fault?.retry_after_ms ?? 0, TIMEOUT_MS) || backoff(pauses.decision_model, job.attempts) }
  }

  #storedOf({ payload: { seq } }: Pick<Job<Asking>, 'payload'>): Stored {
    const row = this.#parts.database.first<{ payload: string; attempts: number }>('SELECT payload, attempts FROM events WHERE seq = ?', seq)
    const { payload: text, attempts } = row ?? { payload: '{}', attempts: 0 }
    return { seq, event: JSON.parse(text) as Stored['event'], attempts, text }
  }

  /** Ends the event. What the model decided is compared with reflexes in shadow mode. */
  #answer(job: Job<Asking>, event: DecisionAsked, call: DecisionCall & { ok: true }): void {
    const { unit, features, settlement } = this.#parts
    const { seq } = job.payload
    unit((ending) => {
      const log_seq = recordDecision(ending, { event, call, middle: null }, this.#parts)
      this.#done(ending, job)
      const { scope, id, meta } = event
      const decided = [{ seq, scope, id, trace_id: meta.trace_id }]
      for (const feature of features) feature.eventsDecided?.(ending, decided, decisionOf(call))
      settlement.end(ending, [seq], { status: 'completed', outcome: { by: 'decision', log_seq } })
    })
  }

  #fail(job: Job<Asking>, event: DecisionAsked, reason: string, call?: DecisionCall): void {
    const { unit, settlement } = this.#parts
    const { seq } = job.payload
    unit((ending) => {
      const log_seq = call && recordDecision(ending, { event, call, middle: null }, this.#parts)
      this.#done(ending, job)
      const outcome = { by: 'failure' as const, reason, ...(log_seq !== undefined && { log_seq }) }
      settlement.end(ending, [seq], { status: 'dead_lettered', outcome, error: reason })
    })
  }
}

/** Short, since a turn decides if there is no answer. */
const MIDDLE_TIMEOUT_MS = 5000
/** The pause after a failure to reach the model. */
const AWAY_MS = 10_000
const RECENT = { max_events: 20, max_chars: 4000 }

type MiddleParts = Lanes & { agents: AgentRegistry; actions: Actions; sockets: Pick<Sockets, 'reply'>; middle_proof: MiddleProof }
type MiddleQuestion = { stored: Stored; setting: DecisionModelSetting; author: ReflexVersion; state: JsonFields }
type MiddleDecided = MiddleQuestion & { call: DecisionCall; judged: MiddleJudgement }

/**
 * The plane between reflexes and turns: the decision model of the scope's settings decides on an
 * event that would start a turn. An answer that is sure enough is an action, which passes the same
 * permits and the same lane as an action of a reflex. Otherwise, also in an outage, the event is
 * released, and a turn considers it. `end` removes the job in the unit that decides.
 */
class Middle {
  readonly #parts: MiddleParts
  /** Until then the model is not asked, since it was not available. */
  #away_until = 0

  constructor(parts: MiddleParts) {
    this.#parts = parts
  }

  takes(event: Stored['event']): boolean {
    const { decision_model: setting, paused } = this.#parts.settings()
    return paused !== true && setting !== undefined && isAskedAbout(setting, event)
  }

  async ask(stored: Stored, end: (unit: Unit) => void): Promise<void> {
    const { settings, budget, memory, middle_proof, env, now, hide } = this.#parts
    const setting = settings().decision_model
    if (!setting || !budget.allow().ok || now() < this.#away_until) return this.release(stored.seq, end)
    const { id: _id, scope: _scope, meta: _meta, ...event } = stored.event
    const state = { event, recent: memory.live.summarize(RECENT) } as unknown as JsonFields
    const name = setting.model ?? decisionModelName(env)
    const questions = modelQuestions({ [setting.name]: setting.question })
    const asked = { state, questions }
    const call = await askDecision(() => resolveDecisionModel(name, env), asked, {
      name,
      timeout_ms: MIDDLE_TIMEOUT_MS,
      now,
      hide,
      own_prices: ownPricesOf(env),
    })
    if (!call.ok && call.fault?.fault === 'unavailable') this.#away_until = now() + (call.fault.retry_after_ms ?? AWAY_MS)
    const author = middle_proof.author(setting)
    this.#decide({ stored, setting, author, state, call, judged: this.#judge({ stored, setting, author, state }, call) }, end)
  }

  /** Leaves an event to the turn, unless the scope has another agent by now, which starts none. */
  release(seq: number, end: (unit: Unit) => void): void {
    const { unit, inbox, turns, settings, agent, settlement } = this.#parts
    const reason = `agent ${agent().name} has no trigger`
    unit((unit) => {
      end(unit)
      if (agent().trigger !== null) inbox.unhold(unit, seq)
      else settlement.end(unit, [seq], { status: 'completed', outcome: { by: 'perceive', reason } })
    })
    turns.arrived({ urgent: false, interrupts: settings().overlap === 'interrupt' })
  }

  #judge({ stored: { event }, setting, author }: MiddleQuestion, call: DecisionCall): MiddleJudgement {
    if (!call.ok) return { score: 0, left: 'failed', detail: call.error, action: null, permitted: null }
    const { middle_proof, scope, agents, toolbox, memory, now } = this.#parts
    const at = now()
    const allow = (action: Action) =>
      permit(action, { scope, event, version: author, toolbox, agents, scratch: memory.live.scratch, now: at })
    const rules = { setting, event, threshold: middle_proof.threshold(setting), permit: allow }
    const judged = judge(wireAnswers(call.result), rules)
    const obstacle = judged.left === null && judged.action ? middle_proof.obstacle(setting, event, judged.action, at) : null
    return obstacle ? { ...judged, ...obstacle } : judged
  }

  #decide(decided: MiddleDecided, end: (unit: Unit) => void): void {
    const { unit, middle_proof, sockets, jobs, turns } = this.#parts
    const { stored, judged, author } = decided
    const { seq, event } = stored
    const { action, left, score } = judged
    if (left !== null) {
      if (action) middle_proof.wait(seq, { event_type: event.type, score, action, version: author.version, audited: left === 'audit' })
      return this.release(seq, (unit) => {
        this.#record(unit, decided)
        end(unit)
      })
    }
    unit((unit) => {
      const log_seq = this.#record(unit, decided)
      end(unit)
      this.#carryOut(unit, decided, log_seq)
    })
    if (action?.action_type === 'reply') sockets.reply({ turn_id: null, event_id: event.id, content: action.content })
    jobs.run()
    turns.consider()
  }

  /** As the action of a reflex: at once, or by a job that holds the event until it has ended. */
  #carryOut(unit: Unit, { stored, judged: { action, permitted }, author }: MiddleDecided, log_seq: number): void {
    const { actions, settlement, memory, log } = this.#parts
    if (!action || !permitted) return
    unit.count({ reflex_actions: 1 })
    actions.add(unit, { version: author, action, permitted, reused: false }, stored, log_seq)
    if (permitted.lane) return
    const head = childHead(reflexHead(stored.event, author.id))
    const { id: reflex_id } = author
    if (action.action_type === 'reply')
      unit.log({ ...head, kind: 'reply-sent', turn_id: null, reflex_id, content: log.clean(action.content) as string })
    if (action.action_type === 'set_scratch') {
      memory.setScratch(unit, action.key, action.value)
      const { key, value } = log.clean({ key: action.key, value: action.value }, head.trace_id) as { key: string; value: unknown }
      unit.log({ ...head, kind: 'scratch-set', key, value, reflex_id })
    }
    const leaves = action.consume === true
    settlement.end(unit, [stored.seq], { status: 'completed', outcome: { by: 'decision', log_seq }, leaves })
    memory.trim(unit)
  }

  #record(unit: Unit, { stored: { event }, setting, author, state, call, judged }: MiddleDecided): number {
    const { log, log_parts, basis, middle_proof } = this.#parts
    const { action, score, left, detail } = judged
    const quotes = log.masks.of(event.meta.trace_id)
    const middle: NonNullable<DecisionMade['middle']> = {
      decision_id: author.id,
      version: author.version,
      basis: basis(unit),
      state_hash: log_parts.put(unit, state, { quotes }),
      score,
      threshold: middle_proof.threshold(setting),
      action: action && (log.clean(action, event.meta.trace_id) as Action),
      left,
      detail,
    }
    return recordDecision(unit, { event, call, middle }, this.#parts)
  }
}

/** The decision model of a scope, and the proof of its threshold. */
export function decisionsInScope(scope: Collaborators): readonly ScopeFeature[] {
  const middle_proof = new MiddleProof({ ...scope, ...proofOf(scope) })
  const chain = () => {
    const asked = scope.settings().decision_model
    if (!asked) return {}
    const { name, model = decisionModelName(scope.env), types = null } = asked
    return { decision_model: { name, model, types, threshold: middle_proof.threshold(asked) } }
  }
  return [middle_proof, new DecisionModelCalls({ ...scope, middle_proof }), { name: 'chain of the decision model', chain }]
}
