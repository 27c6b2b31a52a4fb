import { type BaseMessage, HumanMessage } from '@langchain/core/messages'
import { bulletinsIn } from '../../skills/bulletin/bulletin.ts'
import { isJsonFields } from '../../base/json.ts'
import { questionsOf, readText, type ReadText } from '../../skills/model/intents.ts'
import { TurnCall, type ModelTurn } from '../../skills/model/model-turn.ts'
import { shownReports } from '../../skills/model/settle-intents.ts'
import { callIds, hasToolCalls, isSystem, type Reply, userTextOf, withoutForgeries, withSystemText, usageOf } from './chat-messages.ts'

/** `visible`: the text for the caller. `again`: the model must be called again. */
type ChatRoundEnd = { visible: string; again: boolean }

/** The field of an answer's `response_metadata` that tells of its proposals. */
const METADATA = 'reflex'

/** The rounds of one call of a chat model: the same as `Rounds`, over LangChain's messages. */
export class ChatRounds {
  readonly #turn: ModelTurn
  readonly call: TurnCall
  readonly #asked: readonly BaseMessage[]
  /** The number of the caller's messages identifies a repeated call. */
  readonly #over: number
  /** Messages that the caller does not know, including messages of an earlier try. */
  readonly #exchanged: BaseMessage[]
  readonly #results: string[]

  constructor(turn: ModelTurn, messages: readonly BaseMessage[], signal: AbortSignal | undefined) {
    if (messages.some((message) => isSystem(message) && bulletinsIn(message.text) > 0)) {
      throw new Error('the model is wrapped twice: its messages already hold a skill bulletin')
    }
    this.#turn = turn
    this.#over = messages.length
    this.#asked = withEarlierResults(withoutForgeries(messages))
    this.call = new TurnCall(turn, { text: userTextOf(messages), signal })
    const left = turn.unfinished?.over === messages.length ? turn.unfinished : null
    this.#exchanged = left ? [...(left.messages as BaseMessage[])] : []
    this.#results = left ? [...left.results] : []
  }

  next(): BaseMessage[] {
    const bulletin = this.call.begin()
    return withSystemText([...this.#asked, ...this.#exchanged], bulletin)
  }

  async ended(reply: Reply): Promise<ChatRoundEnd> {
    const { input_tokens = 0, output_tokens = 0 } = usageOf(reply) ?? {}
    this.call.answered(callIds(reply), { input_tokens, output_tokens })
    const read = readText(reply.text)
    const questions = questionsOf(read.intents)
    if (questions) this.call.clarify(questions)
    if (read.intents.length === 0 || questions) return this.#last(read.visible)
    if (this.call.isLastRound) return this.#last(this.call.cutOff(read.visible, { silent: !hasToolCalls(reply) }))
    await this.#settle(read, reply)
    return hasToolCalls(reply) ? this.#last(read.visible) : { visible: read.visible, again: true }
  }

  /**
   * The outcomes for the answer's `response_metadata`. If the caller has tool calls to bring back,
   * the results of skills are included, so that the next call, in any process, has them.
   */
  metadata(reply: Reply): Record<string, unknown> {
    if (this.call.reports.length === 0 && this.#results.length === 0) return {}
    const results = hasToolCalls(reply) && this.#results.length > 0 ? { results: this.#results.join('\n') } : {}
    return { [METADATA]: { ...shownReports(this.call.reports), ...results } }
  }

  /** Stored before the next call, so that a repetition after a failure runs nothing twice. */
  async #settle({ intents }: ReadText, reply: Reply): Promise<void> {
    const replies = await this.call.settle(intents)
    const result = replies.map(({ text }) => text).join('\n')
    this.#results.push(result)
    this.#exchanged.push(reply, new HumanMessage(result))
    this.#turn.unfinished = { over: this.#over, messages: this.#exchanged, results: this.#results }
  }

  #last(visible: string): ChatRoundEnd {
    return this.call.ended({ visible, again: false })
  }
}

/** Inserts the results of earlier answers after the tool results that follow them. */
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
