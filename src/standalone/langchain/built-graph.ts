import { BaseCallbackHandler } from '@langchain/core/callbacks/base'
import type { BaseMessage } from '@langchain/core/messages'
import type { LLMResult } from '@langchain/core/outputs'
import { isFields } from '../../base/check-json.ts'
import { messageOf } from '../../base/error-text.ts'
import { markWrapped, refuseWrapped } from '../../skills/model/wrapped.ts'
import type { LoggedTurn } from '../turn.ts'
import { answerOf, callOf, storedMessage, userTextOf, type Reply } from './chat-messages.ts'
import { graphState } from './graph-state.ts'

/** The methods that are used of a graph that is built already. */
export type BuiltGraph = { invoke(input: never, config?: never): Promise<unknown>; stream(input: never, config?: never): Promise<unknown> }
type Config = { callbacks?: unknown }
type Method = (input: unknown, config?: Config) => Promise<unknown>
type Begin = (state: ReturnType<typeof graphState>) => LoggedTurn

export const isBuilt = (graph: unknown): graph is BuiltGraph =>
  typeof graph === 'object' && graph !== null && 'invoke' in graph && 'stream' in graph

/**
 * A built graph, each of whose calls is a turn in the log, with the calls of its models. Its models
 * are out of reach: they get no skills, and nothing that the graph does is gated.
 */
export function wrapBuilt<Graph extends BuiltGraph>(graph: Graph, begin: Begin): Graph {
  refuseWrapped(graph, 'the graph')
  const methods: Readonly<Record<string, Method>> = {
    async invoke(input, config) {
      const turn = new GraphTurn(begin(graphState(input)), input)
      return turn.watch(async () => turn.ended(await (graph.invoke as Method)(input, turn.heard(config))))
    },
    async stream(input, config) {
      const turn = new GraphTurn(begin(graphState(input)), input)
      const stream = await turn.watch(() => (graph.stream as Method)(input, turn.heard(config)))
      return turn.streamed(stream as AsyncIterable<unknown>)
    },
  }
  const wrapped = new Proxy(graph, {
    get(target, name) {
      const method = typeof name === 'string' && Object.hasOwn(methods, name) ? methods[name] : undefined
      if (method) return method
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return markWrapped(wrapped)
}

/** The turn of one call of the graph. */
class GraphTurn {
  readonly #turn: LoggedTurn
  readonly #asked: readonly BaseMessage[]
  readonly #calls: ModelCalls

  constructor(turn: LoggedTurn, input: unknown) {
    this.#turn = turn
    this.#asked = messagesIn(input)
    this.#calls = new ModelCalls(turn)
    turn.begin()
  }

  heard(config: Config = {}): Config {
    const { callbacks } = config
    if (callbacks !== undefined && !Array.isArray(callbacks))
      throw new TypeError('a graph that is built already takes callbacks as a list: Reflex adds one to it')
    return { ...config, callbacks: [...((callbacks as unknown[] | undefined) ?? []), this.#calls] }
  }

  async watch<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      this.#gave({ content: [], finish_reason: null, error: messageOf(error) })
      throw error
    }
  }

  ended<Output>(output: Output): Output {
    const last = messagesIn(output).at(-1) ?? this.#calls.last
    this.#gave(last ? { ...answerOf(last as Reply, last.text) } : { content: [], finish_reason: null, error: null })
    return output
  }

  async *streamed(stream: AsyncIterable<unknown>): AsyncGenerator {
    let whole = false
    try {
      for await (const part of stream) yield part
      whole = true
      this.ended(null)
    } catch (error) {
      whole = true
      this.#gave({ content: [], finish_reason: null, error: messageOf(error) })
      throw error
    } finally {
      if (!whole) this.#gave({ content: [], finish_reason: null, error: 'the reader left the stream' })
    }
  }

  #gave(answer: Parameters<LoggedTurn['gave']>[0]): void {
    this.#turn.gave(answer, { prompt: this.#asked.map(storedMessage), request: {}, text: userTextOf(this.#asked) })
  }
}

const messagesIn = (state: unknown): BaseMessage[] => {
  const messages = isFields(state) ? state['messages'] : undefined
  return Array.isArray(messages) ? messages.filter((message): message is BaseMessage => isFields(message) && 'toDict' in message) : []
}

/** Logs the calls of the graph's models, which tell LangChain's callbacks of themselves. */
class ModelCalls extends BaseCallbackHandler {
  readonly name = 'reflex'
  override awaitHandlers = true
  readonly #turn: LoggedTurn
  readonly #open = new Map<string, { prompt: object[]; request: object; at: number }>()
  last: BaseMessage | undefined

  constructor(turn: LoggedTurn) {
    super()
    this.#turn = turn
  }

  override handleChatModelStart(_model: unknown, [messages = []]: BaseMessage[][], run: string, _parent?: string, extra?: object): void {
    const given = isFields(extra) ? extra['invocation_params'] : undefined
    this.#open.set(run, { prompt: messages.map(storedMessage), request: isFields(given) ? given : {}, at: this.#turn.now() })
  }

  override handleLLMEnd({ generations }: LLMResult, run: string): void {
    const open = this.#open.get(run)
    const generation = generations[0]?.[0]
    const reply = generation && 'message' in generation ? (generation.message as Reply) : undefined
    if (!open || !reply) return
    const { prompt, request, at } = open
    this.#open.delete(run)
    this.last = reply
    this.#turn.called(callOf(reply, { prompt, duration_ms: this.#turn.now() - at }), { prompt, request })
  }
}
