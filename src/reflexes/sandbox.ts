/** `hash` names the code: the same hash is the same code. */
export type Program = { hash: string; code: string }

export type RunReason = 'fired' | 'null' | 'error' | 'limit' | 'invalid_action'

/**
 * The outcome of a run. `value` is the reflex's result, not yet validated as an action, if the
 * reason is `fired`, else null. `fuel` counts the work done and is the same for the same code and
 * context; `duration_us` is 0 on a runtime whose clock does not advance.
 */
export type Run<Value = unknown> = { value: Value | null; reason: RunReason; error: string | null; fuel: number; duration_us: number }

/**
 * Runs programs that nobody trusts: whatever one does, `run` returns, and the next run finds
 * nothing of it.
 */
export interface Sandbox {
  /**
   * `context` is JSON, or a ContextJson of it; it goes in as text, so that a program can change
   * only its own copy.
   */
  run(program: Program, context: unknown): Run
  dispose(): void
}

/**
 * Sizes in bytes of JSON or source as UTF-8, time in ms. The heap of 4 MB is set where sandbox.wasm
 * is built.
 */
export const sandboxLimits = {
  code_bytes: 64 * 1024,
  context_bytes: 64 * 1024,
  output_bytes: 16 * 1024,
  /**
   * Bounds computation by itself, in production too, where no clock runs. How it was chosen:
   * docs/sandbox.md.
   */
  fuel: 4_000_000,
  /** For the first run of a program, which has to be compiled before. */
  compile_fuel: 8_000_000,
  /** Maximum memory of a program's definition, which is restored before each run. */
  data_bytes: 2 * 1024 * 1024,
  /**
   * Maximum engine stack for calls, in bytes as the metering counts them: about 470 calls of a
   * reflex's own functions.
   */
  depth: 256 * 1024,
  /** The second net. */
  run_ms: 100,
} as const
