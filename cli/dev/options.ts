import { parseArgs } from 'node:util'
import { CliError, messageOf } from '../lib/cli-error.ts'

export type DevOptions = { port: number; state: string; help: boolean }

export const help = `Usage: npm run dev -- [options]

Runs Reflex on this machine, without a network. It reloads when a source file
changes, and restarts when .dev.vars changes or when it crashes.

  --port N     where it listens, on 127.0.0.1 [8787]
  --state DIR  where its state is kept between runs [.reflex]
  --help       this

The admin key is REFLEX_ADMIN_KEY in .dev.vars. Without one, a key is generated
and kept in the state's folder. Put other variables and secrets into .dev.vars,
too, one NAME=value a line. Ctrl-C ends the server.

It listens on 127.0.0.1 only. Do not expose it: it is a development server.`

const options = {
  port: { type: 'string', default: '8787' },
  state: { type: 'string', default: '.reflex' },
  help: { type: 'boolean', short: 'h', default: false },
} as const

export function parseOptions(args: string[]): DevOptions {
  const { port, state, help } = parsed(args)
  const number = Number(port)
  if (!Number.isInteger(number) || number < 1 || number > 65_535)
    throw new CliError(`--port takes a number from 1 to 65535; it was ${JSON.stringify(port)}.`)
  return { port: number, state, help }
}

function parsed(args: string[]) {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new CliError(messageOf(error).split('. ')[0] ?? '', 'npm run dev -- --help lists the options.', error)
  }
}
