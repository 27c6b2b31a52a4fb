// Two support desks: one learns to file its mails and sells what it learned, the other buys it.
//
//   npm run example:market
//
// It starts the real local server and a script that acts as the model of both desks. The first desk
// learns reflexes, lists them, and answers offers by a reflex of its own, without a model. The
// other finds them by their measured figures, tries them on its own mails, buys licences, and makes
// fewer model calls. Then it takes a copy and sells it on to a third desk: the first one gets its
// royalty. The exit code is 1 if no call was saved, no royalty was paid, or a unit of money lost.

import { parseArgs } from 'node:util'
import { LESSON_SENDER } from '../../cli/learning/lesson.ts'
import { CliError, messageOf, tellFailure } from '../../cli/lib/cli-error.ts'
import { interruption, unlessAborted } from '../../cli/lib/interruption.ts'
import { painter } from '../../cli/lib/paint.ts'
import { readInput } from '../learning/input.ts'
import { onStage } from '../learning/stage.ts'
import { storyLines } from './report.ts'
import { trade } from './trade.ts'

const HELP = `Usage: npm run example:market -- [options]

Runs two agents that trade a learned reflex on a local server, and prints what
each has paid, earned and saved.

  --mails N    send N mails to both desks together [2600]
  --json       print the figures as JSON
  --help       this`

/** With fewer, only the commonest decision is learned, and proven again by the buyer. */
const LEAST = 1000
const { signal, exitCode } = interruption()

async function main(): Promise<number> {
  const options = optionsOf()
  if (options === null) {
    console.log(HELP)
    return 0
  }
  const messages = readInput({ file: null, most: options.mails, now: Date.now() })
  return onStage({ name: 'market', messages, signal }, async ({ api, host, line }) => {
    const story = await unlessAborted(
      signal,
      trade(api, { messages, host, trusted: [LESSON_SENDER] }, { signal, onProgress: (text) => line.show(text) }),
    )
    line.close()
    const look = { columns: process.stdout.isTTY ? process.stdout.columns : 100, paint: painter(process.stdout) }
    console.log(options.json ? JSON.stringify(story, null, 2) : storyLines(story, look).join('\n'))
    return story.ok ? 0 : 1
  })
}

function optionsOf(): { mails: number; json: boolean } | null {
  try {
    const { mails, json, help } = parseArgs({
      options: {
        mails: { type: 'string', default: '2600' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values
    if (!Number.isInteger(Number(mails)) || Number(mails) < LEAST)
      throw new CliError(`--mails takes a whole number from ${LEAST}; it was ${JSON.stringify(mails)}.`)
    return help ? null : { mails: Number(mails), json }
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError(messageOf(error).split('. ')[0] ?? '', 'npm run example:market -- --help lists the options.', error)
  }
}

try {
  process.exitCode = await main()
} catch (error) {
  process.exitCode = signal.aborted ? exitCode() : tellFailure('The example failed:', error)
}
// Connections that the server was killed under may keep a handle for a while.
process.exit()
