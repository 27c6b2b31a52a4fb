import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { hashJson, mapJson } from '../base/json.ts'
import type { ModelTurn } from '../skills/model/model-turn.ts'

const MOST_TURNS = 100

/**
 * Finds the turn of a model call. A prompt that ends with a user message begins a turn; one that
 * continues from it with tool calls belongs to it, as does a repeated call.
 */
export class TurnFinder<Turn extends ModelTurn = ModelTurn, From = void> {
  readonly #begin: (from: From) => Turn
  /** The newest last. */
  #turns: { key: string; turn: Turn }[] = []

  constructor(begin: (from: From) => Turn) {
    this.#begin = begin
  }

  async of({ prompt }: LanguageModelV4CallOptions, from: From): Promise<Turn> {
    const said = prompt.findLastIndex(({ role }) => role === 'user')
    const calls = prompt.slice(said + 1).flatMap(callsIn)
    return this.find(await keyOf(prompt.slice(0, said + 1)), { begins: said === prompt.length - 1, calls, from })
  }

  /**
   * `key`: the text up to the last user message. `calls`: the tool calls since, which tell turns
   * with equal words apart. `from`: what a new turn begins with.
   */
  find(key: string, { begins, calls, from }: { begins: boolean; calls: readonly string[]; from: From }): Turn {
    const same = this.#turns.filter((one) => one.key === key).map(({ turn }) => turn)
    const newest = same.at(-1)
    const known = begins ? newest : (same.findLast((turn) => calls.some((id) => turn.calls.has(id))) ?? newest)
    if (known && (!begins || known.failed)) return known
    const turn = this.#begin(from)
    this.#turns = [...this.#turns.slice(1 - MOST_TURNS), { key, turn }]
    return turn
  }
}

const callsIn = ({ role, content }: LanguageModelV4Prompt[number]): string[] =>
  role === 'assistant' ? content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])) : []

/** Without the system prompt, which may change from step to step. */
const keyOf = (prompt: LanguageModelV4Prompt): Promise<string> =>
  hashJson(prompt.filter(({ role }) => role !== 'system').map(({ role, content }) => [role, withoutBytes(content)]))

const withoutBytes = (content: unknown): unknown =>
  mapJson(content, (value) => (value instanceof Uint8Array ? `${value.length} bytes` : value), { deepest: Infinity })
