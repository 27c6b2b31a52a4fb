import { backoff } from '../../base/backoff.ts'
import { ScopedLocks } from '../../core/scoped-locks.ts'
import { messageOf } from '../../base/error-text.ts'
import { jsonText, type Json } from '../../base/json.ts'
import type { EffectEnd } from '../../contract/log-entry.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import { costIn } from '../../skills/runner/call-step.ts'
import { pause, withinTime, type Within } from '../../base/deadline.ts'
import type { OutputStore } from '../storage.ts'
import { isRetryable } from '../../base/faults.ts'
import { ToolLogValues, type Redaction } from './tool-log.ts'

export type ToolPolicy = {
  timeout_ms?: number
  /**
   * `max_attempts` includes the first one; the pause doubles. Timeouts need a key to be retried.
   */
  retry?: { max_attempts: number; backoff_ms: number }
  redact?: readonly string[]
  /** Names an effect that happens once: a repeated key returns the last good output. */
  idempotence_key?: (input: unknown) => string | null
  /** It has no side effects: skills of a control plane that call it need no approval for it. */
  repeatable?: boolean
  cost_usd?: number | ((input: unknown, output: unknown) => number)
}

type ToolCallerPorts = {
  now(): number
  wait(ms: number, signal: AbortSignal): Promise<void>
  log(ended: ToolEnded): void
  outputs: OutputStore
  /** The locks of all callers that share these outputs. */
  keys?: ScopedLocks
  redaction: Redaction
}

/** The end of a call, as an entry of the log has it. */
type ToolEnded = {
  tool: string
  call_id: string
  status: EffectEnd
  input: Json
  output: Json
  error: string | null
  attempts: number
  duration_ms: number
  cost_usd: number
  idempotence_key: string | null
  retryable?: true
}

type ToolUse = {
  tool: string
  call_id: string
  input: unknown
  /** The input for the log, if the tool was given another one. */
  asked?: unknown
  policy: ToolPolicy
  signal: AbortSignal | undefined
  /** Passed to the tool, for its own calls; not looked up if the policy has none. */
  key: string | null
  hide?: (value: Json) => Json
  work: (signal: AbortSignal, idempotence_key: string | null) => Promise<unknown>
}

export type CallerOutput = { output: unknown; cost_usd: number; reused: boolean }

/** Kept in place of such an output: the call must not fail, since it has happened. */
const NOT_JSON = '{"not_kept":"what it gave is not JSON"}'
const TOOL_TIMEOUT_MS = 30_000

/** Thrown if a tool timed out: its effect may have happened. */
export class ToolTimeout extends Error {
  override readonly name = 'ToolTimeout'
}

/** Calls tools with a timeout, retries, idempotency keys and a log entry for each call. */
export class ToolCaller {
  readonly #ports: ToolCallerPorts
  readonly #keys: ScopedLocks

  constructor(ports: ToolCallerPorts) {
    this.#ports = ports
    this.#keys = ports.keys ?? new ScopedLocks()
  }

  async use(use: ToolUse): Promise<CallerOutput> {
    const { tool, policy, input } = use
    const own = policy.idempotence_key?.(input) ?? null
    if (own === null) return this.#run(use, null)
    const name = `tool:${tool}:${own}`
    // A call with a key that is in use waits, and runs only if the earlier call failed.
    return this.#keys.run(name, () => this.#once({ ...use, key: own }, name))
  }

  async #once(use: ToolUse, name: string): Promise<CallerOutput> {
    const known = await this.#ports.outputs.get(name)
    if (known !== undefined) {
      await this.#tell(use, this.#noted(use), { status: 'reused', output: known, attempts: 0, duration_ms: 0, cost_usd: 0 })
      return { output: known, cost_usd: 0, reused: true }
    }
    return this.#run(use, name)
  }

  async #run(use: ToolUse, name: string | null): Promise<CallerOutput> {
    const { policy, input } = use
    const started = this.#ports.now()
    const noted = this.#noted(use)
    const { ended, attempts } = await this.#attempts(use)
    const duration_ms = this.#ports.now() - started
    if (ended.ended !== 'done') {
      const error = errorOf(ended, use)
      const status = error instanceof CutOff ? 'unknown' : 'failed'
      await this.#tell(use, noted, { status, error, attempts, duration_ms, cost_usd: costIn(error) })
      throw error
    }
    const cost_usd = typeof policy.cost_usd === 'function' ? policy.cost_usd(input, ended.value) : (policy.cost_usd ?? costIn(ended.value))
    if (name !== null) await this.#ports.outputs.put(name, JSON.parse(jsonText(ended.value) ?? NOT_JSON) as Json)
    await this.#tell(use, noted, { status: 'ok', output: ended.value, attempts, duration_ms, cost_usd })
    return { output: ended.value, cost_usd, reused: false }
  }

  async #attempts({ policy, signal, key, work }: ToolUse): Promise<{ ended: Within<unknown>; attempts: number }> {
    const { max_attempts, backoff_ms } = policy.retry ?? { max_attempts: 1, backoff_ms: 0 }
    const wait = (ms: number, stop: AbortSignal) => this.#ports.wait(ms, stop)
    for (let attempts = 1; ; attempts++) {
      const timeout_ms = policy.timeout_ms ?? TOOL_TIMEOUT_MS
      const ended = await withinTime((stop) => work(stop, key), { timeout_ms, wait, signal })
      if (attempts >= max_attempts || !this.#mayHelp(ended, key !== null)) return { ended, attempts }
      if (!(await pause(backoff({ first_ms: backoff_ms, longest_ms: Infinity }, attempts), { wait, signal }))) return { ended, attempts }
    }
  }

  #mayHelp(ended: Within<unknown>, keyed: boolean): boolean {
    if (ended.ended === 'timeout') return keyed
    return ended.ended === 'threw' && isRetryable(ended.error, { keyed })
  }

  /** The input is made ready for the log while the tool is at work. */
  #noted({ input, asked = input, policy }: ToolUse): Noted {
    const { fields = [], salt = '' } = this.#ports.redaction
    const values = new ToolLogValues({ fields: [...fields, ...(policy.redact ?? [])], salt })
    return { values, input: values.value(asked) }
  }

  async #tell({ tool, call_id, key, hide = asItIs }: ToolUse, noted: Noted, told: Told): Promise<void> {
    const { status, attempts, duration_ms, cost_usd } = told
    const input = hide(await noted.input)
    const output = 'output' in told ? hide(await noted.values.value(told.output)) : null
    const error = 'error' in told ? (hide(noted.values.text(messageOf(told.error))) as string) : null
    const idempotence_key = key === null ? null : noted.values.text(key)
    const retryable = 'error' in told && isRetryable(told.error, { keyed: key !== null }) && { retryable: true as const }
    this.#ports.log({ tool, call_id, status, input, output, error, attempts, duration_ms, cost_usd, idempotence_key, ...retryable })
  }
}

const asItIs = (value: Json): Json => value

type Noted = { values: ToolLogValues; input: Promise<Json> }
type Told = { status: EffectEnd; attempts: number; duration_ms: number; cost_usd: number; output?: unknown; error?: unknown }

function errorOf(ended: Exclude<Within<unknown>, { ended: 'done' }>, { tool, policy, signal }: ToolUse): unknown {
  if (ended.ended === 'threw') return ended.error
  if (ended.ended === 'timeout') return new ToolTimeout(`${tool} took longer than ${policy.timeout_ms ?? TOOL_TIMEOUT_MS} ms`)
  return signal?.reason ?? new Error(`${tool} was stopped`)
}
