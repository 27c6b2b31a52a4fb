import { reflexProgram } from './program.ts'
import { runProgram } from './run-program.ts'

/** Returns the exit code. */
export const main = (args: readonly string[]): Promise<number> => runProgram(reflexProgram, args)
