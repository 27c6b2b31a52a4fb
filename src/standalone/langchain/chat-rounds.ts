import { type BaseMessage, HumanMessage } from '@langchain/core/messages'
import { bulletinsIn } from '../../skills/bulletin/bulletin.ts'
import { isJsonFields } from '../../base/json.ts'
import { questionsOf, readText, type ReadText } from '../../skills/model/intents.ts'
import type { ModelTurn } from '../../skills/model/model-turn.ts'
import { MOST_ROUNDS } from '../../skills/model/rounds.ts'
import { settleIntents, shownReports, type SkillReport } from '../../skills/model/settle-intents.ts'
import { callIds, hasToolCalls, isSystem, type Reply, userTextOf, withoutForgeries, withSystemText } from './chat-messages.ts'

/**
 * `visible` is the part of the round's text that the caller gets; `again` says that the model is to
 * be called again.
 */
type ChatRoundEnd = { visible: string; again: boolean }

/** The field of an answer's `response_metadata` that tells of its proposals. */
const METADATA = 'reflex'

/** The rounds of one call of a chat model: the same as `Rounds`, over LangChain's messages. */
export class ChatRounds {
  readonly #turn: ModelTurn
  readonly #text: string
  readonly #signal: AbortSignal | undefined
  readonly #asked: readonly BaseMessage[]
  /**
   * The number of the caller's messages, which distinguishes a repeated call from the turn's next
   * call.
   */
  readonly #over: number
  readonly #reports: SkillReport[] = []
  /**
   * The caller's messages do not hold these. An earlier try of the same call may have left some.
   */
  readonly #exchanged: BaseMessage[]
  readonly #results: string[]
  #rounds = 0

  constructor(turn: ModelTurn, messages: readonly BaseMessage[], signal: AbortSignal | undefined) {
    if (messages.some((message) => isSystem(message) && bulletinsIn(message.text) > 0)) {
      throw new Error('the model is wrapped twice: its messages already hold a skill bulletin')
    }
    this.#turn = turn
    this.#signal = signal
    this.#over = messages.length
    this.#asked = withEarlierResults(withoutForgeries(messages))
    this.#text = turn.options.text ?? userTextOf(messages)
    const left = turn.unfinished?.over === messages.length ? turn.unfinished : null
    this.#exchanged = left ? [...(left.messages as BaseMessage[])] : []
    this.#results = left ? [...left.results] : []
  }

  /** The call did not come to its end. */
  failed(): void {
    this.#turn.ended({ failed: true })
  }

  next(): BaseMessage[] {
    this.#signal?.throwIfAborted()
    return withSystemText([...this.#asked, ...this.#exchanged], this.#rounds === 0 ? this.#turn.bulletin(this.#text) : '')
  }

  async ended(reply: Reply): Promise<ChatRoundEnd> {
    this.#rounds += 1
    this.#turn.answered()
    for (const id of callIds(reply)) this.#turn.calls.add(id)
    const read = readText(reply.text)
    const questions = questionsOf(read.intents)
    if (questions) this.#report({ kind: 'clarify', questions })
    if (read.intents.length === 0 || questions) return this.#last(read.visible)
    if (this.#rounds >= (this.#turn.options.max_rounds ?? MOST_ROUNDS)) return this.#last(this.#cutOff(read, reply))
    await this.#settle(read, reply)
    return hasToolCalls(reply) ? this.#last(read.visible) : { visible: read.visible, again: true }
  }

  /**
   * The outcomes of the proposals, for the answer's `response_metadata`. If the caller has tool
   * calls to bring back, the results of skills are included: the next call passes them to the
   * model, also in another process that has loaded the messages.
   */
  metadata(reply: Reply): Record<string, unknown> {
    if (this.#reports.length === 0 && this.#results.length === 0) return {}
    const results = hasToolCalls(reply) && this.#results.length > 0 ? { results: this.#results.join('\n') } : {}
    return { [METADATA]: { ...shownReports(this.#reports), ...results } }
  }

  /**
   * The exchange is stored in the turn before the model is called again, so that a repetition after
   * a failure does not run it twice.
   */
  async #settle({ intents }: ReadText, reply: Reply): Promise<void> {
    const { session, roles, goal_labels, entity_types } = this.#turn.options
    const situation = { ...(goal_labels ? { goal_labels } : {}), ...(entity_types ? { entity_types } : {}) }
    const request = { from: 'model', roles, text: this.#text, signal: this.#signal, ...situation } as const
    const { replies, reports } = await settleIntents(intents, { session, request })
    for (const report of reports) this.#report(report)
    const result = replies.map(({ text }) => text).join('\n')
    this.#results.push(result)
    this.#exchanged.push(reply, new HumanMessage(result))
    this.#turn.unfinished = { over: this.#over, messages: this.#exchanged, results: this.#results }
  }

  #cutOff({ visible }: ReadText, reply: Reply): string {
    const reason = `not acted upon: the answer took ${this.#rounds} rounds already`
    this.#report({ kind: 'problem', skill_id: '', status: 'refused', reason })
    const silent = visible.trim() === '' && !hasToolCalls(reply)
    return silent ? `${visible}I stopped after ${this.#rounds} rounds of skills without an answer.` : visible
  }

  #last(visible: string): ChatRoundEnd {
    this.#turn.ended({ failed: false })
    return { visible, again: false }
  }

  #report(report: SkillReport): void {
    this.#reports.push(report)
    this.#turn.options.onReport?.(report)
  }
}

/**
 * The results that earlier answers carry go behind the tool results that follow these answers:
 * never between a call and its result.
 */
function withEarlierResults(messages: readonly BaseMessage[]): BaseMessage[] {
  const whole: BaseMessage[] = []
  let waiting: BaseMessage[] = []
  for (const message of messages) {
    if (message.getType() !== 'tool') whole.push(...waiting.splice(0))
    whole.push(message)
    const told = message.getType() === 'ai' ? message.response_metadata[METADATA] : null
    if (isJsonFields(told) && typeof told['results'] === 'string') waiting = [new HumanMessage(told['results'])]
  }
  return [...whole, ...waiting]
}
