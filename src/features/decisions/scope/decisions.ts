import { backoff, pauses } from '../../../base/backoff.ts'
import { modelQuestions, modelState, replyOf, wireAnswers } from '../agent/answers.ts'
import { isAsked, type DecisionAsked } from '../../../contract/decision-asked.ts'
import type { Usage } from '../../../contract/log-entry.ts'
import type { Decision } from '../../../contract/reflex.ts'
import { askDecision, type DecisionCall } from '../models/ask.ts'
import { decisionModelName, fullName, resolveDecisionModel } from '../models/resolve.ts'
import { ownPricesOf } from '../../../models/own-prices.ts'
import type { Event } from '../../../core/event.ts'
import type { Applied, ScopeFeature, Next } from '../../../engine/feature.ts'
import type { Stored } from '../../../engine/inbox/inbox.ts'
import type { Job } from '../../../engine/jobs.ts'
import type { Unit } from '../../../engine/storage/unit.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import { noUsage } from '../../../engine/turns/turn.ts'
import { Middle, type MiddleParts } from './middle.ts'
import { recordDecision } from './record.ts'

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
export class DecisionModelCalls implements ScopeFeature {
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
    const { seq } = decision.one
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
