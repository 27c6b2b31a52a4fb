import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import type { BaseLanguageModelInput } from '@langchain/core/language_models/base'
import { BaseChatModel, type BaseChatModelCallOptions, type BindToolsInput } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk, type BaseMessage, mergeUsageMetadata, type UsageMetadata, HumanMessage } from '@langchain/core/messages'
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import { RunnableBinding, type Runnable, type RunnableConfig } from '@langchain/core/runnables'
import { seam } from '../../skills/model/rounds.ts'
import type { AskedOfTurn, LoggedTurn } from '../turn.ts'
import type { TurnFinder } from '../turn-finder.ts'
import { markWrapped, refuseWrapped } from '../../skills/model/wrapped.ts'
import {
  changed,
  contentWithText,
  type Reply,
  usageOf,
  answerOf,
  callIds,
  callOf,
  isSystem,
  isUser,
  storedMessage,
  chunkOf,
  indexesIn,
  withMovedIndexes,
  hasToolCalls,
  userTextOf,
  withoutForgeries,
  withSystemText,
} from './chat-messages.ts'
import { nodeState } from './graph-state.ts'
import { plainTools } from './tools.ts'
import { hashJson, isJsonFields } from '../../base/json.ts'
import { TurnCall } from '../../skills/model/model-turn.ts'
import { HeldText } from '../../skills/model/held-text.ts'
import { bulletinsIn } from '../../skills/bulletin/bulletin.ts'
import { questionsOf, readText, type ReadText } from '../../skills/model/intents.ts'
import { shownReports } from '../../skills/model/settle-intents.ts'

/** A turn of a graph begins with the state of the node that calls the model. */
export type ChatTurnFinder = TurnFinder<LoggedTurn, ReturnType<typeof nodeState>>

/** `visible`: the text for the caller. `again`: the model must be called again. */
type ChatRoundEnd = { visible: string; again: boolean }

/** The field of an answer's `response_metadata` that tells of its proposals. */
const METADATA = 'reflex'

/** The rounds of one call of a chat model: the same as `Rounds`, over LangChain's messages. */
class ChatRounds {
  readonly #turn: LoggedTurn
  readonly call: TurnCall
  readonly #given: AskedOfTurn
  readonly #asked: readonly BaseMessage[]
  #sent: { messages: readonly BaseMessage[]; at: number } = { messages: [], at: 0 }
  /** The number of the caller's messages identifies a repeated call. */
  readonly #over: number
  /** Messages that the caller does not know, including messages of an earlier try. */
  readonly #exchanged: BaseMessage[]
  readonly #results: string[]

  constructor(turn: LoggedTurn, messages: readonly BaseMessage[], options: Parsed) {
    if (messages.some((message) => isSystem(message) && bulletinsIn(message.text) > 0)) {
      throw new Error('the model is wrapped twice: its messages already hold a skill bulletin')
    }
    this.#turn = turn
    this.#over = messages.length
    this.#asked = withEarlierResults(withoutForgeries(messages))
    const text = userTextOf(messages)
    this.#given = { prompt: messages.map(storedMessage), request: requestIn(options), text }
    this.call = new TurnCall(turn, { text, signal: options.signal })
    const left = turn.unfinished?.over === messages.length ? turn.unfinished : null
    this.#exchanged = left ? [...(left.messages as BaseMessage[])] : []
    this.#results = left ? [...left.results] : []
  }

  next(): BaseMessage[] {
    this.#turn.begin()
    const messages = withSystemText([...this.#asked, ...this.#exchanged], this.call.begin())
    this.#sent = { messages, at: this.#turn.now() }
    return messages
  }

  async ended(reply: Reply): Promise<ChatRoundEnd> {
    const { messages, at } = this.#sent
    const prompt = messages.map(storedMessage)
    this.#turn.called(callOf(reply, { prompt, duration_ms: this.#turn.now() - at }), { prompt, request: this.#given.request })
    this.call.answered(callIds(reply))
    const end = await this.#end(reply)
    if (!end.again) this.#turn.gave(answerOf(reply, end.visible), this.#given)
    return end
  }

  async #end(reply: Reply): Promise<ChatRoundEnd> {
    const read = readText(reply.text)
    const questions = questionsOf(read.intents)
    if (questions) this.call.clarify(questions)
    if (read.intents.length === 0 || questions) return this.#last(read.visible)
    if (this.call.isLastRound) return this.#last(this.call.cutOff(read.visible, { silent: !hasToolCalls(reply) }))
    await this.#settle(read, reply)
    return hasToolCalls(reply) ? this.#last(read.visible) : { visible: read.visible, again: true }
  }

  /**
   * The outcomes for the answer's `response_metadata`. If the caller has tool calls to bring back,
   * the results of skills are included, so that the next call, in any process, has them.
   */
  metadata(reply: Reply): Record<string, unknown> {
    if (this.call.reports.length === 0 && this.#results.length === 0) return {}
    const results = hasToolCalls(reply) && this.#results.length > 0 ? { results: this.#results.join('\n') } : {}
    return { [METADATA]: { ...shownReports(this.call.reports), ...results } }
  }

  /** Stored before the next call, so that a repetition after a failure runs nothing twice. */
  async #settle({ intents }: ReadText, reply: Reply): Promise<void> {
    const replies = await this.call.settle(intents)
    const result = replies.map(({ text }) => text).join('\n')
    this.#results.push(result)
    this.#exchanged.push(reply, new HumanMessage(result))
    this.#turn.unfinished = { over: this.#over, messages: this.#exchanged, results: this.#results }
  }

  #last(visible: string): ChatRoundEnd {
    return this.call.ended({ visible, again: false })
  }
}

/** Inserts the results of earlier answers after the tool results that follow them. */
function withEarlierResults(messages: readonly BaseMessage[]): BaseMessage[] {
  const whole: BaseMessage[] = []
  let waiting: BaseMessage[] = []
  for (const message of messages) {
    if (message.getType() !== 'tool') whole.push(...waiting.splice(0))
    whole.push(message)
    const told = message.getType() === 'ai' ? message.response_metadata[METADATA] : null
    if (isJsonFields(told) && typeof told['results'] === 'string') waiting = [new HumanMessage(told['results'])]
  }
  return [...whole, ...waiting]
}

/** Opens the model's stream over what `rounds.next()` gives. */
type OpenStream = () => Promise<AsyncIterable<Reply>>

/** All rounds as one stream. A reader that leaves early fails the call. */
const streamRounds = (rounds: ChatRounds, open: OpenStream): AsyncGenerator<AIMessageChunk> => rounds.call.watched(allRounds(rounds, open))

async function* allRounds(rounds: ChatRounds, open: OpenStream): AsyncGenerator<AIMessageChunk> {
  let before: Passed = { id: undefined, said: '', indexes: 0 }
  for (;;) {
    const round = new StreamedRound(before)
    for await (const reply of await open()) yield round.pass(chunkOf(reply))
    const { whole } = round
    const end = await rounds.ended(whole)
    const rest = round.rest(end.visible)
    if (!end.again) {
      yield changed(rest, { response_metadata: { ...whole.response_metadata, ...rounds.metadata(whole) } })
      return
    }
    if (rest.text !== '') yield rest
    before = round.passed
  }
}

/** The output so far: its text, message id and number of part indexes. */
type Passed = { id: string | undefined; said: string; indexes: number }

/**
 * Streams one round: text as far as it may pass, and everything else at once. Only the last round's
 * `response_metadata` are sent, because readers add them up.
 */
class StreamedRound {
  readonly #held = new HeldText()
  readonly #before: Passed
  #whole: AIMessageChunk | null = null
  #id: string | undefined
  #said: string

  constructor(before: Passed) {
    this.#before = before
    this.#id = before.id
    this.#said = before.said
  }

  get whole(): AIMessageChunk {
    return this.#whole ?? new AIMessageChunk('')
  }

  get passed(): Passed {
    return { id: this.#id, said: this.#said, indexes: this.#before.indexes + indexesIn(this.#whole?.content ?? '') }
  }

  pass(chunk: AIMessageChunk): AIMessageChunk {
    this.#whole = this.#whole ? this.#whole.concat(chunk) : chunk
    this.#id ??= chunk.id
    const content = contentWithText(chunk.content, this.#spoken(this.#held.push(chunk.text)))
    const passed = changed(chunk, { content: withMovedIndexes(content, this.#before.indexes), response_metadata: {} })
    return this.#named(passed)
  }

  /** The held part of the visible text, as a last piece. */
  rest(visible: string): AIMessageChunk {
    const text = this.#spoken(visible.slice(this.#held.passed))
    const parts = Array.isArray(this.#whole?.content) && text !== '' ? [{ type: 'text', text }] : text
    return this.#named(new AIMessageChunk({ content: parts }))
  }

  #spoken(text: string): string {
    const spoken = this.#said === this.#before.said ? seam(this.#said, text) + text : text
    this.#said += spoken
    return spoken
  }

  /** All pieces have the first one's id: each round's model makes one of its own. */
  #named(chunk: AIMessageChunk): AIMessageChunk {
    if (this.#id !== undefined) chunk._updateId(this.#id)
    return chunk
  }
}

type Parsed = SkillChatModel['ParsedCallOptions']

export type Tooled = Runnable<BaseLanguageModelInput, AIMessageChunk, BaseChatModelCallOptions>

/** The config of a call, such as its tags, which LangChain removes from the options. */
const CONFIG = Symbol('config')

/**
 * A chat model with skills. LangChain sees one run with one answer; the rounds are runs of the
 * user's model, visible only to that model's callbacks.
 */
export class SkillChatModel extends BaseChatModel {
  readonly inner: BaseChatModel
  readonly #finder: ChatTurnFinder

  constructor(inner: BaseChatModel, finder: ChatTurnFinder) {
    // No cache: a cached answer would report effects that did not happen.
    super({ cache: false })
    this.inner = inner
    this.#finder = finder
    this.lc_namespace = inner.lc_namespace
    this.disableStreaming = inner.disableStreaming
    markWrapped(this)
  }

  // LangChain's constructor asks for the type before `inner` is there.
  override _llmType(): string {
    return (this.inner as BaseChatModel | undefined)?._llmType() ?? 'reflex'
  }

  override getName(suffix?: string): string {
    return this.inner.getName(suffix)
  }

  override get profile() {
    return this.inner.profile
  }

  override getLsParams(options: Parsed) {
    return this.inner.getLsParams(options)
  }

  override invocationParams(options?: Parsed): unknown {
    return this.inner.invocationParams(options)
  }

  override _identifyingParams(): Record<string, unknown> {
    return this.inner._identifyingParams()
  }

  override getNumTokens(content: Parameters<BaseChatModel['getNumTokens']>[0]): Promise<number> {
    return this.inner.getNumTokens(content)
  }

  override async _generate(messages: BaseMessage[], options: Parsed): Promise<ChatResult> {
    const reply = givesData(options)
      ? ((await this.inner.invoke(messages, innerOptions(options))) as Reply)
      : await this.#answer(await this.#rounds(messages, options), options)
    const usage = usageOf(reply)
    const llmOutput = usage ? { llmOutput: { tokenUsage: tokensOf(usage) } } : {}
    return { generations: [{ text: reply.text, message: reply }], ...llmOutput }
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: Parsed,
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for await (const message of await this.#chunks(messages, options)) {
      const chunk = new ChatGenerationChunk({ message, text: message.text })
      yield chunk
      await runManager?.handleLLMNewToken(chunk.text, { prompt: 0, completion: 0 }, undefined, undefined, undefined, { chunk })
    }
  }

  override bindTools(tools: BindToolsInput[], kwargs?: Partial<BaseChatModelCallOptions>): Tooled {
    if (!this.inner.bindTools) throw new TypeError(`${this.inner.getName()} has no bindTools: choose a chat model that can call tools`)
    return withSkills(this.inner.bindTools(plainTools(tools), kwargs), this.#finder)
  }

  /**
   * If the model binds a tool for the answer, skills may run first. JSON answers propose nothing.
   */
  override withStructuredOutput = ((...args: Parameters<BaseChatModel['withStructuredOutput']>) => {
    const { inner } = this
    if (Object.hasOwn(inner, 'withStructuredOutput')) {
      throw new TypeError(
        `${inner.getName()} makes structured output out of reach of skills: call withStructuredOutput of the model without them`,
      )
    }
    const bound: Partial<BaseChatModel> = {
      bindTools: (tools, kwargs) => this.bindTools(tools, kwargs),
      withConfig: (config) => ('tools' in config ? this.withConfig(config) : inner.withConfig(config)),
    }
    const asked = Object.assign(Object.create(inner) as BaseChatModel, bound)
    return asked.withStructuredOutput(...args)
  }) as BaseChatModel['withStructuredOutput']

  protected override _separateRunnableConfigFromCallOptionsCompat(options?: Partial<BaseChatModelCallOptions>): [RunnableConfig, Parsed] {
    const [config, parsed] = super._separateRunnableConfigFromCallOptionsCompat(options)
    return [config, { ...parsed, [CONFIG]: config }]
  }

  async #rounds(messages: readonly BaseMessage[], options: Parsed): Promise<ChatRounds> {
    return new ChatRounds(await turnOf(this.#finder, messages, nodeState(configOf(options))), messages, options)
  }

  async #chunks(messages: BaseMessage[], options: Parsed): Promise<AsyncIterable<AIMessageChunk>> {
    const open = (given: BaseMessage[]) => this.inner.stream(given, innerOptions(options))
    if (givesData(options)) return open(messages)
    const rounds = await this.#rounds(messages, options)
    return streamRounds(rounds, () => open(rounds.next()))
  }

  #answer(rounds: ChatRounds, options: Parsed): Promise<Reply> {
    return rounds.call.attempt(() => this.#allRounds(rounds, options))
  }

  async #allRounds(rounds: ChatRounds, options: Parsed): Promise<Reply> {
    let said = ''
    let usage: UsageMetadata | undefined
    for (;;) {
      const reply: Reply = await this.inner.invoke(rounds.next(), innerOptions(options))
      const used = usageOf(reply)
      if (used) usage = usage ? mergeUsageMetadata(usage, used) : used
      const end = await rounds.ended(reply)
      said += seam(said, end.visible) + end.visible
      if (end.again) continue
      const response_metadata = { ...reply.response_metadata, ...rounds.metadata(reply) }
      return changed(reply, { content: contentWithText(reply.content, said), response_metadata, usage_metadata: usage })
    }
  }
}

/** Wraps a model or its binding. Throws if it is not a chat model. */
export function withSkills(model: unknown, finder: ChatTurnFinder): Tooled {
  refuseWrapped(model, 'the chat model')
  if (isChatModel(model)) return new SkillChatModel(model, finder)
  if (RunnableBinding.isRunnableBinding(model) && model.constructor === RunnableBinding) {
    const { bound, config, kwargs, configFactories } = model
    const factories = configFactories ? { configFactories } : {}
    return new RunnableBinding({ bound: withSkills(bound, finder), config, ...(kwargs ? { kwargs } : {}), ...factories })
  }
  throw new TypeError(
    `${nameOf(model)} is not a chat model. Wrap the chat model itself and compose with the result: ` +
      'const model = wrapLangChain(reflex, { model: chatModel }), then prompt.pipe(model), model.withRetry() and so on',
  )
}

/** By its methods: a second copy of @langchain/core in an installation has classes of its own. */
const isChatModel = (model: unknown): model is BaseChatModel =>
  typeof model === 'object' && model !== null && '_modelType' in model && 'invoke' in model && 'stream' in model

function nameOf(model: unknown): string {
  if (typeof model !== 'object' || model === null) return String(model)
  const { name } = model.constructor
  return name === 'Object' ? 'A plain object' : name
}

/** True if the provider returns JSON, by LangChain's note or by OpenAI's option. */
function givesData(options: Parsed): boolean {
  const { response_format } = options as { response_format?: { type?: unknown } }
  const method = options.ls_structured_output_format?.kwargs.method ?? ''
  return /json/i.test(`${String(response_format?.type)} ${method}`)
}

type Configured = Parsed & { [CONFIG]?: RunnableConfig }
const configOf = (options: Parsed): RunnableConfig => (options as Configured)[CONFIG] ?? {}

/** The call's callbacks are not passed on: they would see the protocol in the tokens. */
function innerOptions(options: Parsed): Partial<BaseChatModelCallOptions> {
  const { [CONFIG]: config = {}, promptIndex: _, ...own } = options as Configured & { promptIndex?: number }
  const { tags, metadata, configurable } = config
  const passed = { ...(tags ? { tags } : {}), ...(metadata ? { metadata } : {}), ...(configurable ? { configurable } : {}) }
  return { ...own, ...passed, callbacks: [] }
}

/** The tools and options of a call, as the log keeps them. */
const requestIn = (options: Parsed): object => {
  const { signal: _signal, callbacks: _callbacks, ...request } = innerOptions(options)
  return request
}

const tokensOf = ({ input_tokens, output_tokens, total_tokens }: UsageMetadata) => ({
  promptTokens: input_tokens,
  completionTokens: output_tokens,
  totalTokens: total_tokens,
})

/** Finds the turn by the text up to the last user message, and the tool calls since. */
async function turnOf(finder: ChatTurnFinder, messages: readonly BaseMessage[], from: ReturnType<typeof nodeState>): Promise<LoggedTurn> {
  const said = messages.findLastIndex(isUser)
  const spoken = messages.slice(0, said + 1).filter((message) => !isSystem(message))
  const key = await hashJson(spoken.map((message) => [message.getType(), message.text]))
  return finder.find(key, { begins: said === messages.length - 1, calls: messages.slice(said + 1).flatMap(callIds), from })
}
