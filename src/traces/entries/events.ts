import type { Json } from '../../base/json.ts'
import type { Found, Kinds } from './kind.ts'
import { ended, errorType, queued } from './said.ts'
import type { Counts, Tally } from './tally.ts'

/** Events, and requests that are the root of what follows. */
export const events = {
  'event-accepted': {
    span: 'event',
    said: ({ at, event_type, source, via, event_ids: [id = ''] }, scope) => ({
      name: `process ${scope}`,
      begins: true,
      attributes: {
        'messaging.system': 'reflex',
        'messaging.operation.type': 'process',
        'messaging.operation.name': 'process',
        'messaging.destination.name': scope,
        'messaging.message.id': id,
        'reflex.event.type': event_type,
        'reflex.event.source': source,
        'reflex.event.via': via,
        ...(via === 'queue' && queued(id, at)),
      },
    }),
    counts: (_entry, { add }) => add('scope', '', { accepted: 1 }),
  },
  'event-retried': {
    span: 'event',
    said: ({ attempts, error }) => ({ attributes: { 'reflex.event.attempts': attempts, 'reflex.event.retried_for': error } }),
    counts: (_entry, { add }) => add('scope', '', { retried: 1 }),
  },
  'event-ended': {
    span: 'event',
    said: ({ status, attempts, outcome, error }) => {
      const ok = status === 'completed' || status === 'ignored'
      const of = { 'reflex.event.status': status, 'reflex.event.attempts': attempts, 'reflex.outcome': outcome }
      return { ends: ended(ok), attributes: { ...of, ...errorType(ok, status), ...(error !== null && { 'error.message': error }) } }
    },
    counts: ({ status, outcome }, context) => {
      const by = outcome.by === 'turn' && outcome.idle ? 'condition' : outcome.by
      context.add('scope', '', { [status]: 1, [`by_${by}`]: 1 })
      if (outcome.by === 'reflex') countDecided(outcome.reflex_id, { ...context, reused: outcome.reused === true })
    },
    notices: ({ event_ids: [event_id = ''], trace_id, status, attempts, error, outcome }) => {
      const data = { event_id, trace_id, status, attempts, error, outcome: outcome as Json }
      const dead: Found[] = status === 'dead_lettered' ? [{ type: 'event.dead_lettered', data }] : []
      return [{ type: 'event.ended', data }, ...dead]
    },
  },
  'event-reopened': {
    span: 'event',
    said: ({ by, traceparent }, scope) => ({
      name: `process ${scope}`,
      begins: true,
      attributes: { 'reflex.event.reopened_by': by, 'reflex.event.reopened_traceparent': traceparent },
    }),
  },
  'event-discarded': {
    span: 'event',
    said: ({ by, traceparent }) => ({
      attributes: { 'reflex.event.discarded_by': by, 'reflex.event.discarded_traceparent': traceparent },
    }),
  },
  'event-joined': { span: 'event', said: () => ({ attributes: {} }) },
  'event-claimed': {
    span: 'event',
    said: ({ by, lease_until }) => ({ attributes: { 'reflex.event.claimed_by': by, 'reflex.event.lease_until': lease_until } }),
  },
  'event-returned': { span: 'event', said: ({ why }) => ({ attributes: { 'reflex.event.returned_for': why } }) },
  'call-received': {
    span: 'call',
    said: ({ call, name, by }) => ({
      name: `${call === 'skill' ? 'propose' : 'call'} ${name}`,
      contains: true,
      attributes: { 'reflex.call': call, 'enduser.id': by, [call === 'tool' ? 'gen_ai.tool.name' : `gen_ai.${call}.name`]: name },
    }),
  },
  'filter-failed': {
    span: 'filter',
    said: ({ agent, error }) => ({
      name: `filter ${agent}`,
      ends: 'error',
      attributes: { 'gen_ai.agent.name': agent, 'error.type': 'filter_failed', 'error.message': error },
    }),
  },
} satisfies Kinds

/**
 * Counts the average cost of a turn as saved, since no turn sees the event. A reused action saves
 * nothing again.
 */
function countDecided(reflex_id: string, { record: { sums }, add, has_trigger, reused }: Tally & { reused: boolean }): void {
  const counts: Counts = { decided: 1 }
  if (has_trigger && !reused) {
    const share = (sum: number) => (sums.turns === 0 ? 0 : sum / sums.turns)
    counts['saved_model_calls'] = sums.turns === 0 ? 1 : share(sums.model_calls)
    counts['saved_tokens'] = share(sums.tokens)
    counts['saved_cost_usd'] = share(sums.cost_usd)
  }
  add('reflex', reflex_id, counts)
  add('scope', '', counts)
}
