import type { Command } from 'commander'
import { connect, type Api } from '../lib/api.ts'
import { interruption, type Interruption } from '../lib/interruption.ts'
import { printer, type Printer } from './printer.ts'
import { profilesPath, readProfiles } from './profiles.ts'
import { isUnencrypted, targetOf, type Flags } from './target.ts'

type Globals = Flags & { json?: boolean }

/** The means of one run of a command. */
export type Session = {
  flags: Globals
  print: Printer
  /** Connects on first use: some commands need no server. */
  api: () => Api
  interruption: Interruption
  signal: AbortSignal
}

/** 1: a check failed, and the output says which. */
export type ExitOutcome = 1 | void
type Arguments = (string | number | string[] | object | undefined)[]

/** Makes a handler of a command: it receives a session, then commander's arguments and options. */
export function handler<Given extends Arguments>(run: (session: Session, ...given: Given) => Promise<ExitOutcome> | ExitOutcome) {
  return async (...all: unknown[]): Promise<void> => {
    const command = all.at(-1) as Command
    const session = sessionOf(command.optsWithGlobals())
    try {
      const outcome = await run(session, ...(all.slice(0, -1) as Given))
      if (outcome !== undefined) process.exitCode = outcome
    } catch (error) {
      // The abort itself is not a failure.
      if (!session.signal.aborted) throw error
    }
    if (session.signal.aborted) process.exitCode = session.interruption.exitCode()
  }
}

function sessionOf(flags: Globals): Session {
  const print = printer(flags.json ?? false)
  let api: Api | null = null
  const stop = interruption()
  return {
    flags,
    print,
    interruption: stop,
    signal: stop.signal,
    api: () => (api ??= connected(flags, print)),
  }
}

function connected(flags: Globals, print: Printer): Api {
  const { url, key } = targetOf(flags, process.env, readProfiles(profilesPath(process.env)))
  if (isUnencrypted(url)) print.note(`Warning: ${url} is not encrypted: others on the way can read the key. Use https.`)
  return connect(url, key, `Check that the server runs and that ${url} is its address: reflex doctor`)
}
