import { z } from 'zod'
import * as lists from '../lists/scopes.ts'
import { operations, type Resource } from '../operation.ts'
import { whole } from '../paging.ts'
import { schedule, timer } from '../settings/schedule.ts'
import { scopePath } from './shared.ts'

const operation = operations({ tag: 'Timers', roles: ['operator'], scoped: true })
const name = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, 'a timer is named by 1 to 64 characters of A-Z a-z 0-9 . _ : and -')
const timerPath = scopePath.extend({ name })

export const list = operation(lists.timers.at, 'listTimers', 'List timers, by name', {
  params: scopePath,
  answers: { 200: [whole(timer), 'All timers.'] },
  command: {
    usage: 'list <scope>',
    table: {
      columns: lists.timers.columns,
      empty: ([scope]) => `The scope ${scope} has no timers.`,
      most: null,
    },
  },
})

export const set = operation('put /v1/scopes/{scope}/timers/{name}', 'putTimer', 'Set a timer', {
  description:
    'Each tick is a `timer.tick` event. A timer ticks at an interval, by a cron expression in UTC, or once. Idempotent: setting the same schedule again changes nothing. ' +
    'Missed ticks are merged into one. While the inbox is full, ticks of a repeating timer are skipped and logged (`timer-skipped`).',
  params: timerPath,
  body: schedule,
  example: { every_s: 60 },
  answers: { 200: [timer, 'Updated, or unchanged.'], 201: [timer, 'Created.'] },
  problems: [409],
  command: {
    usage: 'set <scope> <name>',
    help: 'Create or change a timer; setting the same schedule again changes nothing',
    flags: [
      ['--every <seconds>', 'at an interval', { is: 'whole', field: 'every_s' }],
      ['--cron <expression>', 'by a cron expression in UTC, such as "0 6 * * *"'],
      ['--at <time>', 'once, at an ISO time'],
    ],
    wrong: (given) => (Object.keys(given).length === 1 ? null : 'Give one of --every, --cron and --at.'),
    shows: (set) => [{ ...set, schedule: lists.scheduleText(set.schedule) }],
  },
})

export const get = operation('get /v1/scopes/{scope}/timers/{name}', 'getTimer', 'Get a timer', {
  params: timerPath,
  answers: { 200: [timer, 'The timer.'] },
  problems: [404],
})

export const remove = operation('delete /v1/scopes/{scope}/timers/{name}', 'deleteTimer', 'Remove a timer', {
  params: timerPath,
  answers: { 204: [null, 'Removed.'] },
  problems: [404],
  command: {
    usage: 'remove <scope> <name>',
    shows: (_, [, removed]) => [`Removed ${removed}.`],
    done: 'removed',
  },
})

export const timers: Resource = { noun: 'timers', help: 'Timers of a scope: each tick is a timer.tick event', verbs: [list, set, remove] }
