import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { LearnedReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import type { Trace } from '../../../src/features/learning/skills/trace.ts'
import type { Skipped } from '../../../src/features/learning/episodes/reader.ts'
import type { Recording } from '../../../src/features/replay/recording.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import type { Paint } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { isStandaloneFile, openStandalone } from '../standalone-file.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written } from '../table.ts'

const REFLEXES_HELP = `
Each file is a trace as "reflex trace export" writes it. A decision that turns repeat becomes a reflex:
readable code that decides the same from what the event and its context show. What the older traces
teach has to predict the newer ones, or the decision is refused with its reason.

Nothing is registered: "reflex reflex register" does that, and shadow mode proves it.

Example:
  reflex learn reflexes traces/*.json --output learned/`

export async function recordingsIn(files: readonly string[]): Promise<Recording[]> {
  const { openRecordings } = await import('../../../src/features/replay/recording.ts')
  const recordings: Recording[] = []
  for (const file of files) {
    if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`, 'To learn from a scope: reflex learn snapshot SCOPE')
    const opened = await openRecordings(readFileSync(file, 'utf8'))
    if (!opened.ok) throw new CliError(`${file}: ${opened.detail}`)
    recordings.push(...opened.recordings)
  }
  return recordings
}

/** The latest turns in each file of a standalone process. */
export async function turnsOf(files: readonly string[]): Promise<Trace[]> {
  const { readStandalone } = await import('../../../src/features/learning/episodes/standalone.ts')
  const opened = await Promise.all(files.map(openStandalone))
  return opened.flatMap(({ log }) => readStandalone(log, { place: NOWHERE, labels: [], most: MOST_TURNS }).traces)
}

/** The file does not name the process's project. */
const NOWHERE = { agent: '', agent_version: '' }
const MOST_TURNS = 10_000

export function addLearnReflexes(learn: Command): void {
  learn
    .command('reflexes <files...>')
    .description('Find the decisions that turns repeat, and write them as reflexes; exit with 1 if nothing is found')
    .option('--trusted <source...>', 'senders of events that may carry more than a third of a rule', [])
    .option('--output <folder>', 'the folder for the code')
    .addHelpText('after', REFLEXES_HELP)
    .action(handler(learnFrom))
}

type FileOptions = { trusted: string[]; output?: string }

async function learnFrom({ print }: Session, files: string[], { trusted, output }: FileOptions): Promise<ExitOutcome> {
  const process_file = files.find(isStandaloneFile)
  if (process_file !== undefined)
    throw new UsageError(`${process_file} belongs to a standalone process: it has no events that a reflex could decide on.`)
  const recordings = await recordingsIn(files)
  const [{ readRecordings }, { learnReflexes }] = await Promise.all([
    import('../../../src/features/learning/episodes/recordings.ts'),
    import('../../../src/features/learning/reflexes/learn.ts'),
  ])
  const { episodes, skipped } = readRecordings(recordings)
  const learned = learnReflexes(episodes, { trusted: new Set(trusted) })
  const { reflexes, refused, disputed, episodes: used } = learned
  if (output !== undefined) {
    mkdirSync(output, { recursive: true })
    for (const { id, code } of reflexes) writeFileSync(join(output, `${id}.js`), code)
  }
  const shown = reflexes.map(({ evidence: { taught, ...evidence }, ...reflex }) => ({
    ...reflex,
    evidence: { ...evidence, traces: [...new Set(taught.flatMap((index) => used[index]?.trace_id ?? []))] },
  }))
  print.result({ episodes: episodes.length, skipped, reflexes: shown, refused, disputed }, (paint) => lines(learned, skipped, paint))
  return reflexes.length > 0 ? undefined : 1
}

function lines({ episodes, reflexes, refused }: LearnedReflexes, skipped: readonly Skipped[], paint: Paint): string[] {
  return [
    `${counted(episodes.length, 'decision')} read, ${counted(reflexes.length, 'reflex', 'reflexes')} found, ${counted(refused.length, 'decision')} refused`,
    ...skipped.map(({ reason, count }) => paint('dim', `- ${counted(count, 'decision')} skipped: ${written(reason)}`)),
    ...reflexes.flatMap(({ id, decision, evidence: { episodes: taught, exceptions, held_out } }) => [
      `${paint('green', '✓')} ${written(id)}: ${written(decision)}`,
      `    from ${counted(taught, 'decision')}, ${counted(exceptions, 'exception')}; the older ones predict ${held_out.agreed} of ${held_out.covered} newer ones, of ${held_out.n} in all`,
    ]),
    ...refused.map(({ decision, episodes: count, reason }) =>
      paint('dim', `- ${written(decision)} (${counted(count, 'decision')}): ${written(reason)}`),
    ),
  ]
}
