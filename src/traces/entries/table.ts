import type { Json } from '../../base/json.ts'
import type { LogEntry, NewEntry } from '../../contract/log-entry.ts'
import { bitOf, type SpanKind } from '../../contract/reports/trace.ts'
import type { NoticeType } from '../../features/notices/contract/setting.ts'
import {
  addTurn,
  ended,
  errorType,
  licenceOf,
  middleOf,
  note,
  queued,
  sample,
  turnOf,
  usageOf,
  type NewEntryOf,
  type EveryKind,
  type FoundNotice,
  type Kinds,
  type SpanText,
  type Tally,
} from './kind.ts'
import type { Counts } from './counts.ts'
import { skills } from './skills.ts'
/** Events, and requests that are the root of what follows. */
const events = {
  'event-accepted': {
    means: 'The scope accepted an event.',
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
    means: 'An attempt to handle the event failed, and another one follows.',
    span: 'event',
    said: ({ attempts, error }) => ({ attributes: { 'reflex.event.attempts': attempts, 'reflex.event.retried_for': error } }),
    counts: (_entry, { add }) => add('scope', '', { retried: 1 }),
  },
  'event-ended': {
    means: 'The event has its outcome.',
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
    notices: {
      'event.ended': endOf,
      'event.dead_lettered': (entry) => (entry.status === 'dead_lettered' ? endOf(entry) : null),
    },
  },
  'event-reopened': {
    means: 'A person returned a dead letter to the inbox.',
    span: 'event',
    said: ({ by, traceparent }, scope) => ({
      name: `process ${scope}`,
      begins: true,
      attributes: { 'reflex.event.reopened_by': by, 'reflex.event.reopened_traceparent': traceparent },
    }),
  },
  'event-discarded': {
    means: 'A person discarded a dead letter.',
    span: 'event',
    said: ({ by, traceparent }) => ({
      attributes: { 'reflex.event.discarded_by': by, 'reflex.event.discarded_traceparent': traceparent },
    }),
  },
  'event-joined': { means: 'An event joined the context after it was accepted.', span: 'event', said: () => ({ attributes: {} }) },
  'event-claimed': {
    means: 'A consumer of the pull API claimed the event.',
    span: 'event',
    said: ({ by, lease_until }) => ({ attributes: { 'reflex.event.claimed_by': by, 'reflex.event.lease_until': lease_until } }),
  },
  'event-returned': {
    means: 'The response to a claim could not be sent: the event is open again.',
    span: 'event',
    said: ({ why }) => ({ attributes: { 'reflex.event.returned_for': why } }),
  },
  'call-received': {
    means: 'A request proposed a skill or called a tool: the root of what follows.',
    span: 'call',
    said: ({ call, name, by }) => ({
      name: `${call === 'skill' ? 'propose' : 'call'} ${name}`,
      contains: true,
      attributes: { 'reflex.call': call, 'enduser.id': by, [call === 'tool' ? 'gen_ai.tool.name' : `gen_ai.${call}.name`]: name },
    }),
  },
  'filter-failed': {
    means: 'A filter of the agent threw on the event.',
    span: 'filter',
    said: ({ agent, error }) => ({
      name: `filter ${agent}`,
      ends: 'error',
      attributes: { 'gen_ai.agent.name': agent, 'error.type': 'filter_failed', 'error.message': error },
    }),
  },
} satisfies Kinds

const tool = ({ tool: name, effect_id }: { tool: string; effect_id: string }) => ({
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': name,
  'gen_ai.tool.call.id': effect_id,
  ...(name?.startsWith('mcp.') && { 'mcp.method.name': 'tools/call' }),
})

/** Turns, and what they ask of models and tools. */
const turns = {
  'turn-started': {
    means: 'A turn began to consider events.',
    span: 'turn',
    said: ({ turn_id, agent, attempts, considered, saw }, scope) => ({
      name: `invoke_agent ${agent}`,
      begins: true,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.agent.name': agent,
        'gen_ai.conversation.id': scope,
        'reflex.turn.id': turn_id,
        'reflex.turn.attempts': attempts,
        'reflex.turn.considered': considered,
        'reflex.turn.saw': saw,
      },
    }),
    counts: ({ span_id }, { record }) => {
      record.turn = { span_id, first: null, has_bulletin: false, skills: {} }
    },
  },
  'turn-ended': {
    means: 'A turn ended.',
    span: 'turn',
    said: (entry) => {
      const { turn_id, status, result, error, acts } = entry
      const ok = status === 'result' || status === 'none' || status === 'waiting'
      const of = { 'reflex.turn.id': turn_id, 'reflex.turn.status': status, 'reflex.turn.result': result, 'reflex.turn.acts': acts }
      const failure = { ...errorType(ok, status), ...(error !== null && { 'error.message': error }) }
      return { ends: ended(ok), attributes: { ...of, ...usageOf(entry), ...failure } }
    },
    counts: (entry, context) => endTurn(entry, context),
    notices: {
      'budget.spent': ({ status, turn_id, trace_id, error }) => (status === 'refused' ? { turn_id, trace_id, detail: error } : null),
    },
  },
  'turn-cancelled': {
    means: 'Somebody cancelled the turn.',
    span: 'turn',
    said: ({ reason, by, traceparent }) => ({
      attributes: { 'reflex.turn.cancelled_by': by, 'reflex.turn.cancelled_for': reason, 'reflex.turn.cancelled_traceparent': traceparent },
    }),
  },
  'dry-turn-ended': {
    means: 'A turn without effects ended, for an audit or to ask the slow path again.',
    span: 'shadow',
    said: (entry) => {
      const { agent, turn_id, why, status, result, error, did } = entry
      const ok = status === 'result' || status === 'none'
      const of = { 'reflex.turn.id': turn_id, 'reflex.turn.dry': why, 'reflex.turn.status': status, 'reflex.turn.result': result }
      const failure = { ...errorType(ok, status), ...(error !== null && { 'error.message': error }) }
      return { name: `dry_run ${agent}`, ends: ended(ok), attributes: { ...of, 'reflex.turn.acts': did, ...usageOf(entry), ...failure } }
    },
    counts: ({ usage }, { add }) => add('scope', '', { dry_turns: 1, dry_turn_cost_usd: usage.cost_usd ?? 0 }),
  },
  'model-called': {
    means: 'A model answered, or its call failed.',
    span: 'model',
    said: (entry) => {
      const { model, status, prompt, prompt_hash, content, finish_reason, error } = entry
      return {
        name: `chat ${model}`,
        ends: status === 'ok' ? 'ok' : 'error',
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': model,
          ...(finish_reason !== null && { 'gen_ai.response.finish_reasons': [finish_reason] }),
          ...usageOf(entry),
          'gen_ai.output.messages': content,
          'reflex.prompt_hash': prompt_hash,
          'reflex.prompt_parts': prompt,
          ...errorType(status === 'ok', 'model_failed'),
          ...(error !== null && { 'error.message': error }),
        },
      }
    },
    counts: countCall,
  },
  'model-lost': {
    means: 'The model provider is unavailable: events that need it wait.',
    span: 'note',
    said: ({ kind, error }) => note(kind, { 'error.message': error }),
  },
  'model-restored': {
    means: 'The model provider answers again.',
    span: 'note',
    said: ({ kind, waited_ms }) => note(kind, { 'reflex.waited_ms': waited_ms }),
  },
  'model-hurried': {
    means: 'A person had the scope ask the model provider at once.',
    span: 'note',
    said: ({ kind, by }) => note(kind, { 'reflex.by': by }),
  },
  'decision-made': {
    means: 'The decision model answered, or its call failed.',
    span: 'model',
    said: (entry) => {
      const { model, answered_by, status, answers, error, middle } = entry
      const of = {
        'gen_ai.operation.name': 'decide',
        'gen_ai.request.model': model,
        'gen_ai.response.model': answered_by,
        ...middleOf(middle),
      }
      const failure = { ...errorType(status === 'ok', 'model_failed'), ...(error !== null && { 'error.message': error }) }
      return {
        name: `decide ${model}`,
        ends: ended(status === 'ok'),
        attributes: { ...of, ...usageOf(entry), 'reflex.decision.answers': answers, ...failure },
      }
    },
    counts: (entry, context) => {
      countCall(entry, context)
      const { middle } = entry
      if (middle) context.add('reflex', middle.decision_id, { runs: 1, fires: middle.left === null ? 1 : 0 })
    },
  },
  'effect-started': {
    means: 'A tool call began.',
    span: 'effect',
    said: (entry) => {
      const { tool: name, input, cause, idempotence_key } = entry
      const of = { 'gen_ai.tool.call.arguments': input, 'reflex.effect.cause': cause, 'reflex.idempotence_key': idempotence_key }
      return { name: `execute_tool ${name}`, begins: true, attributes: { ...tool(entry), ...of } }
    },
  },
  'effect-ended': {
    means: 'A tool call ended.',
    span: 'effect',
    said: (entry) => {
      const { tool: name, status, output, error } = entry
      const ok = status === 'ok' || status === 'reused'
      const of = { ...tool(entry), 'gen_ai.tool.call.result': output, 'reflex.effect.status': status, ...errorType(ok, status) }
      return {
        name: `execute_tool ${name}`,
        ends: ended(ok),
        attributes: { ...of, ...(error !== null && { 'error.message': error }) },
      }
    },
    counts: ({ status, tool }, { add }) => {
      const failed = status === 'ok' || status === 'reused' ? 0 : 1
      add('scope', '', { effects: 1, effects_failed: failed })
      add('tool', tool, { calls: 1, failed })
    },
  },
  'reply-sent': {
    means: 'The agent or a reflex replied.',
    span: 'reply',
    said: ({ content, reflex_id }) => ({
      name: 'reply',
      ends: 'ok',
      attributes: { 'gen_ai.output.type': 'text', 'gen_ai.output.messages': content, 'reflex.id': reflex_id },
    }),
  },
} satisfies Kinds

const reflex = ({ reflex_id, version }: { reflex_id: string; version: number | null }) => ({
  'reflex.id': reflex_id,
  'reflex.version': version,
})

/** Reflexes, and what is known of their decisions. */
const reflexes = {
  'reflex-fired': {
    means: 'A reflex decided on the event, or would have decided in shadow mode.',
    span: 'reflex',
    said: (entry) => ({
      name: `reflex ${entry.reflex_id}`,
      ends: 'ok',
      attributes: {
        ...reflex(entry),
        'reflex.state': entry.state,
        'reflex.fired': true,
        'reflex.action': entry.action,
        'reflex.fuel': entry.fuel,
        ...licenceOf(entry),
      },
    }),
    counts: ({ reflex_id, state, duration_us, action }, { add }) => {
      add('scope', '', sample('reflex_us', duration_us))
      if (state === 'shadow') return add('reflex', reflex_id, { runs: 1, shadow_fires: 1 })
      const fired = { fires: 1, ...(action.action_type === 'ignore' && { left_alone: 1 }) }
      add('reflex', reflex_id, { runs: 1, ...fired })
      add('scope', '', fired)
    },
  },
  'reflex-passed': {
    means: 'A reflex left the event to the next one.',
    span: 'reflex',
    said: (entry) => {
      const { reason, error, fuel, state } = entry
      const ok = reason !== 'error' && reason !== 'limit' && reason !== 'invalid_action'
      const why = { 'reflex.pass_reason': reason, 'reflex.reason': entry.detail }
      const of = { ...reflex(entry), 'reflex.state': state, 'reflex.fired': false, ...why, 'reflex.fuel': fuel }
      const failure = { ...errorType(ok, reason), ...(error !== null && { 'error.message': error }) }
      return { name: `reflex ${entry.reflex_id}`, ends: ended(ok), attributes: { ...of, ...failure } }
    },
    counts: ({ reflex_id, reason, duration_us }, { add }) => {
      add('scope', '', sample('reflex_us', duration_us))
      add('reflex', reflex_id, { runs: 1, errors: reason === 'error' || reason === 'limit' || reason === 'invalid_action' ? 1 : 0 })
    },
  },
  'action-ended': {
    means: 'The action of a reflex that took the effect lane ended.',
    span: 'action',
    said: (entry) => {
      const ok = entry.status === 'ok' || entry.status === 'reused'
      const of = { ...reflex(entry), 'reflex.action.type': entry.action_type, 'reflex.action.status': entry.status }
      const failure = { ...errorType(ok, entry.status), ...(entry.error !== null && { 'error.message': entry.error }) }
      return { name: `action ${entry.action_type}`, ends: ended(ok), contains: true, attributes: { ...of, ...failure } }
    },
  },
  'reflex-compared': {
    means: 'A reflex in shadow mode was compared with the decision.',
    span: 'shadow',
    said: (entry) => ({
      name: `compare ${entry.reflex_id}`,
      ends: 'ok',
      attributes: { ...reflex(entry), 'reflex.action': entry.action, 'reflex.decision': entry.decision, 'reflex.agreed': entry.agreed },
    }),
  },
  'reflex-audited': {
    means: 'The slow path or a person judged the decision of a proven reflex.',
    span: 'shadow',
    said: (entry) => {
      const { own, decided, agreed, judged_by, by, reason } = entry
      const of = {
        ...reflex(entry),
        'reflex.action': own,
        'reflex.decision': decided,
        'reflex.agreed': agreed,
        'reflex.judged_by': judged_by,
      }
      return { name: `audit ${entry.reflex_id}`, ends: 'ok', attributes: { ...of, 'enduser.id': by, 'reflex.reason': reason } }
    },
    counts: ({ reflex_id, judged_by, agreed, own, occasion }, { add }) => {
      const wrong = agreed === false ? 1 : 0
      // An audit of new values, or at an edge, is not by chance: it says nothing of the rest.
      const is_sample = own.action_type === 'ignore' && occasion !== 'new' && occasion !== 'edge' && agreed !== null
      const audited = { audits: 1, audits_disagreed: wrong, ...(is_sample && { left_alone_audits: 1, left_alone_missed: wrong }) }
      const counts = judged_by === 'audit' ? audited : { corrections: wrong }
      add('reflex', reflex_id, counts)
      add('scope', '', counts)
    },
  },
  'decision-judged': {
    means: 'A person judged a decision.',
    span: 'note',
    said: ({ kind, right, reply, reason, by }) =>
      note(kind, { 'reflex.agreed': right, 'enduser.id': by, 'reflex.reason': reason, 'gen_ai.output.messages': reply }),
  },
  'reflex-overruled': {
    means: 'The action of a reflex was undone.',
    span: 'note',
    said: (entry) => note(entry.kind, { ...reflex(entry), 'reflex.reason': entry.reason }),
    counts: ({ reflex_id }, { add }) => add('reflex', reflex_id, { overruled: 1 }),
  },
  'reflex-moved': {
    means: 'A version of a reflex changed its state in this scope.',
    span: 'note',
    said: (entry) =>
      note(entry.kind, { ...reflex(entry), 'reflex.from': entry.from, 'reflex.to': entry.to, 'reflex.reason': entry.reason }),
    counts: ({ reflex_id, from, to }, { add }) => {
      if (from !== 'active' || to === 'active') return
      add('reflex', reflex_id, { evictions: 1 })
      add('scope', '', { evictions: 1 })
    },
    notices: {
      'reflex.demoted': ({ reflex_id, version, from, to, reason }) =>
        from === 'active' && to !== 'active' ? { reflex_id, version, from, to, reason } : null,
    },
  },
  'certificate-changed': {
    means: 'The certificate of a reflex changed.',
    span: 'note',
    said: (entry) =>
      note(entry.kind, {
        ...reflex(entry),
        'reflex.change': entry.change,
        'reflex.event.type': entry.event_type,
        'reflex.reason': entry.reason,
      }),
    counts: ({ change }, { add }) => add('scope', '', { lapses: change === 'lapsed' ? 1 : 0 }),
  },
  'teacher-changed': {
    means: 'The slow path that reflexes are compared with has another model or version.',
    span: 'note',
    said: ({ kind, teacher, reason }) =>
      note(kind, { 'gen_ai.request.model': teacher.model, 'gen_ai.agent.version': teacher.agent_version, 'reflex.reason': reason }),
  },
  'scratch-set': {
    means: 'A reflex set a key of the scratch.',
    span: 'note',
    said: ({ kind, key, value, reflex_id }) =>
      note(kind, { 'reflex.id': reflex_id, 'reflex.scratch.key': key, 'reflex.scratch.value': value }),
  },
} satisfies Kinds

const timer = ({ kind, timer_name }: { kind: string; timer_name: string }): SpanText => ({
  name: `${kind} ${timer_name}`,
  ends: 'ok',
  attributes: { 'reflex.timer.name': timer_name },
})

/** The scope itself. */
const upkeep = {
  'replay-done': {
    means: 'Somebody replayed decisions.',
    span: 'note',
    said: ({ mode, compared, changed, unknown, by }) =>
      note('replay', {
        'reflex.replay.mode': mode,
        'reflex.replay.compared': compared,
        'reflex.replay.changed': changed,
        'reflex.replay.unknown': unknown,
        'enduser.id': by,
      }),
    counts: ({ mode, compared, changed }, { add }) => {
      if (mode === 'pinned') add('scope', '', { replayed: compared, replayed_otherwise: changed })
    },
  },
  'settings-changed': {
    means: 'The settings of the scope changed.',
    span: 'settings',
    said: ({ by, patch }) => ({
      name: 'settings',
      ends: 'ok',
      attributes: { 'enduser.id': by, 'reflex.settings.patch': patch },
    }),
  },
  'timer-set': { means: 'A timer was set.', span: 'timer', said: timer },
  'timer-removed': { means: 'A timer was removed.', span: 'timer', said: timer },
  'timer-skipped': { means: 'A tick of a timer was skipped.', span: 'timer', said: timer },
  'clock-corrected': {
    means: 'The clock had run ahead: retries, leases and timers were moved.',
    span: 'note',
    said: ({ kind, ahead_ms }) => note(kind, { 'reflex.ahead_ms': ahead_ms }),
  },
  'work-parked': {
    means: 'Work that crashed the scope repeatedly is no longer started automatically.',
    span: 'note',
    said: ({ kind, work, reason }) => ({ ...note(kind, { 'reflex.work': work, 'error.message': reason }), ends: 'error' }),
  },
  'alert-raised': {
    means: 'The deployment raised an alert.',
    span: 'note',
    said: ({ kind, name, summary }) => ({ ...note(kind, { 'reflex.alert': name, 'error.message': summary }), ends: 'error' }),
    // An alert of the deployment on budgets names no period: it has counted these.
    counts: ({ name, details }, { add }) => add('scope', '', { near_budgets: name === 'budget-near' && 'period' in details ? 1 : 0 }),
    notices: { 'alert.raised': ({ alert_id, name, summary, details }) => ({ alert_id, name, summary, details }) },
  },
  'notice-ended': {
    means: 'A notice to a webhook was delivered, or given up.',
    span: 'note',
    said: ({ kind, notice_type, webhook, status }) =>
      note(kind, { 'reflex.notice': notice_type, 'reflex.webhook': webhook, 'reflex.status': status }),
    counts: ({ status }, { add }) => add('scope', '', { notices: 1, notices_failed: status === 'delivered' ? 0 : 1 }),
  },
  'context-trimmed': {
    means: 'Events left the context, which was full.',
    span: 'note',
    said: ({ kind, count }) => note(kind, { 'reflex.count': count }),
  },
} satisfies Kinds

/** Every kind of log entries. Spans, statistics and notices are projections of this table. */
const table: EveryKind = { ...events, ...turns, ...reflexes, ...skills, ...upkeep }

/** Any kind, by the entry that has it. */
type AnyKind = {
  means: string
  span: SpanKind
  said: (entry: LogEntry, scope: string) => SpanText
  counts?: (entry: NewEntry, tally: Tally) => void
  notices?: { [Type in NoticeType]?: (entry: NewEntry) => FoundNotice['data'] | null }
}
/** By name, in the order of their names. */
export const byName: ReadonlyMap<string, AnyKind> = new Map(Object.entries(table as unknown as Record<string, AnyKind>))

/** Entries of a later version may have kinds that this one lacks. */
export const spanKindOf = (kind: string): SpanKind => byName.get(kind)?.span ?? 'note'

const bits = new Map(Array.from(byName, ([kind, { span }]) => [kind, bitOf(span)]))
const NOTE = bitOf('note')
/** The bit of an entry's kind of span. */
export const spanBitOf = (kind: string): number => bits.get(kind) ?? NOTE

/** Names and attributes by the semantic conventions that docs/observability.md names. */
export const describe = (entry: LogEntry, scope: string): SpanText => byName.get(entry.kind)?.said(entry, scope) ?? note(entry.kind)

/** Counts one log entry. The log alone gives the same numbers again. */
export const foldEntry = (entry: NewEntry, tally: Tally): void => byName.get(entry.kind)?.counts?.(entry, tally)

/** The notices that a log entry calls for. */
export function noticesOf(entry: NewEntry): FoundNotice[] {
  const { notices = {} } = byName.get(entry.kind) ?? {}
  return Object.entries(notices).flatMap(([type, dataOf]) => {
    const data = dataOf(entry)
    return data ? [{ type: type as NoticeType, data }] : []
  })
}

function endOf({ event_ids: [event_id = ''], trace_id, status, attempts, error, outcome }: NewEntryOf<'event-ended'>): FoundNotice['data'] {
  return { event_id, trace_id, status, attempts, error, outcome: outcome as Json }
}

/**
 * Counts the average cost of a turn as saved, since no turn sees the event. A reused action saves
 * nothing again.
 */
function countDecided(reflex_id: string, { record: { sums }, add, thinks, reused }: Tally & { reused: boolean }): void {
  const counts: Counts<'scope'> & Counts<'reflex'> = { decided: 1 }
  if (thinks && !reused) {
    const share = (sum: number) => (sums.turns === 0 ? 0 : sum / sums.turns)
    counts.saved_model_calls = sums.turns === 0 ? 1 : share(sums.model_calls)
    counts.saved_tokens = share(sums.tokens)
    counts.saved_cost_usd = share(sums.cost_usd)
  }
  add('reflex', reflex_id, counts)
  add('scope', '', counts)
}

function countCall(
  { model, status, usage: { input_tokens, output_tokens, cost_usd } }: NewEntryOf<'model-called' | 'decision-made'>,
  { add }: Tally,
): void {
  const failed = status === 'ok' ? 0 : 1
  const unpriced_calls = cost_usd === null ? 1 : 0
  add('scope', '', {
    model_calls: 1,
    model_failures: failed,
    input_tokens,
    output_tokens,
    model_cost_usd: cost_usd ?? 0,
    unpriced_calls,
  })
  add('model', model, { calls: 1, failed, input_tokens, output_tokens, cost_usd: cost_usd ?? 0, unpriced_calls })
}

function endTurn(entry: NewEntryOf<'turn-ended'>, { record, add }: Tally): void {
  const { status, duration_ms, span_id, usage } = entry
  const cost_usd = usage.cost_usd ?? 0
  record.sums = addTurn(record.sums, entry)
  const turn = turnOf(record, span_id)
  record.turn = null
  const measured: Counts<'scope'> & Counts<'skill'> = {
    turns: 1,
    turn_cost_usd: cost_usd,
    ...(duration_ms !== null && { turn_time_ms: duration_ms, ...sample('turn_ms', duration_ms) }),
  }
  const used = Object.entries(turn?.skills ?? {})
  const counts: Counts<'scope'> = {
    ...measured,
    turns_failed: status === 'failed' || status === 'timeout' ? 1 : 0,
    refused: status === 'refused' ? 1 : 0,
  }
  if (turn?.has_bulletin && used.some(([, { ok }]) => ok > 0)) {
    counts.ranked = 1
    counts.ranked_first = turn.first !== null && (turn.skills[turn.first]?.ok ?? 0) > 0 ? 1 : 0
  }
  for (const [id, { runs, pending }] of used) {
    const fallbacks = status === 'result' ? Math.max(0, pending) : 0
    add('skill', id, { ...(runs > 0 && measured), fallbacks })
    counts.fallbacks = (counts.fallbacks ?? 0) + fallbacks
  }
  add('scope', '', counts)
}
