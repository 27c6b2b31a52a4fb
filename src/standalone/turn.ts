import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { wrappedAnswer, wrappedResult, type WrappedAnswer } from '../agent/wrapped.ts'
import type { EntryHead, Usage } from '../contract/log-entry.ts'
import type { Act } from '../contract/reflex.ts'
import { meter, readable, requestOf, type ModelCall } from '../models/model-call.ts'
import { ModelTurn, type ModelTurnOptions } from '../skills/model/model-turn.ts'
import { modelForTurns } from '../skills/model/model.ts'
import { userText } from '../skills/model/prompt.ts'
import { actsOf } from '../skills/session/context.ts'
import type { ProposalSession } from '../skills/session/session.ts'
import { childHead } from '../traces/ids.ts'
import { addedUsage } from '../traces/usage.ts'
import type { ProcessLog } from './process-log.ts'

/** Characters of the users' messages by which learning knows what a turn was for. */
const MOST_SAID = 2000

/** `basis`: the hash of the settings. */
type LoggedTurnParts = { log: ProcessLog; head: EntryHead; agent: string; basis: string; now: () => number }

export type LoggedCall = Omit<ModelCall, 'fault' | 'cancelled'>

/**
 * A turn of a wrapped model in the log: what its model was asked and answered, and what its user's
 * agent asked and got.
 */
export class LoggedTurn extends ModelTurn {
  readonly head: EntryHead
  readonly #parts: LoggedTurnParts
  readonly #acts: Act[]
  readonly #answers: WrappedAnswer[] = []
  #usage: Usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
  readonly #models = new WeakMap<LanguageModelV4, LanguageModelV4>()
  #began: number | null = null

  constructor(options: ModelTurnOptions, parts: LoggedTurnParts) {
    const acts: Act[] = []
    super({ ...options, session: noting(options.session, acts) })
    this.#acts = acts
    this.#parts = parts
    this.head = parts.head
  }

  /** The model with the turn's skills. What goes into it and comes out of it is logged. */
  modelOf(model: LanguageModelV4): LanguageModelV4 {
    const known = this.#models.get(model)
    if (known) return known
    const { now } = this.#parts
    const inner = meter(model, { now, allow: () => ALLOWED, record: (call, params) => this.called(call, askedOf(params)) })
    const skilled = modelForTurns(inner, () => this)
    const begin = () => {
      this.begin()
      return ALLOWED
    }
    const record = (call: ModelCall, params: LanguageModelV4CallOptions) => this.gave(wrappedAnswer(call), askedOf(params))
    const outer = meter(skilled, { now, allow: begin, record })
    this.#models.set(model, outer)
    return outer
  }

  now(): number {
    return this.#parts.now()
  }

  /** The user's agent asks. */
  begin(): void {
    if (this.#began !== null) return
    const { log, agent, basis, now, head } = this.#parts
    this.#began = now()
    const saw = { seqs: [], count: 0, scratch: {} }
    log.append(head, { kind: 'turn-started', turn_id: head.span_id, agent, attempts: 1, considered: [], saw, since: this.#began, basis })
  }

  /** The model answered, or its call failed. */
  called(call: LoggedCall, { prompt, request }: Pick<AskedOfTurn, 'prompt' | 'request'>): void {
    const { log, head } = this.#parts
    const { model, status, prompt_hash, finish_reason, error, input_tokens, output_tokens, cost_usd, duration_ms } = call
    const usage = { input_tokens, output_tokens, cost_usd, model_calls: 1 }
    this.#usage = addedUsage(this.#usage, usage)
    log.append(
      { ...childHead(head), duration_ms },
      {
        kind: 'model-called',
        turn_id: head.span_id,
        model,
        status,
        prompt_hash,
        prompt: prompt.map((message) => log.put(message)),
        request: log.put(request),
        content: log.clean(call.content.map(readable)),
        finish_reason,
        error: log.clean(error) as string | null,
        usage,
      },
    )
  }

  /** The user's agent gets an answer. One that calls no tools of the agent ends the turn. */
  gave(answer: WrappedAnswer, { prompt, request, text }: AskedOfTurn): void {
    const { log, head, now } = this.#parts
    const said = log.clean({ text: text.slice(0, MOST_SAID) }) as { text: string }
    const parts = { prompt: prompt.map((message) => log.put(message)), request: log.put(request) }
    log.append(childHead(head), { kind: 'turn-asked', turn_id: head.span_id, ...said, ...parts })
    this.#answers.push(answer)
    const { error } = answer
    if (error === null && answer.content.some(isPending)) return
    const ending = error === null ? { status: 'result' as const, result: log.clean(wrappedResult(this.#answers)) } : FAILED
    log.append(
      { ...head, duration_ms: now() - (this.#began ?? now()) },
      {
        kind: 'turn-ended',
        turn_id: head.span_id,
        started_seq: 0,
        ...ending,
        error: log.clean(error) as string | null,
        cleared: 0,
        usage: this.#usage,
        scratch: {},
        acts: log.clean([...this.#acts]) as Act[],
      },
    )
  }
}

const ALLOWED = { ok: true } as const
const FAILED = { status: 'failed', result: null } as const

/** A call of the user's agent: the messages, the tools and options, and the users' words. */
export type AskedOfTurn = { prompt: readonly object[]; request: object; text: string }
const askedOf = (params: LanguageModelV4CallOptions): AskedOfTurn => ({
  prompt: params.prompt,
  request: requestOf(params),
  text: userText(params.prompt),
})

/** True for a tool call whose output the agent has to bring. */
const isPending = (part: unknown): boolean =>
  typeof part === 'object' &&
  part !== null &&
  'type' in part &&
  part.type === 'tool-call' &&
  !('providerExecuted' in part && part.providerExecuted === true)

/** The session, which notes the acts of the turn. */
const noting = (session: ProposalSession, acts: Act[]): ProposalSession => ({
  bulletin: (text) => session.bulletin(text),
  propose: async (proposal, request) => {
    const result = await session.propose(proposal, request)
    if (!request.dry_run) acts.push(...actsOf(proposal, result))
    return result
  },
})
