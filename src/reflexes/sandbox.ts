/** `hash` names the code: the same hash is the same code. */
export type Program = { hash: string; code: string }

export type RunReason = 'fired' | 'null' | 'error' | 'limit' | 'invalid_action'

/**
 * What became of a run. `value` is what the reflex returned, not yet checked to be an action, where the reason is `fired`, else null.
 * `fuel` counts the work done, and is the same for the same code on the same context; `duration_us` is 0 where the clock stands still.
 */
export type Run<Value = unknown> = { value: Value | null; reason: RunReason; error: string | null; fuel: number; duration_us: number }

/** Runs programs that nobody trusts: whatever one does, `run` returns, and the next run finds nothing of it. */
export interface Sandbox {
  /** `context` is JSON, or a ContextJson of it; it goes in as text, so that a program can change only its own copy. */
  run(program: Program, context: unknown): Run
  dispose(): void
}

/** Sizes in bytes of JSON or source as UTF-8, time in ms. The heap of 4 MB is set where sandbox.wasm is built. */
export const sandboxLimits = {
  code_bytes: 64 * 1024,
  context_bytes: 64 * 1024,
  output_bytes: 16 * 1024,
  /** Bounds computation by itself, in production too, where no clock runs. How it was chosen: docs/sandbox.md. */
  fuel: 4_000_000,
  /** For the first run of a program, which has to be compiled before. */
  compile_fuel: 8_000_000,
  /** What a program's definition may keep in memory. All of it is put back before each of its runs. */
  data_bytes: 2 * 1024 * 1024,
  /** What calls may take of the engine's stack, in bytes as the metering reckons them: about 470 calls of a reflex's own functions. */
  depth: 256 * 1024,
  /** The second net. */
  run_ms: 100,
} as const
