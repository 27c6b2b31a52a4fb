import type { OfflineAnswer, OfflineRequest, OfflineRule } from '../src/models/offline-model.ts'

/** A text, a call of a tool, an error that the call throws, or a function of the request. */
export type ModelAnswer = string | { tool: string; input: unknown } | Error | ((request: OfflineRequest) => string | OfflineAnswer)

export class ScriptedModel {
  /** The requests so far, oldest first. */
  readonly requests: OfflineRequest[] = []
  readonly #answers: ModelAnswer[]

  constructor(answers: readonly ModelAnswer[]) {
    this.#answers = [...answers]
  }

  /** Adds answers, one for each further request. A function answers all requests from then on. */
  script(...answers: ModelAnswer[]): void {
    this.#answers.push(...answers)
  }

  /** Number of answers that no request has taken. */
  get left(): number {
    return this.#answers.length
  }

  get rule(): OfflineRule {
    return { name: 'the script of the test', verbatim: true, answer: (request) => this.#answer(request) }
  }

  #answer(request: OfflineRequest): OfflineAnswer {
    this.requests.push(request)
    const [answer] = this.#answers
    if (answer === undefined) throw new Error(`the model has no scripted answer left for this request: ${request.text.slice(0, 500)}`)
    if (typeof answer === 'function') {
      const given = answer(request)
      return typeof given === 'string' ? { text: given } : given
    }
    this.#answers.shift()
    if (answer instanceof Error) throw answer
    return typeof answer === 'string' ? { text: answer } : { tool: { name: answer.tool, input: answer.input } }
  }
}
