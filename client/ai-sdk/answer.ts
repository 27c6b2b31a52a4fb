import type { UIMessageChunk } from 'ai'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import { messageEntry } from '../../src/traces/message-run.ts'
import type { Delta } from '../socket.ts'

/** Ends of a turn after which its text is not the answer: another turn follows. */
const TAKEN_BACK: ReadonlySet<string> = new Set(['failed', 'timeout', 'interrupted', 'refused', 'waiting', 'lost'])

/** Texts of turns that were streamed, also before the log named the turn's events. */
export type Partials = Map<string, string>

/** The id of the assistant's message that answers an event. */
export const answerId = (event_id: string): string => `answer:${event_id}`

/**
 * Converts the log entries and deltas about one event into chunks of a message. The replies in the
 * log are authoritative: streamed text that differs from them, or that belongs to a turn that
 * failed, is replaced.
 */
export class ChatAnswer {
  readonly #event_id: string
  readonly #partials: Partials
  #turn_id: string | null = null
  /** The text of the turn so far, and of its current step. */
  #said = ''
  #step = ''
  #replies: string[] = []
  /** The number of text parts, of which the last may be open. */
  #parts = 0
  #is_open = false
  readonly #tools = new Set<string>()
  /** True after the event has ended. */
  done = false

  constructor(event_id: string, partials: Partials = new Map()) {
    this.#event_id = event_id
    this.#partials = partials
  }

  begin(): UIMessageChunk[] {
    return [{ type: 'start', messageId: answerId(this.#event_id) }, { type: 'start-step' }]
  }

  delta(delta: Delta): UIMessageChunk[] {
    if (this.done) return []
    if (delta.turn_id === null) return delta.event_id === this.#event_id ? this.#say(delta.content) : []
    const { turn_id, content, from } = delta
    const so_far = from === 0 ? content : (this.#partials.get(turn_id) ?? '') + content
    // Only the turn in flight is streamed.
    if (!this.#partials.has(turn_id)) this.#partials.clear()
    this.#partials.set(turn_id, so_far)
    return turn_id === this.#turn_id ? this.#becomes(so_far) : []
  }

  entry(logged: LogEntry): UIMessageChunk[] {
    const entry = this.done ? null : messageEntry(logged)
    if (!entry) return []
    const is_about = entry.event_ids.includes(this.#event_id)
    switch (entry.kind) {
      case 'turn-started':
        return is_about ? this.#begins(entry.turn_id) : []
      case 'turn-ended':
        return entry.turn_id === this.#turn_id && TAKEN_BACK.has(entry.status) ? this.#takeBack() : []
      case 'reply-sent':
        return entry.turn_id === this.#turn_id && (entry.turn_id !== null || is_about) ? this.#reply(entry.content) : []
      case 'effect-started':
        return 'turn_id' in entry.cause && entry.cause.turn_id === this.#turn_id ? this.#calls(entry) : []
      case 'effect-ended':
        if (!this.#tools.has(entry.effect_id)) return is_about && entry.status === 'reused' ? [...this.#calls(entry), called(entry)] : []
        return [called(entry)]
      case 'approval-requested': {
        const { approval_id, skill_id, version, reason } = entry
        return is_about ? [{ type: 'data-approval', id: approval_id, data: { approval_id, skill_id, version, reason } }] : []
      }
      case 'event-ended':
        return is_about ? this.#ends(entry) : []
      case 'approval-decided':
      case 'skill-decided':
      case 'run-ended':
      case 'reflex-fired':
        break
    }
    return []
  }

  #begins(turn_id: string): UIMessageChunk[] {
    const taken_back = this.#said === '' ? [] : this.#takeBack()
    this.#turn_id = turn_id
    return [...taken_back, ...this.#becomes(this.#partials.get(turn_id) ?? '')]
  }

  /** Ends the text so far; a step for each call keeps its part when text is taken back. */
  #calls({ effect_id, tool, input }: { effect_id: string; tool: string; input?: unknown }): UIMessageChunk[] {
    this.#tools.add(effect_id)
    const closed = this.#close()
    this.#step = ''
    const call = { type: 'tool-input-available', toolCallId: effect_id, toolName: tool, input: input ?? null, dynamic: true } as const
    return [...closed, call, { type: 'start-step' }]
  }

  #reply(content: string): UIMessageChunk[] {
    this.#replies.push(content)
    return this.#settle(this.#replies.join('\n\n'))
  }

  /** Completes the streamed text to `whole`, or replaces it. Some agents reply the last step. */
  #settle(whole: string): UIMessageChunk[] {
    for (const said of [this.#said, this.#step.trimStart()]) {
      if (said.startsWith(whole)) return []
      if (whole.startsWith(said)) return this.#say(whole.slice(said.length))
    }
    return [...this.#takeBackText(), ...this.#say(whole)]
  }

  #becomes(so_far: string): UIMessageChunk[] {
    if (so_far.startsWith(this.#said)) return this.#say(so_far.slice(this.#said.length))
    return [...this.#takeBackText(), ...this.#say(so_far)]
  }

  #say(words: string): UIMessageChunk[] {
    this.#said += words
    this.#step += words
    const delta = this.#is_open ? words : words.trimStart()
    if (delta === '') return []
    const start: UIMessageChunk[] = this.#is_open ? [] : [{ type: 'text-start', id: String((this.#parts += 1)) }]
    this.#is_open = true
    return [...start, { type: 'text-delta', id: String(this.#parts), delta }]
  }

  #close(): UIMessageChunk[] {
    if (!this.#is_open) return []
    this.#is_open = false
    return [{ type: 'text-end', id: String(this.#parts) }]
  }

  #takeBack(): UIMessageChunk[] {
    this.#turn_id = null
    this.#replies = []
    return this.#takeBackText()
  }

  #takeBackText(): UIMessageChunk[] {
    this.#said = ''
    this.#step = ''
    this.#is_open = false
    return [{ type: 'reset-step' }]
  }

  #ends({ status, outcome, error }: LogEntry & { kind: 'event-ended' }): UIMessageChunk[] {
    this.done = true
    if (status === 'dead_lettered') return [...this.#close(), { type: 'error', errorText: error ?? 'the event became a dead letter' }]
    if (status === 'cancelled')
      return [...this.#close(), { type: 'abort', reason: outcome.by === 'cancel' ? outcome.reason : 'the turn was cancelled' }]
    return [...this.#close(), { type: 'finish-step' }, { type: 'finish', finishReason: 'stop' }]
  }
}

function called({ effect_id, status, output, error }: LogEntry & { kind: 'effect-ended' }): UIMessageChunk {
  const head = { toolCallId: effect_id, dynamic: true } as const
  if (status === 'ok' || status === 'reused') return { ...head, type: 'tool-output-available', output: output ?? null }
  return { ...head, type: 'tool-output-error', errorText: error ?? status }
}
