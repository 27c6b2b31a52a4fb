// A week of messages, filed by a model at first and by learned reflexes at last.
//
//   npm run example:learning
//   npm run example:learning -- --file sms-spam.tsv --svg curve.svg
//
// It starts the real local server and a script that acts as the model: it files each message as
// its label says. The scope learns from these decisions, proves what it learned in shadow mode, and
// then decides by itself. The exit code is 1 if it took no decision over.

import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { curveSvg } from '../../cli/learning/curve.ts'
import { LESSON_SENDER, teach, type Lesson, type Taught } from '../../cli/learning/lesson.ts'
import { curveLines, curveOf, reflexLines, runLines } from '../../cli/learning/report.ts'
import type { Api } from '../../cli/lib/api.ts'
import { CliError, messageOf, tellFailure } from '../../cli/lib/cli-error.ts'
import { interruption, unlessAborted } from '../../cli/lib/interruption.ts'
import { painter } from '../../cli/lib/paint.ts'
import { count } from '../../cli/lib/text.ts'
import { readInput, type Message } from './input.ts'
import { eventsOf, filing, onStage } from './stage.ts'

const HELP = `Usage: npm run example:learning -- [options]

Sends a simulated week of messages to a local server, lets it learn from what a
scripted model decides, and draws how many model calls are left.

  --file PATH  lines of a label, a tab and a text, such as the public collection
               SMS Spam of UCI (labels "ham" and "none" mean: do nothing)
               [mails to a support desk, written by the example]
  --events N   send the first N messages [1500]
  --svg PATH   write the curve as a picture, too
  --json       print the figures as JSON
  --help       this`

const SCOPE = 'mail/inbox'
const { signal, exitCode } = interruption()
const paint = painter(process.stdout)
const look = { columns: process.stdout.isTTY ? process.stdout.columns : 100, paint }

type Options = { file: string | null; events: number; svg: string | null; json: boolean }

async function main(): Promise<number> {
  const options = optionsOf()
  if (options === null) {
    console.log(HELP)
    return 0
  }
  const messages = readInput({ file: options.file, most: options.events, now: Date.now() })
  return onStage({ name: 'learning', messages, signal }, async ({ api, host, line }) => {
    const taught = await unlessAborted(
      signal,
      teach(api, lessonOf(messages, host), {
        signal,
        onProgress: ({ sent, of, doing }) =>
          line.show(`${count(sent)} of ${count(of)} messages sent${doing === 'learning' ? '; learning' : ''}`),
      }),
    )
    line.close()
    if (options.svg !== null) writeFileSync(options.svg, curveSvg(curveOf(taught, title(messages))))
    if (options.json) console.log(JSON.stringify({ ok: taught.by_reflex > 0, ...taught }))
    else await tell(api, taught, messages)
    return taught.by_reflex > 0 ? 0 : 1
  })
}

const title = (messages: readonly Message[]): string => `Model calls per 100 messages, over a week of ${count(messages.length)}`

async function tell(api: Api, taught: Taught, messages: readonly Message[]): Promise<void> {
  const parts = [curveLines(taught, title(messages), look), runLines(taught.runs, look), await reflexLines(api, taught.runs, look)]
  console.log(parts.map((lines) => lines.join('\n')).join('\n\n'))
}

function lessonOf(messages: readonly Message[], host: string): Lesson {
  return {
    scope: SCOPE,
    events: eventsOf(messages),
    learn_after: [0.3, 0.5, 0.7].map((share) => Math.round(messages.length * share)),
    settings: { ...filing(host), learning: { mode: 'auto', min_agreement: 0.95, audit_share: 0.02, trusted_sources: [LESSON_SENDER] } },
  }
}

function optionsOf(): Options | null {
  const names = {
    file: { type: 'string' },
    events: { type: 'string', default: '1500' },
    svg: { type: 'string' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  } as const
  try {
    const { file, events, svg, json, help } = parseArgs({ options: names }).values
    const most = Number(events)
    if (!Number.isInteger(most) || most < 1) throw new CliError(`--events takes a whole number from 1; it was ${JSON.stringify(events)}.`)
    return help ? null : { file: file === undefined ? null : named(file), events: most, svg: svg === undefined ? null : named(svg), json }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(messageOf(error).split('. ')[0] ?? '', 'npm run example:learning -- --help lists the options.', error)
  }
}

/** npm runs scripts in the project's folder; the user names a file relative to the current one. */
const named = (path: string): string => resolve(process.env['INIT_CWD'] ?? '.', path)

try {
  process.exitCode = await main()
} catch (error) {
  process.exitCode = signal.aborted ? exitCode() : tellFailure('The example failed:', error)
}
// Connections that the server was killed under may keep a handle for a while.
process.exit()
