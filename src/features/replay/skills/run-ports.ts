import { sameJson, type Json, type JsonFields } from '../../../base/json.ts'
import { costIn } from '../../../skills/runner/call-step.ts'
import type { LastGood, StepBegin, ToolOptions } from '../../../skills/runner/ports.ts'
import type { HostRunnerPorts, SessionEntry } from '../../../skills/session/ports.ts'
import type { FoundTool } from '../../../agent/toolbox.ts'
import { CutOff } from '../../../tools/may-have-happened.ts'
import { stepSpan } from '../../../engine/log/spans.ts'
import type { Given } from '../given.ts'
import { Unrecorded, type Comparison } from '../report.ts'
import type { EffectEnded, Source } from '../source.ts'
import type { SessionRecord } from './session-record.ts'

type RecordedRunParts = {
  source: Source
  given: Given
  record: SessionRecord
  comparison: Comparison
  clean: (value: unknown) => unknown
  toolOf: (name: string) => FoundTool
  write: (entry: SessionEntry) => void
  /** Stops the run as it was stopped when it was recorded. */
  abort: () => void
  missing: string[]
}

/** The error with which the runner stops a step: its own time limit, or the end of its asker. */
const STOPPED = /^the step was stopped: (timeout|aborted)$/

/** The end of an effect that a crash cut off. */
const LOST = /^the server died/

/** The ports of one run, answered from the recorded effects of its steps. No tool is called. */
export class RecordedRun implements HostRunnerPorts {
  readonly #parts: RecordedRunParts
  readonly #run_id: string
  readonly #calls = new Map<string, EffectEnded[]>()
  #step: { phase: string; index: number } | null = null
  /** Calls of tools so far: a wait that a call follows is the time limit of that call. */
  #called = 0
  #timer: () => void = () => {}

  constructor(run_id: string, parts: RecordedRunParts) {
    this.#run_id = run_id
    this.#parts = parts
  }

  readonly journal: HostRunnerPorts['journal'] = {
    load: async () => [],
    begin: async (_run_id, { phase, index }: StepBegin) => void (this.#step = { phase, index }),
    end: async (_run_id, _place, _end, entry) => this.#parts.write(entry),
  }

  readonly callTool = async (tool: string, args: JsonFields, { hide }: ToolOptions): Promise<{ output: unknown; cost_usd: number }> => {
    this.#called += 1
    await Promise.resolve()
    const ended = this.#next()
    const { comparison, clean, source } = this.#parts
    if (!ended) throw this.#notCalled(tool)
    const asked = { tool, input: clean(hide(this.#parsed(tool, args) as Json)) }
    const recorded = { tool: ended.tool, input: (source.inputOf(ended) ?? { value: asked.input }).value }
    if (this.#parts.given.departures && !sameJson(recorded, asked)) throw this.#otherCall(ended, recorded, asked)
    comparison.compare(ended, 'effect', { recorded, replayed: asked })
    return this.#answer(ended)
  }

  readonly lastGood = async (): Promise<LastGood | { not_free: string } | null> => {
    const next = this.#parts.record.next('skill-started', 'skill-reused', 'skill-applied')
    if (next?.kind === 'skill-reused') return { outputs: next['outputs'] as JsonFields, detail: null }
    return next?.kind === 'skill-applied' && next['reason'] === 'key' ? { not_free: String(next['detail']) } : null
  }

  readonly remember = async (): Promise<void> => {}

  readonly alone = async <Result>(_key: string, work: () => Promise<Result>): Promise<Result> => work()

  /** A pause between attempts ends at once; a time limit only where the call timed out. */
  readonly wait = (_ms: number, signal: AbortSignal): Promise<void> => {
    const called = this.#called
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      queueMicrotask(() => (this.#called === called ? resolve() : (this.#timer = resolve)))
    })
  }

  #next(): EffectEnded | undefined {
    const { phase, index } = this.#step ?? { phase: '', index: 0 }
    const span = stepSpan(this.#run_id, phase, index)
    const calls = this.#calls.get(span) ?? callsUnder(this.#parts.source, span)
    this.#calls.set(span, calls)
    return calls.shift()
  }

  /** The input with the defaults of the tool's schema, as it is logged. */
  #parsed(tool: string, args: JsonFields): unknown {
    const found = this.#parts.toolOf(tool)
    const parsed = found.ok ? found.definition.input.safeParse(args) : null
    return parsed?.success ? parsed.data : args
  }

  /** Another call has another output, which is not known. */
  #otherCall(ended: EffectEnded, recorded: object, replayed: { tool: string }): Error {
    const { comparison, missing } = this.#parts
    comparison.diverge(ended, 'effect', { path: '', recorded, replayed: null })
    comparison.diverge(ended, 'effect', { path: '', recorded: null, replayed })
    missing.push(`the tool ${replayed.tool} was not called with this input when the run was recorded`)
    return new Unrecorded(missing.at(-1))
  }

  /** The step ended before its tool was called, or another run did not come to this step. */
  #notCalled(tool: string): Error {
    const end = this.#parts.record.left.find(
      ({ kind, index, run_id }) =>
        run_id === this.#run_id && index === this.#step?.index && (kind === 'skill-step-ended' || kind === 'skill-compensation-ended'),
    )
    if (end?.['status'] === 'failed' && typeof end['error'] === 'string') return new Error(end['error'])
    const { record } = this.#parts
    const ended = record.entries.some(({ kind, run_id }) => kind === 'skill-applied' && run_id === this.#run_id)
    const reason = ended ? `the tool ${tool} was not called in this step when the run was recorded` : 'the session did not end the run'
    return this.#lacks(reason)
  }

  #lacks(reason: string): Unrecorded {
    this.#parts.missing.push(reason)
    return new Unrecorded(reason)
  }

  async #answer({ status, tool, output, error, ...ended }: EffectEnded): Promise<{ output: unknown; cost_usd: number }> {
    if (status === 'ok' || status === 'reused') {
      if (error !== null || isNotLogged(output)) throw this.#lacks(`the output of ${tool} was too large for the log`)
      return { output, cost_usd: costIn(output) }
    }
    const message = error ?? `the tool ${tool} failed`
    if (LOST.test(message)) throw this.#lacks('the process died during the run')
    const [, stopped] = STOPPED.exec(message) ?? []
    if (stopped !== undefined) {
      if (stopped === 'timeout') this.#timer()
      else this.#parts.abort()
      return new Promise(() => {})
    }
    const { retryable = false, cost_usd = 0 } = ended
    const found = this.#parts.toolOf(tool)
    const reads = found.ok && found.definition.repeatable === true
    if (status === 'unknown' && !reads) throw Object.assign(new CutOff(message), { cost_usd })
    throw Object.assign(new Error(message), { retryable, cost_usd })
  }
}

const callsUnder = (source: Source, span: string): EffectEnded[] =>
  source.entriesOf('effect-ended').filter(({ parent_id }) => parent_id === span)

const isNotLogged = (output: unknown): boolean => sameJson(Object.keys(Object(output)), ['not_logged'])
