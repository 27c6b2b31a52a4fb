import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { jsonSchema, tool, type ToolSet } from 'ai'
import { z } from 'zod'
import { WRAPPED_CALLER } from '../../agent/wrapped.ts'
import type { AgentDeps } from '../../agent/define-agent.ts'
import type { OutsideTools } from '../../agent/toolbox.ts'
import { errorOf } from '../../base/error-text.ts'
import { canonicalJson } from '../../base/json.ts'
import type { FailedCall } from '../../contract/event-record.ts'
import type { Cause, LogEntry } from '../../contract/log-entry.ts'
import { shownName, type ToolDefinition } from '../../tools/define-tool.ts'
import { Unrecorded, type Comparison } from './report.ts'
import type { EffectEnded, Source } from './source.ts'

/** `input` is null if the log does not have it. `place`: in the recorded order. */
type Effect = { ended: EffectEnded; input: { value: unknown } | null; place: number }

/**
 * `offered`: names of the tools that were there beside the agent's. `exact`: a call with another
 * input has another output, which is not known.
 */
type RecordedEffectsParts = {
  offered: readonly string[]
  comparison: Comparison
  clean: (value: unknown) => unknown
  exact: boolean
  failed?: readonly FailedCall[]
  /** Lets others be served, after each call. */
  rest?: () => Promise<void>
}

/**
 * True for calls that no decision led to: a tool that was read for the blackboard, which the log
 * has as it was seeded, and what an agent called around a model that a process wrapped.
 */
export const isProbe = ({ cause }: { cause?: Cause }): boolean =>
  cause !== undefined && 'by' in cause && (cause.by === 'blackboard' || cause.by === WRAPPED_CALLER)

/** The ids of such calls. */
export const probesIn = (source: Source): ReadonlySet<string> =>
  new Set(
    source
      .entriesOf('effect-started', 'effect-ended')
      .filter(isProbe)
      .map(({ effect_id }) => effect_id),
  )

/** Answers a turn's tool calls as they ended when it was recorded. */
export class RecordedEffects {
  /** Calls that the replay made. */
  made = 0
  /** Why the turn cannot be followed any further; null if it can. */
  missing: string | null = null
  readonly recorded: number
  readonly #left: EffectsLeft
  /** Calls that failed before an effect began, such as one that must not be repeated. */
  readonly #refused: readonly FailedCall[]
  readonly #tools: ReadonlySet<string>
  readonly #comparison: Comparison
  readonly #clean: (value: unknown) => unknown
  readonly #exact: boolean
  readonly #at: LogEntry
  readonly #source: Source
  readonly #rest: () => Promise<void>

  constructor(
    source: Source,
    turn: LogEntry,
    { offered, comparison, clean, exact, failed = [], rest = async () => {} }: RecordedEffectsParts,
  ) {
    const read = probesIn(source)
    const ended = source.entriesOf('effect-ended').filter(({ parent_id, effect_id }) => parent_id === turn.span_id && !read.has(effect_id))
    this.#left = new EffectsLeft(ended.map((one, place) => ({ ended: one, input: source.inputOf(one), place })))
    const errors = new Set(ended.map(({ error }) => error))
    this.#refused = failed.filter(({ error }) => !errors.has(error))
    this.recorded = ended.length
    this.#tools = new Set([...offered, ...ended.map((one) => one.tool)])
    this.#comparison = comparison
    this.#clean = clean
    this.#exact = exact
    this.#at = turn
    this.#source = source
    this.#rest = rest
  }

  /** True also for a tool that only a caller offered, if its call was refused before it began. */
  has(name: string): boolean {
    return this.#tools.has(name) || this.#refused.some(({ tool: refused }) => refused === name)
  }

  /** The same call as recorded, in the recorded order; else the next call of the tool diverged. */
  async run(name: string, input: unknown, definition: ToolDefinition | null): Promise<unknown> {
    const parsed = definition?.input.safeParse(input)
    if (parsed?.success === false) throw new TypeError(`tool ${name} was called with bad input: ${z.prettifyError(parsed.error)}`)
    const asked = this.#clean(parsed ? parsed.data : input)
    this.made += 1
    // Calls run at once: each takes its effect before others are served.
    const effect = this.#left.take(name, asked) ?? (this.#exact ? undefined : this.#left.takeAny(name))
    await this.#rest()
    const refused = effect ? undefined : this.#refused.find((one) => one.tool === name)
    if (refused) {
      this.made -= 1
      throw errorOf(refused.error)
    }
    if (!effect) {
      this.#comparison.diverge(this.#at, 'effect', { path: '', recorded: null, replayed: { tool: name, input: asked } })
      this.missing ??= `the tool ${name} was not called ${this.#exact ? 'with this input ' : ''}when the turn was recorded`
      throw new Unrecorded(this.missing)
    }
    const recorded = effect.input ? effect.input.value : asked
    this.#comparison.compare(effect.ended, 'effect', { recorded, replayed: asked })
    if (effect.ended.status === 'ok' || effect.ended.status === 'reused') return effect.ended.output
    throw errorOf(effect.ended.error ?? `the tool ${name} failed`, effect.ended.stack)
  }

  get unused_ms(): number {
    return Array.from(this.#left.all).reduce((sum, { ended }) => sum + (ended.duration_ms ?? 0), 0)
  }

  compareUnused(): void {
    for (const { ended, input } of this.#left.all)
      this.#comparison.diverge(ended, 'effect', { path: '', recorded: { tool: ended.tool, input: input?.value ?? null }, replayed: null })
  }

  /** The definitions that the turn's models were offered, by name. Older recordings have none. */
  #definitions(): ReadonlyMap<string, LanguageModelV4FunctionTool> {
    const calls = this.#source.entriesOf('model-called').filter(({ parent_id }) => parent_id === this.#at.span_id)
    const requests = new Set(calls.flatMap(({ request = [] }) => request))
    const tools = [...requests].flatMap((hash) => (this.#source.part(hash) as { tools?: LanguageModelV4FunctionTool[] }).tools ?? [])
    return new Map(tools.map((one) => [one.name, one]))
  }

  /** Tools of other servers and of the scope itself, as they were offered and called. */
  tools(call: AgentDeps['call']): ToolSet {
    const definitions = this.#definitions()
    return Object.fromEntries(
      Array.from(this.#tools, (name) => {
        const { description = '', inputSchema } = definitions.get(shownName(name)) ?? {}
        const schema = inputSchema ? jsonSchema(inputSchema) : z.unknown()
        return [shownName(name), tool({ description, inputSchema: schema, execute: (value: unknown) => call(name, value) })]
      }),
    )
  }

  get outside(): OutsideTools {
    return { ready: async () => {}, available: () => ({}), find: () => null }
  }
}

/** Effects that no call of the replay had yet, found by what a call says of itself. */
class EffectsLeft {
  /** In the recorded order. */
  readonly all: Set<Effect>
  readonly #lists = new Map<string, { effects: Effect[]; next: number }>()

  constructor(effects: readonly Effect[]) {
    this.all = new Set(effects)
    for (const effect of effects) {
      const { ended, input } = effect
      this.#add(ofTool(ended.tool), effect)
      this.#add(input === null ? ofUnknown(ended.tool) : ofCall(ended.tool, input.value), effect)
    }
  }

  /** The first effect of this call. One whose input is not known may be of any call of its tool. */
  take(tool: string, input: unknown): Effect | undefined {
    const [first, second] = [this.#first(ofCall(tool, input)), this.#first(ofUnknown(tool))]
    return this.#taken(first && second ? (first.place < second.place ? first : second) : (first ?? second))
  }

  takeAny(tool: string): Effect | undefined {
    return this.#taken(this.#first(ofTool(tool)))
  }

  #add(key: string, effect: Effect): void {
    const list = this.#lists.get(key)
    if (list) list.effects.push(effect)
    else this.#lists.set(key, { effects: [effect], next: 0 })
  }

  #first(key: string): Effect | undefined {
    const list = this.#lists.get(key)
    if (!list) return undefined
    for (; list.next < list.effects.length; list.next += 1) {
      const effect = list.effects[list.next]
      if (effect && this.all.has(effect)) return effect
    }
    return undefined
  }

  #taken(effect: Effect | undefined): Effect | undefined {
    if (effect) this.all.delete(effect)
    return effect
  }
}

const ofTool = (tool: string): string => JSON.stringify([tool])
const ofUnknown = (tool: string): string => JSON.stringify([tool, null])
const ofCall = (tool: string, input: unknown): string => JSON.stringify([tool, canonicalJson(input)])
