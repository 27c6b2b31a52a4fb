import {
  callIds,
  contentText,
  hasToolCalls,
  type ChatMessage,
  type PlainMessage,
  textOfMessage,
  userTextOf,
  withoutForgeries,
  withSystemText,
  roleOf,
} from './chat-messages.ts'
import { questionsOf, readText, type ReadText } from './intents.ts'
import type { ModelTurn } from './model-turn.ts'
import { MOST_ROUNDS, seam } from './rounds.ts'
import { settleIntents } from './settle-intents.ts'
import { bulletinsIn } from '../skills/bulletin.ts'

export type ChatRoundEnd = { visible: string; again: boolean; messages: unknown[] }

/** The rounds of one call of another framework's model: the same as `Rounds`, over that framework's messages. */
export class ChatRounds {
  readonly #turn: ModelTurn
  readonly #text: string
  readonly #signal: AbortSignal | undefined
  #messages: unknown[]
  #rounds = 0
  /** What of earlier rounds is not in the caller's messages, and is told again where the caller goes on with tool calls. */
  readonly #results: string[] = []

  /** `options` are those of the call: their `signal` stops the skill at hand, too. */
  constructor(turn: ModelTurn, messages: readonly unknown[], options: unknown) {
    this.#signal = (options as { signal?: AbortSignal } | undefined)?.signal
    if (messages.some((message) => roleOf(message) === 'system' && bulletinsIn(textOfMessage(message)) > 0)) {
      throw new Error('the model is wrapped twice: its messages already hold a skill bulletin')
    }
    this.#turn = turn
    this.#messages = withoutForgeries(messages)
    this.#text = turn.options.text ?? userTextOf(messages)
  }

  /** The call did not come to its end. */
  failed(): void {
    this.#turn.ended({ failed: true })
  }

  next(): unknown[] {
    this.#signal?.throwIfAborted()
    return withSystemText(this.#messages, this.#rounds === 0 ? this.#turn.bulletin(this.#text) : '')
  }

  /** `said` is what the caller was given so far. */
  async ended(reply: ChatMessage, said = ''): Promise<ChatRoundEnd> {
    this.#rounds += 1
    this.#turn.answered()
    for (const id of callIds(reply)) this.#turn.calls.add(id)
    const read = readText(contentText(reply.content))
    const { intents } = read
    const questions = questionsOf(intents)
    if (questions) this.#turn.options.onReport?.({ kind: 'clarify', questions })
    if (intents.length === 0 || questions) return this.#last(read.visible, { reply, said })
    if (this.#rounds >= (this.#turn.options.max_rounds ?? MOST_ROUNDS)) return this.#last(this.#cutOff(read), { reply, said })
    const { session, roles } = this.#turn.options
    const { replies, reports } = await settleIntents(intents, {
      session,
      request: { from: 'model', roles, text: this.#text, signal: this.#signal },
    })
    for (const report of reports) this.#turn.options.onReport?.(report)
    const result = replies.map(({ text }) => text).join('\n')
    this.#results.push(result)
    if (hasToolCalls(reply)) return this.#last(read.visible, { reply, said })
    const user: PlainMessage = { role: 'user', content: result }
    this.#messages = [...this.#messages, reply, user]
    return { visible: joined(said, read.visible), again: true, messages: this.#messages }
  }

  #cutOff({ visible }: ReadText): string {
    const reason = `not acted upon: the answer took ${this.#rounds} rounds already`
    this.#turn.options.onReport?.({ kind: 'problem', skill_id: '', status: 'refused', reason })
    return visible.trim() === '' ? `I stopped after ${this.#rounds} rounds of skills without an answer.` : visible
  }

  #last(visible: string, { reply, said }: { reply: ChatMessage; said: string }): ChatRoundEnd {
    this.#turn.ended({ failed: false })
    const results = hasToolCalls(reply) ? this.#results.join('\n') : ''
    return { visible: joined(joined(said, visible), results), again: false, messages: this.#messages }
  }
}

const joined = (before: string, after: string): string => before + seam(before, after) + after
