import {
  APICallError,
  InvalidResponseDataError,
  type Experimental_DecisionModelV4 as DecisionModel,
  type Experimental_DecisionModelV4Answer as Answer,
  type Experimental_DecisionModelV4CallOptions as CallOptions,
  type Experimental_DecisionModelV4Question as Question,
  type Experimental_DecisionModelV4Result as Result,
} from '@ai-sdk/provider'

/** Sends one request, and returns the response as JSON of any shape. */
export type SystemOneSender = (
  body: object,
  options: { signal: AbortSignal | undefined; headers: CallOptions['headers'] },
) => Promise<unknown>
type SystemOneOptions = { modelId: string; provider: string; send: SystemOneSender }

const MOST_BYTES = 1_000_000
const MOST_QUOTED = 1000
/** Providers round to 2 or 4 decimals: the AI SDK then allows sums such as 0.99. */
const ROUNDING = { probabilityDecimals: 2, scoreDecimals: 2 }

/**
 * The decisions API that several providers share: `{model, state, questions}` in, one typed answer
 * a question out. The AI SDK checks the answers.
 */
export class SystemOneModel implements DecisionModel {
  readonly specificationVersion = 'v4'
  readonly provider: string
  readonly modelId: string
  readonly supportedQuestionTypes = ['choice', 'score', 'boolean'] as const
  readonly #send: SystemOneSender

  constructor({ modelId, provider, send }: SystemOneOptions) {
    this.modelId = modelId
    this.provider = provider
    this.#send = send
  }

  async doDecide({ state, questions, abortSignal: signal, headers }: CallOptions): Promise<Result> {
    const parts = state.map((part) => (part.type === 'text' ? part.text : part.type === 'json' ? part.value : null))
    const asked = Object.fromEntries(Object.entries(questions).map(([id, question]) => [id, wireQuestion(question)]))
    const body = { model: this.modelId, state: parts.length === 1 ? parts[0] : parts, questions: asked }
    const answered = inner(await this.#send(body, { signal, headers }))
    const { answers, usage, model } = fieldsOf(answered)
    const given = fieldsOf(answers)
    const { input_tokens, output_tokens } = fieldsOf(usage)
    return {
      answers: Object.fromEntries(Object.keys(given).map((id) => [id, answerOf(given[id])])),
      rounding: ROUNDING,
      usage: {
        ...(isCount(input_tokens) && { inputTokens: input_tokens }),
        ...(isCount(output_tokens) && { outputTokens: output_tokens }),
      },
      providerMetadata: { systemOne: { confidence: statistics(given, 'confidence'), legend: statistics(given, 'legend') } },
      response: { modelId: typeof model === 'string' ? model.slice(0, 200) : this.modelId },
      warnings: [],
    }
  }
}

/** Sends to a URL, with a key. */
export const overHttp =
  (url: string, key: string): SystemOneSender =>
  async (body, { signal, headers = {} }) => {
    const sent = Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...sent, Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
      // A redirect could take the state to another host.
      redirect: 'manual',
      ...(signal && { signal }),
    })
    const text = await readText(response)
    const failed = (message: string) =>
      new APICallError({
        message,
        url,
        requestBodyValues: {},
        statusCode: response.status,
        responseHeaders: Object.fromEntries(response.headers),
        responseBody: text.slice(0, MOST_QUOTED),
      })
    if (!response.ok) throw failed(`the decision model answered with HTTP ${response.status}`)
    try {
      return JSON.parse(text)
    } catch {
      throw failed('the answer of the decision model is not JSON')
    }
  }

/** Sends by the binding of Workers AI. */
export const overWorkersAI =
  (ai: Ai, model: string): SystemOneSender =>
  (body, { signal }) => {
    const run = ai.run.bind(ai) as (name: string, input: object, options?: object) => Promise<unknown>
    return run(model, body, signal && { signal })
  }

async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > MOST_BYTES) {
      await reader?.cancel()
      throw new InvalidResponseDataError({ data: null, message: `the answer of the decision model takes more than ${MOST_BYTES} bytes` })
    }
    text += decoder.decode(value, { stream: true })
  }
}

/** Cloudflare wraps answers of its REST API in an envelope. */
const inner = (answered: unknown): unknown => {
  const { result, answers } = fieldsOf(answered)
  return answers === undefined && result !== undefined ? result : answered
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

function wireQuestion(question: Question): object {
  if (question.type !== 'boolean') return question
  return { ...question, type: 'noul' }
}

/** The shape is the AI SDK's; its values are checked there. */
function answerOf(given: unknown): Answer {
  const { type, noul, choice, score, probabilities } = fieldsOf(given)
  const spread = probabilities === undefined || probabilities === null ? {} : { probabilities }
  if (type === 'noul') return { type: 'boolean', probability: noul as number }
  if (type === 'choice') return { type, choice: choice as string, ...(spread as object) }
  if (type === 'score') return { type, score: score as number, ...(spread as object) }
  return { type: 'refusal' }
}

function statistics(given: Record<string, unknown>, name: string): Record<string, never> {
  const found = Object.entries(given).flatMap(([id, answer]) => {
    const value = fieldsOf(answer)[name]
    return value === undefined ? [] : [[id, value] as const]
  })
  return Object.fromEntries(found) as Record<string, never>
}
