import { limits } from '../base/limits.ts'

/** `hash` names the code: the same hash is the same code. */
export type Program = { hash: string; code: string }

export type RunReason = 'fired' | 'null' | 'error' | 'limit' | 'invalid_action'

/**
 * The outcome of a run. `value` is the unvalidated result if the reason is `fired`, else null.
 * `fuel` is the same for the same code and context; `duration_us` is 0 without a clock.
 */
export type SandboxRun<Value = unknown> = {
  value: Value | null
  reason: RunReason
  error: string | null
  fuel: number
  duration_us: number
}

/** Runs untrusted programs: `run` always returns, and a run leaves no trace. */
export interface Sandbox {
  /**
   * `context` is JSON or a ContextJson, passed as text, so that a program changes only its copy.
   */
  run(program: Program, context: unknown): SandboxRun
  dispose(): void
}

/** Sizes in bytes, time in ms. The heap of 4 MB is set where sandbox.wasm is built. */
export const sandboxLimits = {
  code_bytes: limits.code_bytes,
  context_bytes: 64 * 1024,
  output_bytes: 16 * 1024,
  /** Bounds computation without a clock. See docs/sandbox.md. */
  fuel: 4_000_000,
  /** For the first run of a program, which has to be compiled before. */
  compile_fuel: 8_000_000,
  /** Maximum memory of a program's definition, which is restored before each run. */
  data_bytes: 2 * 1024 * 1024,
  /** Maximum stack for calls: about 470 calls of a reflex's own functions. */
  depth: 256 * 1024,
  /** A second limit, by the clock. */
  run_ms: 100,
} as const
