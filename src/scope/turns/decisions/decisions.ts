import { modelQuestions, modelState, replyOf, wireAnswers } from '../../../agent/decisions/answers.ts'
import type { DecisionAsked } from '../../../contract/decisions/event.ts'
import type { Usage } from '../../../contract/log-entry.ts'
import { askDecision, type DecisionCall } from '../../../models/decisions/ask.ts'
import { decisionModelName, fullName, resolveDecisionModel } from '../../../models/decisions/resolve.ts'
import type { Lanes } from '../../effects/wiring.ts'
import type { Stored } from '../../inbox/event-row.ts'
import type { Job } from '../../jobs.ts'
import { childHead, headOf } from '../../log/spans.ts'
import type { Unit } from '../../storage/unit.ts'
import { MOST_DEATHS } from '../../upkeep/guard.ts'

/** Calls of the decision model at once in one scope. */
const AT_ONCE = 32
const TIMEOUT_MS = 20_000
const FIRST_RETRY_MS = 250

type Asking = { seq: number }

/**
 * Asks the decision model about events that no reflex answered. A call is a job: `decide` is pure,
 * and a turn would wait for the turn in flight. Nothing in the scope waits for a job. Its row is
 * written in the unit that accepts the event, which it holds, and deleted in the unit that ends the
 * event. After a crash in between, the model is asked again.
 */
export class Decisions {
  readonly #parts: Lanes

  constructor(parts: Lanes) {
    this.#parts = parts
    parts.jobs.handle<Asking>('decision', {
      work: 'action',
      at_once: AT_ONCE,
      attempts: MOST_DEATHS,
      run: (job) => this.#ask(job),
      giveUp: (job, reason) => this.#fail(job, reason),
    })
  }

  /** In the unit that stores the event. */
  add(unit: Unit, { seq }: Pick<Stored, 'seq'>): void {
    this.#parts.jobs.add(unit, { kind: 'decision', key: String(seq), payload: { seq } satisfies Asking })
  }

  async #ask(job: Job<Asking>): Promise<{ again_ms: number } | void> {
    const { budget, env, hide, now, settings } = this.#parts
    const allowed = budget.allow()
    if (!allowed.ok) return this.#fail(job, allowed.detail)
    const event = this.#eventOf(job)
    const name = fullName(decisionModelName(env), event.model)
    const asked = { state: modelState(event.state), questions: modelQuestions(event.questions) }
    const call = await askDecision(() => resolveDecisionModel(name, env), asked, { name, timeout_ms: TIMEOUT_MS, now, hide })
    if (call.ok) return this.#answer(job, event, call)
    const again = call.fault?.fault === 'unavailable' && job.attempts < Math.min(settings().retry.max_attempts, MOST_DEATHS)
    if (!again) return this.#fail(job, call.error, call)
    this.#parts.unit((unit) => this.#record(unit, event, call))
    return { again_ms: Math.min(call.fault?.retry_after_ms ?? 0, TIMEOUT_MS) || FIRST_RETRY_MS * 2 ** job.attempts }
  }

  #eventOf({ payload: { seq } }: Job<Asking>): DecisionAsked {
    const row = this.#parts.database.first<{ payload: string }>('SELECT payload FROM events WHERE seq = ?', seq)
    return JSON.parse(row?.payload ?? '{}') as DecisionAsked
  }

  /** Ends the event. What the model decided is compared with reflexes in shadow mode. */
  #answer({ key, payload: { seq } }: Job<Asking>, event: DecisionAsked, call: DecisionCall & { ok: true }): void {
    const { unit, jobs, proving, settlement } = this.#parts
    unit((ending) => {
      const { log_seq, reply } = this.#record(ending, event, call)
      jobs.done(ending, 'decision', key)
      const { scope, id, meta } = event
      proving.decided(ending, [{ seq, scope, id, trace_id: meta.trace_id }], { by: 'turn', acts: [{ act: 'reply', content: reply }] })
      settlement.end(ending, [seq], { status: 'completed', outcome: { by: 'decision', log_seq } })
    })
  }

  #fail(job: Job<Asking>, reason: string, call?: DecisionCall): void {
    const { unit, jobs, settlement, guard } = this.#parts
    const { seq } = job.payload
    unit((ending) => {
      const log_seq = call && this.#record(ending, this.#eventOf(job), call).log_seq
      jobs.done(ending, 'decision', job.key)
      const outcome = { by: 'failure' as const, reason, ...(log_seq !== undefined && { log_seq }) }
      settlement.end(ending, [seq], { status: 'dead_lettered', outcome, error: reason })
      guard.done({ kind: 'action', id: job.key })
    })
  }

  /** Logs and meters a call, which was paid for even if it failed. */
  #record(unit: Unit, event: DecisionAsked, call: DecisionCall): { log_seq: number; reply: string } {
    const { input_tokens, output_tokens, cost_usd, duration_ms, model } = call
    const usage: Usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
    this.#parts.budget.spend(unit, input_tokens + output_tokens)
    unit.count({ model_calls: 1, input_tokens, output_tokens, cost_usd: cost_usd ?? 0 })
    const answers = call.ok ? wireAnswers(call.result) : null
    const said = {
      status: call.ok ? ('ok' as const) : ('failed' as const),
      answered_by: call.ok ? call.result.response.modelId : null,
      answers,
      error: call.ok ? null : call.error,
    }
    const log_seq = unit.log({ ...childHead(headOf(event)), duration_ms, kind: 'decision-made', model, ...said, usage })
    return { log_seq, reply: answers ? replyOf(answers) : '' }
  }
}
