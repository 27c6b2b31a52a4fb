import { Option, type Command } from 'commander'
import { dead_letters } from '../../../src/contract/lists/deployment.ts'
import { discard, find, groups, list, retry as retryOne, retryMany } from '../../../src/contract/operations/dead-letters.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { counted } from '../../lib/text.ts'
import { addNoun, addOperation } from '../operation.ts'
import { ask } from '../ask.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written } from '../table.ts'
import { wholeNumber } from '../values.ts'

type Filter = { scope?: string; type?: string }

export function addDeadLetters(program: Command): void {
  const dlq = addNoun(program, {
    noun: 'dlq',
    help: 'Dead letters: events that a scope gave up on, and queue messages and deals that could not be delivered',
  })
  addOperation(dlq, list)
  addOperation(dlq, groups)
  addOperation(dlq, find)
  const retried = dlq.command('retry [ids...]').description('Return events to their scopes; exit with 1 if one could not be')
  for (const [flags, help] of dead_letters.flags) retried.option(flags, help)
  retried
    .option('--all', 'the newest dead letters, as many as --limit')
    .addOption(new Option('--limit <n>', 'the largest number, at most 1000').default(100).argParser(wholeNumber))
    .action(handler(retry))
  addOperation(dlq, discard)
}

async function retry(
  { api, print, signal }: Session,
  ids: string[],
  options: Filter & { all?: true; limit: number },
): Promise<ExitOutcome> {
  const { all, limit, ...filter } = options
  if (ids.length > 0) {
    for (const id of ids) {
      const answer = await ask({ api, signal }, retryOne, { path: [id] })
      print.item(answer, () => `Returned ${written(answer.event_id)} to ${written(answer.scope)}.`)
    }
    return
  }
  if (!all && Object.keys(filter).length === 0) throw new UsageError('Name ids, or --scope, --type or --all.')
  const answer = await ask({ api, signal }, retryMany, { fields: { ...filter, limit } })
  print.result(answer, (paint) => [
    `Returned ${counted(answer.retried, 'event')}.`,
    ...answer.failed.map(({ id, reason }) => paint('red', `${written(id)}: ${written(reason)}`)),
  ])
  return answer.failed.length > 0 ? 1 : undefined
}
