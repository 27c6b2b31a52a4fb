import { painter } from './paint.ts'
import { harmless } from './text.ts'

const MOST_LINES = 25

/** A failure that is printed without a stack: the cause and the remedy. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly hint: string | null

  constructor(message: string, hint: string | null = null, cause?: unknown) {
    super(message, { cause })
    this.hint = hint
  }
}

/** The command line was wrong; nothing was done. */
export class UsageError extends CliError {}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Prints it to stderr with the remedy and returns the exit code. */
export function tellFailure(what: string, error: unknown): 1 {
  const paint = painter(process.stderr)
  const all = messageOf(error)
    .split('\n')
    .map((line) => harmless(line))
  // The end of a server's output says most.
  const lines = all.length > MOST_LINES ? [...all.slice(0, 1), '…', ...all.slice(-MOST_LINES)] : all
  const hint = error instanceof CliError && error.hint ? `${error.hint}\n` : ''
  process.stderr.write(`${paint('red', what)} ${lines.join('\n')}\n${hint}`)
  return 1
}
