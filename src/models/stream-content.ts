import type { LanguageModelV4Content, LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'

type Written = Extract<LanguageModelV4Content, { type: 'text' | 'reasoning' }>
type WrittenPart = { id: string; delta?: string; providerMetadata?: SharedV4ProviderMetadata }

/** Joins a stream's deltas into the content of `doGenerate`, with the providers' metadata. */
export class StreamContent {
  readonly parts: LanguageModelV4Content[] = []
  readonly #open = new Map<string, Written>()

  add(part: LanguageModelV4StreamPart): void {
    if (part.type === 'tool-call' || part.type === 'tool-result') this.parts.push(part)
    // Ids of text and reasoning may collide, and a later block may reuse the id of an earlier one.
    if (part.type === 'text-start') this.#open.delete(`text:${part.id}`)
    if (part.type === 'reasoning-start') this.#open.delete(`reasoning:${part.id}`)
    if (part.type === 'text-start' || part.type === 'text-delta' || part.type === 'text-end') this.#write('text', part)
    if (part.type === 'reasoning-start' || part.type === 'reasoning-delta' || part.type === 'reasoning-end') this.#write('reasoning', part)
  }

  #write(type: Written['type'], part: WrittenPart): void {
    const key = `${type}:${part.id}`
    const written: Written = this.#open.get(key) ?? { type, text: '' }
    if (!this.#open.has(key)) {
      this.#open.set(key, written)
      this.parts.push(written)
    }
    written.text += part.delta ?? ''
    if (part.providerMetadata) written.providerMetadata = { ...written.providerMetadata, ...part.providerMetadata }
  }
}
