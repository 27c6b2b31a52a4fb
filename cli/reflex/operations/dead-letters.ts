import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { deadLetter } from '../../../src/contract/event-record.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { counted } from '../../lib/text.ts'
import { pages, route } from '../pages.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { fields, linesOf, safeJson, written, type Column } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'

type DeadLetter = z.infer<typeof deadLetter>
type Filter = { scope?: string; type?: string }
type Retried = { retried: number; failed: { id: string; reason: string }[] }

const columns: Column<DeadLetter>[] = [
  { title: 'TIME', of: ({ dead_lettered_at }) => dead_lettered_at },
  { title: 'ID', of: ({ id }) => id },
  { title: 'SCOPE', of: ({ scope }) => scope },
  { title: 'TYPE', of: ({ type }) => type },
  { title: 'TRIES', of: ({ attempts }) => attempts },
  { title: 'ERROR', of: ({ error }) => error, colour: () => 'red' },
]

const filtered = (command: Command): Command =>
  command.option('--scope <scope>', 'of one scope').option('--type <type>', 'of one type of event')

export function addDeadLetters(program: Command): void {
  const dlq = program
    .command('dlq')
    .description('Dead letters: events that a scope gave up on, and queue messages and deals that could not be delivered')
  filtered(dlq.command('list'))
    .description('List dead letters, newest first')
    .addOption(limitOption())
    .action(
      handler(async ({ api, print, signal }, { limit, ...query }: Filter & { limit: number }) => {
        print.page(
          await pages<DeadLetter>(api(), { parts: ['dlq'], query, limit, most: 1000, signal }),
          columns,
          'There are no dead letters.',
        )
      }),
    )
  dlq.command('show <id>').description('Show a dead letter with its event and stack trace').action(handler(show))
  filtered(dlq.command('retry [ids...]'))
    .description('Return events to their scopes; exit with 1 if one could not be')
    .option('--all', 'the newest dead letters, as many as --limit')
    .addOption(new Option('--limit <n>', 'the largest number, at most 1000').default(100).argParser(wholeNumber))
    .action(handler(retry))
  dlq
    .command('discard <ids...>')
    .description('Remove dead letters; their events stay in their scopes as dead_lettered')
    .action(
      handler(async ({ api, print, signal }, ids: string[]) => {
        for (const id of ids) {
          await api().json(route(['dlq', id]), { method: 'DELETE', signal })
          print.item({ discarded: id }, () => `Discarded ${written(id)}.`)
        }
      }),
    )
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

async function retry({ api, print, signal }: Session, ids: string[], options: Filter & { all?: true; limit: number }): Promise<Outcome> {
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
