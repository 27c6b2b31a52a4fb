import { CommanderError, type Command } from 'commander'
import { tellFailure, UsageError } from '../lib/cli-error.ts'

/** Returns the exit code: 0, 1 for a failure or a failed check, 2 for wrong usage, 128 + signal. */
export async function runProgram(program: () => Command, args: readonly string[]): Promise<number> {
  // The reader of a pipe may end first, such as head.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  // npm runs scripts in the project's folder; the user names files relative to their own.
  if (process.env['npm_lifecycle_event'] === 'reflex' && process.env['INIT_CWD']) process.chdir(process.env['INIT_CWD'])
  try {
    await program().parseAsync(args, { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    // commander has printed it: its code is 0 for help and the version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    const code = tellFailure('reflex:', error)
    return error instanceof UsageError ? 2 : code
  }
}
