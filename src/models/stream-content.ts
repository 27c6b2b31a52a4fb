import type { LanguageModelV4Reasoning, LanguageModelV4StreamPart, LanguageModelV4Text, LanguageModelV4ToolCall } from '@ai-sdk/provider'

type Written = LanguageModelV4Text | LanguageModelV4Reasoning

/**
 * Puts a stream's deltas together again into the parts that `doGenerate` would have answered: what
 * was written and called, in its order.
 */
export class StreamContent {
  readonly parts: (Written | LanguageModelV4ToolCall)[] = []
  readonly #open = new Map<string, Written>()

  add(part: LanguageModelV4StreamPart): void {
    if (part.type === 'tool-call') this.parts.push(part)
    if (part.type === 'text-start') this.#start('text', part.id)
    if (part.type === 'reasoning-start') this.#start('reasoning', part.id)
    if (part.type === 'text-delta') this.#continue('text', part.id, part.delta)
    if (part.type === 'reasoning-delta') this.#continue('reasoning', part.id, part.delta)
  }

  // Ids of text and of reasoning may collide, and a later block may take an earlier one's id.
  #start(type: Written['type'], id: string): Written {
    const written: Written = { type, text: '' }
    this.#open.set(`${type}:${id}`, written)
    this.parts.push(written)
    return written
  }

  #continue(type: Written['type'], id: string, delta: string): void {
    const written = this.#open.get(`${type}:${id}`) ?? this.#start(type, id)
    written.text += delta
  }
}
