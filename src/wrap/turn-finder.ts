import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { hashJson } from '../skills/json.ts'
import type { ModelTurn } from './model-turn.ts'

const MOST_TURNS = 100

/**
 * The turn that a model call belongs to, where nobody says so: a prompt that ends with a user's message begins one, and one that goes on from the same
 * message, with tool calls and their results, belongs to it. So does the repetition of a call that failed.
 */
export class TurnFinder {
  readonly #begin: () => ModelTurn
  readonly #turns = new Map<string, ModelTurn>()

  constructor(begin: () => ModelTurn) {
    this.#begin = begin
  }

  async of({ prompt }: LanguageModelV4CallOptions): Promise<ModelTurn> {
    const said = prompt.findLastIndex(({ role }) => role === 'user')
    return this.find(await keyOf(prompt.slice(0, said + 1)), { begins: said === prompt.length - 1 })
  }

  /** `key` is of all that was said up to the last message of a user. */
  find(key: string, { begins }: { begins: boolean }): ModelTurn {
    const known = this.#turns.get(key)
    if (known && (!begins || known.failed)) return known
    const turn = this.#begin()
    this.#turns.delete(key)
    this.#turns.set(key, turn)
    if (this.#turns.size > MOST_TURNS) this.#turns.delete(this.#turns.keys().next().value ?? '')
    return turn
  }
}

/** Without the system prompt, which may change from step to step. */
const keyOf = (prompt: LanguageModelV4Prompt): Promise<string> =>
  hashJson(prompt.filter(({ role }) => role !== 'system').map(({ role, content }) => [role, withoutBytes(content)]))

function withoutBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return `${value.length} bytes`
  if (Array.isArray(value)) return value.map(withoutBytes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutBytes(inner)]))
}
