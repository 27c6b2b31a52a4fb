import type { LanguageModelV4Content, LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'

type Written = Extract<LanguageModelV4Content, { type: 'text' | 'reasoning' }>
type Metadata = { providerMetadata?: SharedV4ProviderMetadata }

/**
 * A stream's parts as the content that a whole answer would have had, with the providers' metadata,
 * which some want back in the next prompt.
 */
export class AnswerParts {
  readonly content: LanguageModelV4Content[] = []
  readonly #open = new Map<string, Written>()

  add(part: LanguageModelV4StreamPart): void {
    if (part.type === 'text-start') this.#start('text', part)
    if (part.type === 'text-delta') this.#continue('text', part)
    if (part.type === 'text-end') this.#note('text', part)
    if (part.type === 'reasoning-start') this.#start('reasoning', part)
    if (part.type === 'reasoning-delta') this.#continue('reasoning', part)
    if (part.type === 'reasoning-end') this.#note('reasoning', part)
    if (part.type === 'tool-call' || part.type === 'tool-result') this.content.push(part)
  }

  #start(type: Written['type'], part: { id: string } & Metadata): void {
    const written: Written = { type, text: '' }
    this.#open.set(`${type}:${part.id}`, written)
    this.content.push(written)
    this.#note(type, part)
  }

  #continue(type: Written['type'], part: { id: string; delta: string } & Metadata): void {
    if (!this.#open.has(`${type}:${part.id}`)) this.#start(type, { id: part.id })
    const written = this.#open.get(`${type}:${part.id}`)
    if (written) written.text += part.delta
    this.#note(type, part)
  }

  #note(type: Written['type'], { id, providerMetadata }: { id: string } & Metadata): void {
    const written = this.#open.get(`${type}:${id}`)
    if (written && providerMetadata) written.providerMetadata = { ...written.providerMetadata, ...providerMetadata }
  }
}
