import { Command } from 'commander'
import { addInit } from './project/init.ts'
import { runProgram } from './run-program.ts'

/**
 * The one command that an older Node runs. A project can bring a newer Node, but only once there is
 * a project. What this imports must exist in Node 20.
 */
export const main = (args: readonly string[]): Promise<number> =>
  runProgram(() => {
    const program = new Command('reflex').exitOverride()
    addInit(program)
    return program
  }, args)
