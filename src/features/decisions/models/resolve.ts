import {
  type Experimental_DecisionModelV4 as DecisionModel,
  type Experimental_DecisionModelV4Answer as Answer,
  type Experimental_DecisionModelV4CallOptions as CallOptions,
  type Experimental_DecisionModelV4Question as Question,
  type Experimental_DecisionModelV4Result as Result,
  APICallError,
  InvalidResponseDataError,
} from '@ai-sdk/provider'
import { messageOf } from '../../../base/error-text.ts'
import { ModelMisconfigured } from '../../../models/model-errors.ts'
import { estimateTokenCount } from 'tokenx'

/** Sends one request, and returns the response as JSON of any shape. */
type SystemOneSender = (body: object, options: { signal: AbortSignal | undefined; headers: CallOptions['headers'] }) => Promise<unknown>
type SystemOneOptions = { modelId: string; provider: string; send: SystemOneSender }

const MOST_BYTES = 1_000_000
const MOST_QUOTED = 1000
/** Providers round to 2 or 4 decimals: the AI SDK then allows sums such as 0.99. */
const ROUNDING = { probabilityDecimals: 2, scoreDecimals: 2 }

/**
 * The decisions API that several providers share: `{model, state, questions}` in, one typed answer
 * a question out. The AI SDK checks the answers.
 */
class SystemOneModel implements DecisionModel {
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
const overHttp =
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
const overWorkersAI =
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

/** Weight of a word that the state shares with a description. */
const PER_WORD = 2
const SHORTEST_WORD = 3

/**
 * Answers by the words that the state shares with each option. Needs no network, and answers equal
 * questions equally. For tests and the local server: its probabilities are not calibrated.
 */
class OfflineDecisionModel implements DecisionModel {
  readonly specificationVersion = 'v4'
  readonly provider = 'offline'
  readonly modelId = 'offline'
  readonly supportedQuestionTypes = ['choice', 'score', 'boolean'] as const

  async doDecide({ state, questions, abortSignal }: CallOptions): Promise<Result> {
    abortSignal?.throwIfAborted()
    const words = wordsOf(state)
    const answers = Object.fromEntries(Object.entries(questions).map(([id, question]) => [id, answerTo(question, words)]))
    return {
      answers,
      usage: { inputTokens: estimateTokenCount(JSON.stringify([state, questions])), outputTokens: 0 },
      response: { modelId: this.modelId },
      warnings: [],
    }
  }
}

function answerTo(question: Question, words: ReadonlySet<string>): Answer {
  const shared = (text: unknown): number => Array.from(wordsOf(text)).filter((word) => words.has(word)).length
  switch (question.type) {
    case 'choice': {
      const options = Object.entries(question.criteria)
      const weights = softmax(options.map((option) => shared(option)))
      const probabilities = Object.fromEntries(options.map(([name], index) => [name, weights[index] ?? 0]))
      const best = weights.indexOf(Math.max(...weights))
      return { type: 'choice', choice: options[best]?.[0] ?? '', probabilities }
    }
    case 'score': {
      const weights = softmax(question.criteria.map(shared))
      const score = weights.reduce((sum, weight, level) => sum + weight * level, 0)
      return { type: 'score', score, probabilities: Object.fromEntries(weights.map((weight, level) => [String(level), weight])) }
    }
    case 'boolean': {
      const { instructions = null, criteria = null } = question
      // A question without a shared word is answered with no.
      const [yes = 0] = softmax([shared([instructions, criteria?.true]), shared(criteria?.false) + 1])
      return { type: 'boolean', probability: yes }
    }
    case 'box':
      break
  }
  return { type: 'refusal' }
}

function softmax(counts: readonly number[]): number[] {
  const most = Math.max(...counts)
  const weights = counts.map((count) => Math.exp(PER_WORD * (count - most)))
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => weight / sum)
}

/** The words of a text, or of the texts and field names in a value. */
function wordsOf(value: unknown): Set<string> {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return new Set((text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => word.length >= SHORTEST_WORD))
}

type DecisionEnv = { AI?: Ai; REFLEX_DECISION_MODEL?: string; SYSTEM_ONE_URL?: string; SYSTEM_ONE_API_KEY?: string }

const WORKERS_AI = 'workers-ai/'
const SYSTEM_ONE = 'system-one'
const FORMS =
  'A decision model is one of: "offline" (by shared words, no network); "workers-ai/MODEL" (needs the AI binding), such as ' +
  '"workers-ai/@cf/cloudflare/clef-flash"; "system-one/MODEL" (needs SYSTEM_ONE_URL and SYSTEM_ONE_API_KEY), such as ' +
  '"system-one/pplx-decider-v1.2"; "system-one", which takes the model that a request names. ' +
  "The deployment's is the variable REFLEX_DECISION_MODEL, under [vars] in wrangler.toml."

export const decisionModelName = ({ REFLEX_DECISION_MODEL = 'offline' }: DecisionEnv): string => REFLEX_DECISION_MODEL

/** The full name of the model to ask; `asked` is the name in a request. */
export function fullName(name: string, asked: string | undefined): string {
  if (name !== SYSTEM_ONE) return name
  return asked === undefined ? name : `${SYSTEM_ONE}/${asked}`
}

/** The reason why the deployment's decision model cannot be used; null if it can, or is unset. */
export function decisionModelProblem(env: DecisionEnv): string | null {
  const name = env.REFLEX_DECISION_MODEL
  if (!name) return null
  try {
    // A request names the model, for which all else must be there.
    resolveDecisionModel(fullName(name, 'any'), env)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Throws ModelMisconfigured, which tells an operator what to set where. */
export function resolveDecisionModel(name: string, env: DecisionEnv): DecisionModel {
  if (name === 'offline') return new OfflineDecisionModel()
  if (name === SYSTEM_ONE) throw unusable(name, 'the request names no model.')
  if (name.startsWith(WORKERS_AI)) return workersAI(name, env)
  if (name.startsWith(`${SYSTEM_ONE}/`)) return systemOne(name, env)
  throw unusable(name, 'the name has none of the known forms.')
}

function workersAI(name: string, { AI }: DecisionEnv): DecisionModel {
  const model = name.slice(WORKERS_AI.length)
  if (!model.includes('/')) throw unusable(name, 'a model of Workers AI has a name such as "@cf/cloudflare/clef-flash".')
  if (!AI) throw unusable(name, 'the AI binding is missing. Add [ai] with binding = "AI" to wrangler.toml; it has no local mode.')
  return new SystemOneModel({ modelId: model, provider: 'workers-ai', send: overWorkersAI(AI, model) })
}

function systemOne(name: string, { SYSTEM_ONE_URL: url, SYSTEM_ONE_API_KEY: key }: DecisionEnv): DecisionModel {
  if (!url) throw unusable(name, 'the variable SYSTEM_ONE_URL is missing: the URL of the decisions endpoint, with its path.')
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw unusable(name, 'the value of the variable SYSTEM_ONE_URL is no http or https URL.')
  if (!key) throw unusable(name, 'the secret SYSTEM_ONE_API_KEY is missing. Run `wrangler secret put SYSTEM_ONE_API_KEY`.')
  const modelId = name.slice(SYSTEM_ONE.length + 1)
  return new SystemOneModel({ modelId, provider: SYSTEM_ONE, send: overHttp(url, key) })
}

const unusable = (name: string, what: string): ModelMisconfigured =>
  new ModelMisconfigured(`The decision model "${name}" can't be used: ${what} ${FORMS}`)
