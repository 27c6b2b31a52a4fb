import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { refusalsOf, type RefusedCall } from '../../../agent/answer-request.ts'
import type { Database, Unit } from '../../../kernel/unit.ts'

const KEY = 'untold_calls'
/** Answers whose refused calls are known; the oldest are forgotten. */
const MOST = 100

type Answer = { beside: string; refused: RefusedCall[] }

/**
 * Refused calls of answers whose other calls have left. The caller does not know of them, so each
 * later request that repeats such an answer gets them back, with the reasons, for the model.
 */
export class Untold {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** `beside`: the id of a call that has left in the same answer. */
  add(unit: Unit, beside: string, refused: RefusedCall[]): void {
    unit.write(KEY, [...this.#answers(), { beside, refused }].slice(-MOST))
  }

  /** The prompt with what the model was not told. */
  told(prompt: LanguageModelV4Prompt): LanguageModelV4Prompt {
    const has_calls = prompt.some(({ role }) => role === 'tool')
    const answers = has_calls ? this.#answers() : []
    if (answers.length === 0) return prompt
    let refused: RefusedCall[] = []
    return prompt.map((message) => {
      if (message.role === 'assistant') {
        const ids = new Set(message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])))
        refused = answers.flatMap((answer) => (ids.has(answer.beside) ? answer.refused : []))
        return { ...message, content: [...message.content, ...refusalsOf(refused).calls] }
      }
      if (message.role !== 'tool') return message
      const told = { ...message, content: [...message.content, ...refusalsOf(refused).results] }
      refused = []
      return told
    })
  }

  #answers(): readonly Answer[] {
    return this.#database.read<readonly Answer[]>(KEY, [])
  }
}
