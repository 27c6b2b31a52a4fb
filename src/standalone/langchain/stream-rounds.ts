import { AIMessageChunk } from '@langchain/core/messages'
import { HeldText } from '../../skills/model/held-text.ts'
import { seam } from '../../skills/model/rounds.ts'
import { changed, chunkOf, contentWithText, indexesIn, type Reply, withMovedIndexes } from './chat-messages.ts'
import type { ChatRounds } from './chat-rounds.ts'

/** Opens the model's stream over what `rounds.next()` gives. */
type OpenStream = () => Promise<AsyncIterable<Reply>>

/** All rounds as one stream. A reader that leaves early fails the call. */
export const streamRounds = (rounds: ChatRounds, open: OpenStream): AsyncGenerator<AIMessageChunk> =>
  rounds.call.watched(allRounds(rounds, open))

async function* allRounds(rounds: ChatRounds, open: OpenStream): AsyncGenerator<AIMessageChunk> {
  let before: Passed = { id: undefined, said: '', indexes: 0 }
  for (;;) {
    const round = new StreamedRound(before)
    for await (const reply of await open()) yield round.pass(chunkOf(reply))
    const { whole } = round
    const end = await rounds.ended(whole)
    const rest = round.rest(end.visible)
    if (!end.again) {
      yield changed(rest, { response_metadata: { ...whole.response_metadata, ...rounds.metadata(whole) } })
      return
    }
    if (rest.text !== '') yield rest
    before = round.passed
  }
}

/** The output so far: its text, message id and number of part indexes. */
type Passed = { id: string | undefined; said: string; indexes: number }

/**
 * Streams one round: text as far as it may pass, and everything else at once. Only the last round's
 * `response_metadata` are sent, because readers add them up.
 */
class StreamedRound {
  readonly #held = new HeldText()
  readonly #before: Passed
  #whole: AIMessageChunk | null = null
  #id: string | undefined
  #said: string

  constructor(before: Passed) {
    this.#before = before
    this.#id = before.id
    this.#said = before.said
  }

  get whole(): AIMessageChunk {
    return this.#whole ?? new AIMessageChunk('')
  }

  get passed(): Passed {
    return { id: this.#id, said: this.#said, indexes: this.#before.indexes + indexesIn(this.#whole?.content ?? '') }
  }

  pass(chunk: AIMessageChunk): AIMessageChunk {
    this.#whole = this.#whole ? this.#whole.concat(chunk) : chunk
    this.#id ??= chunk.id
    const content = contentWithText(chunk.content, this.#spoken(this.#held.push(chunk.text)))
    const passed = changed(chunk, { content: withMovedIndexes(content, this.#before.indexes), response_metadata: {} })
    return this.#named(passed)
  }

  /** The held part of the visible text, as a last piece. */
  rest(visible: string): AIMessageChunk {
    const text = this.#spoken(visible.slice(this.#held.passed))
    const parts = Array.isArray(this.#whole?.content) && text !== '' ? [{ type: 'text', text }] : text
    return this.#named(new AIMessageChunk({ content: parts }))
  }

  #spoken(text: string): string {
    const spoken = this.#said === this.#before.said ? seam(this.#said, text) + text : text
    this.#said += spoken
    return spoken
  }

  /** All pieces have the first one's id: each round's model makes one of its own. */
  #named(chunk: AIMessageChunk): AIMessageChunk {
    if (this.#id !== undefined) chunk._updateId(this.#id)
    return chunk
  }
}
