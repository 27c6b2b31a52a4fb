/** A failure that is told to the user as it stands: what went wrong, and what to do about it. */
export class CliError extends Error {
  override readonly name = 'CliError'
  readonly hint: string | null

  constructor(message: string, hint: string | null = null, cause?: unknown) {
    super(message, { cause })
    this.hint = hint
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
