import { Option, type Command } from 'commander'
import type { Schedule, Timer } from '../../../src/contract/settings/schedule.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { route } from '../pages.ts'
import type { Page } from '../printer.ts'
import { handler, type Session } from '../session.ts'
import { fields, written, type Column } from '../table.ts'
import { wholeNumber } from '../values.ts'

type When = { every?: number; cron?: string; at?: string }

const columns: Column<Timer>[] = [
  { title: 'NAME', of: ({ name }) => name },
  { title: 'NEXT', of: ({ next_at }) => next_at },
  { title: 'TICKS', of: ({ fired }) => fired },
  { title: 'SCHEDULE', of: ({ schedule }) => scheduleText(schedule) },
]

export function addTimers(program: Command): void {
  const timers = program.command('timers').description('Timers of a scope: each tick is a timer.tick event')
  timers
    .command('list <scope>')
    .description('List timers, by name')
    .action(
      handler(async ({ api, print, signal }, scope: string) => {
        const page = await api().json<Page<Timer>>(route(['scopes', scope, 'timers']), { signal })
        print.page(page, columns, `The scope ${written(scope)} has no timers.`)
      }),
    )
  timers
    .command('set <scope> <name>')
    .description('Create or change a timer; setting the same schedule again changes nothing')
    .addOption(new Option('--every <seconds>', 'at an interval').argParser(wholeNumber))
    .option('--cron <expression>', 'by a cron expression in UTC, such as "0 6 * * *"')
    .option('--at <time>', 'once, at an ISO time')
    .action(handler(set))
  timers
    .command('remove <scope> <name>')
    .description('Remove a timer')
    .action(
      handler(async ({ api, print, signal }, scope: string, name: string) => {
        await api().json(route(['scopes', scope, 'timers', name]), { method: 'DELETE', signal })
        print.result({ removed: name }, () => [`Removed ${written(name)}.`])
      }),
    )
}

async function set({ api, print, signal }: Session, scope: string, name: string, when: When): Promise<void> {
  const body = scheduleOf(when)
  const timer = await api().json<Timer>(route(['scopes', scope, 'timers', name]), { method: 'PUT', body, signal })
  print.result(timer, (paint) => fields({ ...timer, schedule: scheduleText(timer.schedule) }, paint))
}

function scheduleText(schedule: Schedule): string {
  if ('every_s' in schedule) return `every ${schedule.every_s} s`
  return 'cron' in schedule ? `cron ${schedule.cron}` : `at ${schedule.at}`
}

export function scheduleOf({ every, cron, at }: When): Schedule {
  const given: Schedule[] = [
    ...(every === undefined ? [] : [{ every_s: every }]),
    ...(cron === undefined ? [] : [{ cron }]),
    ...(at === undefined ? [] : [{ at }]),
  ]
  const [schedule] = given
  if (schedule === undefined || given.length > 1) throw new UsageError('Give one of --every, --cron and --at.')
  return schedule
}
