import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { deadLetter } from '../../../src/contract/event-record.ts'
import { dead_letters } from '../../../src/contract/lists/deployment.ts'
import { discard, list } from '../../../src/contract/operations/dead-letters.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { counted } from '../../lib/text.ts'
import { addNoun, addOperation } from '../operation.ts'
import { route } from '../pages.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { fields, linesOf, safeJson, written } from '../table.ts'
import { wholeNumber } from '../values.ts'

type DeadLetter = z.infer<typeof deadLetter>
type Filter = { scope?: string; type?: string }
type Retried = { retried: number; failed: { id: string; reason: string }[] }

export function addDeadLetters(program: Command): void {
  const dlq = addNoun(program, {
    noun: 'dlq',
    help: 'Dead letters: events that a scope gave up on, and queue messages and deals that could not be delivered',
  })
  addOperation(dlq, list)
  dlq.command('show <id>').description('Show a dead letter with its event and stack trace').action(handler(show))
  const retried = dlq.command('retry [ids...]').description('Return events to their scopes; exit with 1 if one could not be')
  for (const [flags, help] of dead_letters.flags) retried.option(flags, help)
  retried
    .option('--all', 'the newest dead letters, as many as --limit')
    .addOption(new Option('--limit <n>', 'the largest number, at most 1000').default(100).argParser(wholeNumber))
    .action(handler(retry))
  addOperation(dlq, discard)
}

async function show({ api, print, signal }: Session, id: string): Promise<void> {
  const letter = await api().json<DeadLetter>(route(['dlq', id]), { signal })
  const { event, payload, stack, ...about } = letter
  print.result(letter, (paint) => [
    ...fields(about, paint),
    ...(stack === null ? [] : ['', ...linesOf(stack)]),
    '',
    ...(event === undefined ? linesOf(payload ?? '') : linesOf(safeJson(event, 2))),
  ])
}

async function retry(
  { api, print, signal }: Session,
  ids: string[],
  options: Filter & { all?: true; limit: number },
): Promise<ExitOutcome> {
  const { all, limit, ...filter } = options
  if (ids.length > 0) {
    for (const id of ids) {
      const answer = await api().json<{ event_id: string; scope: string }>(route(['dlq', id, 'retry']), { method: 'POST', signal })
      print.item(answer, () => `Returned ${written(answer.event_id)} to ${written(answer.scope)}.`)
    }
    return
  }
  if (!all && Object.keys(filter).length === 0) throw new UsageError('Name ids, or --scope, --type or --all.')
  const answer = await api().json<Retried>('/v1/dlq/retry', { method: 'POST', body: { ...filter, limit }, signal })
  print.result(answer, (paint) => [
    `Returned ${counted(answer.retried, 'event')}.`,
    ...answer.failed.map(({ id, reason }) => paint('red', `${written(id)}: ${written(reason)}`)),
  ])
  return answer.failed.length > 0 ? 1 : undefined
}
