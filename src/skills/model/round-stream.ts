import type { LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { StreamContent } from '../../models/stream-content.ts'
import { HeldText } from './held-text.ts'
import { seam, type RoundEnd, type Rounds } from './rounds.ts'

export type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>
type TextStart = Extract<LanguageModelV4StreamPart, { type: 'text-start' }>
type TextDelta = Extract<LanguageModelV4StreamPart, { type: 'text-delta' }>
type TextEnd = Extract<LanguageModelV4StreamPart, { type: 'text-end' }>

/**
 * Streams one round to the caller: text as far as it may pass, without the protocol's own parts.
 */
export class RoundStream {
  finish: FinishPart | null = null
  /** The stream reported an error: blocks of this answer are ignored. */
  failed = false
  readonly #rounds: Rounds
  readonly #round: number
  readonly #parts = new StreamContent()
  readonly #held = new HeldText()
  /** Ids of texts whose start was passed on, and of native calls that were not. */
  readonly #begun = new Set<string>()
  readonly #starts = new Map<string, TextStart>()
  readonly #own = new Set<string>()
  readonly #before: string
  #said: string

  constructor(rounds: Rounds, { round, said }: { round: number; said: string }) {
    this.#rounds = rounds
    this.#round = round
    this.#before = said
    this.#said = said
  }

  get content(): LanguageModelV4Content[] {
    return this.#parts.parts
  }

  get said(): string {
    return this.#said
  }

  *pass(part: LanguageModelV4StreamPart): Generator<LanguageModelV4StreamPart> {
    this.#parts.add(part)
    if (part.type === 'text-start') this.#starts.set(part.id, part)
    else if (part.type === 'text-delta') yield* this.#delta(part, this.#rounds.readsText ? this.#held.push(part.delta) : part.delta)
    else if (part.type === 'text-end') yield* this.#end(part)
    else if (part.type === 'finish') this.finish = part
    else if (part.type === 'error') yield* this.#fail(part)
    else if (part.type === 'stream-start' || part.type === 'response-metadata') yield* this.#round === 1 ? [part] : []
    else if (!this.#isOwn(part)) yield this.#renamed(part)
  }

  /** The held text that turned out to be visible, and the text that replaces the rest. */
  *rest({ visible, cut_at }: Pick<RoundEnd, 'visible' | 'cut_at'>): Generator<LanguageModelV4StreamPart> {
    const text = visible.slice(this.#rounds.readsText ? this.#held.passed : cut_at)
    if (text === '') return
    const id = `reflex-${this.#round}`
    yield { type: 'text-start', id }
    yield { type: 'text-delta', id, delta: this.#spoken(text) }
    yield { type: 'text-end', id }
  }

  *#delta(part: TextDelta, text: string): Generator<LanguageModelV4StreamPart> {
    if (text === '') return
    const id = this.#idOf(part.id)
    if (!this.#begun.has(part.id)) {
      this.#begun.add(part.id)
      yield { ...(this.#starts.get(part.id) ?? { type: 'text-start' as const }), id }
    }
    yield { ...part, id, delta: this.#spoken(text) }
  }

  *#end(part: TextEnd): Generator<LanguageModelV4StreamPart> {
    if (this.#begun.delete(part.id)) yield { ...part, id: this.#idOf(part.id) }
  }

  *#fail(part: LanguageModelV4StreamPart): Generator<LanguageModelV4StreamPart> {
    this.failed = true
    yield part
  }

  #spoken(text: string): string {
    const spoken = this.#said === this.#before ? seam(this.#before, text) + text : text
    this.#said += spoken
    return spoken
  }

  #isOwn(part: LanguageModelV4StreamPart): boolean {
    if (part.type === 'tool-call') return this.#rounds.isOwn(part)
    if (part.type === 'tool-input-start' && this.#rounds.isOwn(part)) this.#own.add(part.id)
    return (
      (part.type === 'tool-input-start' || part.type === 'tool-input-delta' || part.type === 'tool-input-end') && this.#own.has(part.id)
    )
  }

  #renamed(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart {
    const isReasoning = part.type === 'reasoning-start' || part.type === 'reasoning-delta' || part.type === 'reasoning-end'
    return isReasoning ? { ...part, id: this.#idOf(part.id) } : part
  }

  /** The model numbers its parts from the start in each round. */
  #idOf(id: string): string {
    return this.#round === 1 ? id : `${this.#round}:${id}`
  }
}
