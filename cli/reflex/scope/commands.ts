import type { Command } from 'commander'
import type { z } from 'zod'
import { askModel, cancel, list } from '../../../src/contract/operations/scopes.ts'
import type { ContextView, scopeState } from '../../../src/contract/scope.ts'
import { counted } from '../../lib/text.ts'
import { addOperation } from '../operation.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, safeJson, written } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'
import { addSet } from './set.ts'
import { addTail } from './tail.ts'

type ShownState = z.infer<typeof scopeState>

export function addScope(program: Command): void {
  const scope = program.command('scope').description('Look into scopes, configure and stop them')
  addOperation(scope, list)
  scope.command('show <scope>').description("Show a scope's inbox, turn, counters and settings").action(handler(show))
  addSet(scope)
  addTail(scope)
  scope
    .command('context <scope>')
    .description('Show the working memory: the events since the last action, and the scratch')
    .addOption(limitOption())
    .option('--at <seq>', 'as it was after this entry of the log', wholeNumber)
    .action(handler(context))
  for (const op of [cancel, askModel]) addOperation(scope, op)
}

async function show({ api, print, signal }: Session, scope: string): Promise<void> {
  const state = await api().json<ShownState>(route(['scopes', scope]), { signal })
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
