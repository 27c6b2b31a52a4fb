import { parseArgs } from 'node:util'
import { CliError, messageOf } from '../lib/cli-error.ts'

export const EXAMPLE = 'examples/ssh-auth.log'

export type DemoOptions = {
  file: string | null
  limit: number
  speed: number | null
  timeout_s: number
  reflex: boolean
  learning: boolean
  keep: boolean
  json: boolean
  help: boolean
}

export const help = `Usage: npm run demo -- [options]

Starts Reflex on this machine (no network, state in a temporary folder), sends
it an SSH log line by line, and prints what was decided and done: at once by a
reflex, and by its agent ssh-guard, which thinks, where no reflex is sure. Ends
by itself and leaves nothing behind. The dashboard shows the rest: --keep.

  --file PATH    an sshd auth log, such as /var/log/auth.log
                 [${EXAMPLE}]
  --limit N      send its first N lines [100000]
  --speed N      send N lines a second [as fast as it goes]
  --timeout S    give up after S seconds without any progress [60]
  --no-reflex    leave every line to the agent
  --no-learning  leave out the scope that learns from its decisions
  --keep         leave the server and its dashboard up until Ctrl-C
  --json         one JSON summary on stdout, progress on stderr; keeps npm's
                 own banner out with: npm run -s demo -- --json
  --help         this

Exit codes: 0 done, 1 failed, 130 stopped by Ctrl-C before the end.
Colour only on a terminal; NO_COLOR is honoured.`

const options = {
  file: { type: 'string' },
  limit: { type: 'string', default: '100000' },
  speed: { type: 'string' },
  timeout: { type: 'string', default: '60' },
  'no-reflex': { type: 'boolean', default: false },
  'no-learning': { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const

/** Throws a CliError that names the mistake. */
export function parseOptions(args: string[]): DemoOptions {
  const { file, limit, speed, timeout, 'no-reflex': without, 'no-learning': untaught, keep, json, help } = parsed(args)
  return {
    file: file ?? null,
    limit: positive('--limit', limit),
    speed: speed === undefined ? null : positive('--speed', speed),
    timeout_s: positive('--timeout', timeout),
    reflex: !without,
    learning: !untaught,
    keep,
    json,
    help,
  }
}

function parsed(args: string[]) {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new CliError(messageOf(error).split('. ')[0] ?? '', 'npm run demo -- --help lists the options.', error)
  }
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new CliError(`${name} takes a whole number from 1; it was ${JSON.stringify(text)}.`)
  return value
}
