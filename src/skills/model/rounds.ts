import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider'
import type { Question } from '../plan/slots.ts'
import { isOwnCall, questionsOf, questionsText, readCall, readText, type Intent, type ReadText } from './intents.ts'
import { TurnCall, type ModelTurn } from './model-turn.ts'
import {
  assistantMessages,
  holdsBulletin,
  lastSaid,
  replyMessages,
  userText,
  withBulletin,
  withExchanges,
  withoutForgeries,
} from './prompt.ts'
import { isPassive, withNativeTools } from './protocol.ts'
import { shownReports } from './settle-intents.ts'

type RoundAnswer = { content: readonly LanguageModelV4Content[]; finish: LanguageModelV4FinishReason; usage: LanguageModelV4Usage }

/** `visible` is the text for the caller, `cut_at` the end of the model's text in it. */
export type RoundEnd = { visible: string; cut_at: number; finish: LanguageModelV4FinishReason; again: boolean }

/**
 * The rounds of one call of the wrapped model.
 *
 * 1. Only new text of the model itself is read, and only once it is complete.
 * 2. What happened is kept in the turn before the model is called again: a repetition after a
 *    failure does not do it twice.
 * 3. The model's other tool calls are the caller's; then the results wait for the turn's next call.
 */
export class Rounds {
  readonly #turn: ModelTurn
  readonly #params: LanguageModelV4CallOptions
  readonly #passive: boolean
  readonly #usages: LanguageModelV4Usage[] = []
  readonly call: TurnCall

  constructor(turn: ModelTurn, params: LanguageModelV4CallOptions) {
    if (holdsBulletin(params.prompt)) throw new Error('the model is wrapped twice: its prompt already holds a skill bulletin')
    this.#turn = turn
    this.#passive = isPassive(params, this.#protocol)
    this.#params = this.#passive ? params : withoutForgeries(params)
    this.call = new TurnCall(turn, { text: userText(this.#params.prompt), signal: params.abortSignal })
  }

  get usage(): LanguageModelV4Usage {
    return usageSum(this.#usages)
  }

  isOwn(call: { toolName: string }): boolean {
    return this.#protocol === 'tools' && isOwnCall(call)
  }

  get readsText(): boolean {
    return this.#protocol === 'asp' && !this.#passive
  }

  next(): LanguageModelV4CallOptions {
    this.#params.abortSignal?.throwIfAborted()
    if (this.#passive) return this.#params
    const params = this.#protocol === 'tools' ? withNativeTools(this.#params) : this.#params
    const bulletin = this.call.begin()
    return { ...params, prompt: withBulletin(withExchanges(params.prompt, this.#turn.exchanges), bulletin) }
  }

  /** An incomplete answer: its blocks are ignored. */
  broken(content: readonly LanguageModelV4Content[]): Pick<RoundEnd, 'visible' | 'cut_at'> {
    const text = textOf(content)
    return this.readsText ? readText(text) : { visible: text, cut_at: text.length }
  }

  async ended(answer: RoundAnswer): Promise<RoundEnd> {
    this.#usages.push(answer.usage)
    this.call.answered(this.#othersIn(answer.content).map(({ toolCallId }) => toolCallId))
    const { finish } = answer
    const read = this.#read(answer)
    const end: RoundEnd = { visible: read.visible, cut_at: read.cut_at, finish, again: false }
    if (read.intents.length === 0 || isBroken(finish)) return this.call.ended(end)
    const questions = questionsOf(read.intents)
    if (questions) return this.call.ended(this.#clarified(read, { answer, questions }))
    if (this.call.isLastRound) return this.call.ended(this.#cutOff(end, answer))
    const again = await this.#settle(read.intents, answer)
    return again ? { ...end, again } : this.call.ended({ ...end, finish: { ...finish, unified: 'tool-calls' } })
  }

  /** The outcomes of the answer's proposals, beside the provider's own metadata. */
  metadata(own: SharedV4ProviderMetadata | undefined): { providerMetadata?: SharedV4ProviderMetadata } {
    if (this.call.reports.length === 0) return own ? { providerMetadata: own } : {}
    return { providerMetadata: { ...own, reflex: shownReports(this.call.reports) } }
  }

  get #protocol() {
    return this.#turn.options.protocol ?? 'asp'
  }

  #read({ content }: RoundAnswer): ReadText {
    const text = textOf(content)
    if (this.readsText) return readText(text)
    return { intents: this.#ownCalls(content).map(readCall), visible: text, cut_at: text.length }
  }

  #ownCalls(content: readonly LanguageModelV4Content[]): LanguageModelV4ToolCall[] {
    return content.filter((part) => part.type === 'tool-call').filter((call) => this.isOwn(call))
  }

  /** Tool calls that the caller has to bring the results of. */
  #othersIn(content: readonly LanguageModelV4Content[]): LanguageModelV4ToolCall[] {
    return content.filter((part) => part.type === 'tool-call').filter((call) => !call.providerExecuted && !this.isOwn(call))
  }

  #hasOthers(content: readonly LanguageModelV4Content[]): boolean {
    return this.#othersIn(content).length > 0
  }

  /** The model is called again, unless the caller has tool calls to bring back first. */
  async #settle(intents: readonly Intent[], { content }: RoundAnswer): Promise<boolean> {
    const { prompt } = this.#params
    const replies = await this.call.settle(intents)
    const calls = this.#ownCalls(content)
    const isOwn = (call: LanguageModelV4ToolCall) => this.isOwn(call)
    const answered = replyMessages(replies, new Map(calls.map(({ toolCallId, toolName }) => [toolCallId, toolName])))
    const waits = this.#hasOthers(content)
    const said = assistantMessages(waits ? calls : content, isOwn)
    this.#turn.exchanges.push({ at: prompt.length + (waits ? 1 : 0), said: lastSaid(prompt), messages: [...said, ...answered] })
    return !waits
  }

  #clarified({ visible, cut_at }: ReadText, { answer, questions }: { answer: RoundAnswer; questions: Question[] }): RoundEnd {
    const { content, finish } = answer
    this.call.clarify(questions)
    const calls = this.#ownCalls(content)
    if (calls.length === 0) return { visible, cut_at, finish, again: false }
    const others = this.#hasOthers(content)
    const asked = `${visible}${visible === '' ? '' : '\n\n'}${questionsText(questions)}`
    return { visible: asked, cut_at, finish: others ? finish : { ...finish, unified: 'stop' }, again: false }
  }

  #cutOff({ visible, cut_at, finish }: RoundEnd, { content }: RoundAnswer): RoundEnd {
    const others = this.#hasOthers(content)
    const unified = this.#ownCalls(content).length > 0 && !others ? 'stop' : finish.unified
    return { visible: this.call.cutOff(visible, { silent: !others }), cut_at, finish: { ...finish, unified }, again: false }
  }
}

export const textOf = (content: readonly LanguageModelV4Content[]): string =>
  content.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** An answer that a failure or a filter cut off is not executed. */
const isBroken = ({ unified }: LanguageModelV4FinishReason): boolean =>
  unified === 'error' || unified === 'content-filter' || unified === 'interrupted'

export const seam = (before: string, after: string): string => (before === '' || after === '' || /\s$/.test(before) ? '' : '\n\n')

/** The usage of several calls together; a count is unknown only if no call reports it. */
function usageSum(usages: readonly LanguageModelV4Usage[]): LanguageModelV4Usage {
  const [only, ...more] = usages
  if (only && more.length === 0) return only
  const sums = <Counts extends object>(all: readonly Counts[]): Counts => {
    const names = [...new Set(all.flatMap((counts) => Object.keys(counts)))] as (keyof Counts)[]
    return Object.fromEntries(names.map((name) => [name, sum(all.map((counts) => counts[name] as number | undefined))])) as Counts
  }
  return { inputTokens: sums(usages.map((usage) => usage.inputTokens)), outputTokens: sums(usages.map((usage) => usage.outputTokens)) }
}

function sum(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0)
}
