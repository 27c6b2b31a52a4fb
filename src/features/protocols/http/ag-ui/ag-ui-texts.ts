import { MASK_BEGINS, maskCredentials } from '../../../../base/secrets.ts'
import type { AnswerPart } from '../../../../contract/scope-api.ts'

/** An event of AG-UI 1.0, as it is sent. */
export type UiEvent = { type: string } & Readonly<Record<string, unknown>>

/**
 * The messages of a run. Text of a turn is sent as it is made; the entry of the log, which comes
 * later, completes it. Ids count the messages of a turn, so that both have the same.
 */
export class Texts {
  #turn = ''
  #messages = 0
  /** Characters of the turn's answer that were sent. */
  #received = 0
  /** The text that was sent and is not yet in the log. */
  #pending = ''
  #open: string | null = null

  part({ turn_id, from, content }: AnswerPart): UiEvent[] {
    const left = this.#enter(turn_id)
    // After a gap, the entry of the log has the rest.
    if (from !== this.#received || content === '') return left
    this.#received += content.length
    this.#pending += content
    return [...left, ...(this.#open === null ? [this.#start()] : []), ...this.#content(content)]
  }

  /** A text of the log: only what is missing of it is sent. */
  whole(turn_id: string, content: string): UiEvent[] {
    const left = this.#enter(turn_id)
    // A pasted secret has no mask in the pieces, and one in the log.
    if (content.includes(MASK_BEGINS)) this.#pending = maskCredentials(this.#pending)
    if (this.#open !== null && content.startsWith(this.#pending))
      return [...left, ...this.#content(content.slice(this.#pending.length)), ...this.close()]
    const place = this.#open === null ? -1 : this.#pending.indexOf(content)
    if (place === -1) return [...left, ...this.close(), this.#start(), ...this.#content(content), ...this.close()]
    this.#pending = this.#pending.slice(place + content.length)
    return this.#pending.trim() === '' ? [...left, ...this.close()] : left
  }

  close(): UiEvent[] {
    if (this.#open === null) return []
    const end = { type: 'TEXT_MESSAGE_END', messageId: this.#open }
    this.#open = null
    this.#pending = ''
    return [end]
  }

  #enter(turn_id: string): UiEvent[] {
    if (turn_id === this.#turn) return []
    const left = this.close()
    this.#turn = turn_id
    this.#messages = 0
    this.#received = 0
    return left
  }

  #start(): UiEvent {
    this.#messages += 1
    this.#open = `${this.#turn}:${this.#messages}`
    return { type: 'TEXT_MESSAGE_START', messageId: this.#open, role: 'assistant' }
  }

  #content(delta: string): UiEvent[] {
    return delta === '' ? [] : [{ type: 'TEXT_MESSAGE_CONTENT', messageId: this.#open, delta }]
  }
}
