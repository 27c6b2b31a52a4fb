import { Option, type Command } from 'commander'
import type { z } from 'zod'
import { scopeStates, type ContextView, type scopeState, type scopeSummary } from '../../../src/contract/scope.ts'
import { counted, money } from '../../lib/text.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, safeJson, written, type Column } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'
import { addSet } from './set.ts'
import { addTail } from './tail.ts'

type Summary = z.infer<typeof scopeSummary>
type State = z.infer<typeof scopeState>

const columns: Column<Summary>[] = [
  { title: 'SCOPE', of: ({ scope }) => scope },
  { title: 'AGENT', of: ({ agent }) => agent },
  { title: 'OPEN', of: ({ open }) => open, colour: ({ open }) => (open > 0 ? 'yellow' : null) },
  { title: 'MODEL', of: ({ asks_model_at: at }) => (at ? `asked at ${at}` : ''), colour: () => 'yellow' },
  { title: 'COST', of: ({ cost_usd, unpriced_model_calls }) => money(cost_usd, unpriced_model_calls) },
  { title: 'UPDATED', of: ({ updated_at }) => updated_at },
]

export function addScope(program: Command): void {
  const scope = program.command('scope').description('Look into scopes, configure and stop them')
  scope
    .command('list')
    .description('List scopes, by name')
    .addOption(limitOption())
    .addOption(new Option('--state <state>', 'only with open events, a turn, parked work, or waiting for the model').choices(scopeStates))
    .action(
      handler(async ({ api, print, signal }, { limit, state }: { limit: number; state?: string }) => {
        const found = await pages<Summary>(api(), { parts: ['scopes'], query: { state }, limit, most: 1000, signal })
        print.page(found, columns, state === undefined ? 'There are no scopes.' : 'No scope is in this state.')
      }),
    )
  scope.command('show <scope>').description("Show a scope's inbox, turn, counters and settings").action(handler(show))
  addSet(scope)
  addTail(scope)
  scope
    .command('context <scope>')
    .description('Show the working memory: the events since the last action, and the scratch')
    .addOption(limitOption())
    .option('--at <seq>', 'as it was after this entry of the log', wholeNumber)
    .action(handler(context))
  scope
    .command('cancel <scope>')
    .description('Stop the turn in flight; its events end as cancelled')
    .option('--reason <text>', 'why, for the log')
    .action(handler(cancel))
  scope.command('ask <scope>').description('Have a scope that waits for the model ask it now').action(handler(ask))
}

async function ask({ api, print, signal }: Session, scope: string): Promise<void> {
  type Asked = { asked: boolean; tries: number | null }
  const answer = await api().json<Asked>(route(['scopes', scope, 'ask-model']), { method: 'POST', signal })
  print.result(answer, () => [
    answer.asked
      ? `${written(scope)} asks the model now, after ${counted(answer.tries ?? 0, 'failed turn')}.`
      : `${written(scope)} does not wait for the model.`,
  ])
}

async function show({ api, print, signal }: Session, scope: string): Promise<void> {
  const state = await api().json<State>(route(['scopes', scope]), { signal })
  const { inbox, turn, waiting_for_model: waiting, outbox, archive, parked, counters, settings } = state
  const used = Object.entries(counters).filter(([, value]) => value !== 0)
  // A mistyped name would look like a scope that is idle.
  if (state.last_seq === 0) {
    print.note(`There is no scope ${written(scope)} yet: nothing was sent to it or set. It would begin like this.`)
    process.exitCode = 1
  }
  print.result(state, (paint) => [
    ...fields(
      {
        scope: state.scope,
        agent: state.agent,
        inbox: `${inbox.pending} pending, ${inbox.processing} processing, ${inbox.delayed} delayed`,
        turn: turn && `${turn.turn_id} since ${turn.since}, ${counted(turn.events, 'event')}`,
        model: waiting ? `waiting until ${waiting.until}: ${waiting.detail}` : 'reachable',
        context: counted(state.context.events, 'event'),
        outbox: `${outbox.waiting} waiting${outbox.last_error === null ? '' : `; ${outbox.last_error}`}`,
        parked: parked.length === 0 ? 'nothing' : undefined,
        archive: archive ? `${counted(archive.files, 'file')}${archive.last_error === null ? '' : `; ${archive.last_error}`}` : undefined,
        sockets: state.sockets,
        log: `${state.last_seq} entries`,
      },
      paint,
    ),
    ...parked.map(({ kind, id, reason }) => paint('red', `parked ${written(kind)} ${written(id)}: ${written(reason)}`)),
    ...(used.length > 0 ? ['', paint('bold', 'Counters'), ...fields(Object.fromEntries(used), paint)] : []),
    '',
    paint('bold', 'Settings'),
    ...fields(Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, safeJson(value)])), paint),
  ])
}

/** The API gives the newest page first, and the events of a page oldest first. */
async function context({ api, print, signal }: Session, scope: string, { limit, at }: { limit: number; at?: number }): Promise<void> {
  const view = await api().json<ContextView>(route(['scopes', scope, 'context'], { limit, ...(at !== undefined && { at }) }), { signal })
  print.result(view, (paint) => [
    ...fields({ scope: view.scope, since: view.created_at, 'last action': view.last_action_at, events: view.count }, paint),
    ...fields(Object.fromEntries(Object.entries(view.scratch).map(([name, value]) => [`scratch.${name}`, safeJson(value)])), paint),
    ...(view.events.length < view.count ? [paint('dim', `The newest ${view.events.length}; --limit shows more.`)] : []),
    ...view.events.map((event) => safeJson(event)),
  ])
}

async function cancel({ api, print, signal }: Session, scope: string, { reason }: { reason?: string }): Promise<void> {
  type Cancelled = { cancelled: boolean; turn_id: string | null; events: number }
  const body = reason === undefined ? {} : { reason }
  const answer = await api().json<Cancelled>(route(['scopes', scope, 'cancel']), { method: 'POST', body, signal })
  print.result(answer, () => [
    answer.cancelled ? `Cancelled the turn ${written(answer.turn_id)} with ${counted(answer.events, 'event')}.` : 'No turn is in flight.',
  ])
}
