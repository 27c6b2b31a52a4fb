import type { EntryKind, LogEntry, SkillEntryKind } from '../contract/log-entry.ts'
import { skillDescribers } from './describe-skills.ts'
import { ended, errorType, licenceOf, middleOf, note, queued, type Said } from './said.ts'

type EntryOf<Kind extends EntryKind> = Extract<LogEntry, { kind: Kind }>
type Describers = { [Kind in Exclude<EntryKind, SkillEntryKind>]: (entry: EntryOf<Kind>, scope: string) => Said }

const reflex = ({ reflex_id, version }: { reflex_id: string; version: number | null }) => ({
  'reflex.id': reflex_id,
  'reflex.version': version,
})
const tool = ({ tool: name, effect_id }: { tool: string; effect_id: string }) => ({
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': name,
  'gen_ai.tool.call.id': effect_id,
  ...(name?.startsWith('mcp.') && { 'mcp.method.name': 'tools/call' }),
})
type Used = EntryOf<'turn-ended' | 'model-called' | 'decision-made' | 'dry-turn-ended'>
const usageOf = ({ usage: { input_tokens, output_tokens, cost_usd } }: Used) => ({
  'gen_ai.usage.input_tokens': input_tokens,
  'gen_ai.usage.output_tokens': output_tokens,
  'reflex.cost_usd': cost_usd,
})
const timer = ({ kind, timer_name }: { kind: string; timer_name: string }): Said => ({
  name: `${kind} ${timer_name}`,
  ends: 'ok',
  attributes: { 'reflex.timer.name': timer_name },
})

/** Names and attributes by the semantic conventions that docs/observability.md names. */
const describers: Describers = {
  'replay-done': ({ mode, compared, changed, unknown, by }) =>
    note('replay', {
      'reflex.replay.mode': mode,
      'reflex.replay.compared': compared,
      'reflex.replay.changed': changed,
      'reflex.replay.unknown': unknown,
      'enduser.id': by,
    }),
  'call-received': ({ call, name, by }) => ({
    name: `${call === 'skill' ? 'propose' : 'call'} ${name}`,
    contains: true,
    attributes: { 'reflex.call': call, 'enduser.id': by, [call === 'tool' ? 'gen_ai.tool.name' : `gen_ai.${call}.name`]: name },
  }),
  'event-accepted': ({ at, event_type, source, via, event_ids: [id = ''] }, scope) => ({
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
  'event-retried': ({ attempts, error }) => ({ attributes: { 'reflex.event.attempts': attempts, 'reflex.event.retried_for': error } }),
  'event-ended': ({ status, attempts, outcome, error }) => {
    const ok = status === 'completed' || status === 'ignored'
    const of = { 'reflex.event.status': status, 'reflex.event.attempts': attempts, 'reflex.outcome': outcome }
    return { ends: ended(ok), attributes: { ...of, ...errorType(ok, status), ...(error !== null && { 'error.message': error }) } }
  },
  'event-reopened': ({ by, traceparent }, scope) => ({
    name: `process ${scope}`,
    begins: true,
    attributes: { 'reflex.event.reopened_by': by, 'reflex.event.reopened_traceparent': traceparent },
  }),
  'event-discarded': ({ by, traceparent }) => ({
    attributes: { 'reflex.event.discarded_by': by, 'reflex.event.discarded_traceparent': traceparent },
  }),
  'event-joined': () => ({ attributes: {} }),
  'event-claimed': ({ by, lease_until }) => ({ attributes: { 'reflex.event.claimed_by': by, 'reflex.event.lease_until': lease_until } }),
  'event-returned': ({ why }) => ({ attributes: { 'reflex.event.returned_for': why } }),
  'filter-failed': ({ agent, error }) => ({
    name: `filter ${agent}`,
    ends: 'error',
    attributes: { 'gen_ai.agent.name': agent, 'error.type': 'filter_failed', 'error.message': error },
  }),
  'model-lost': ({ kind, error }) => note(kind, { 'error.message': error }),
  'model-hurried': ({ kind, by }) => note(kind, { 'reflex.by': by }),
  'model-restored': ({ kind, waited_ms }) => note(kind, { 'reflex.waited_ms': waited_ms }),
  'turn-started': ({ turn_id, agent, attempts, considered, saw }, scope) => ({
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
  'turn-ended': (entry) => {
    const { turn_id, status, result, error, acts } = entry
    const ok = status === 'result' || status === 'none' || status === 'waiting'
    const of = { 'reflex.turn.id': turn_id, 'reflex.turn.status': status, 'reflex.turn.result': result, 'reflex.turn.acts': acts }
    const failure = { ...errorType(ok, status), ...(error !== null && { 'error.message': error }) }
    return { ends: ended(ok), attributes: { ...of, ...usageOf(entry), ...failure } }
  },
  'turn-cancelled': ({ reason, by, traceparent }) => ({
    attributes: { 'reflex.turn.cancelled_by': by, 'reflex.turn.cancelled_for': reason, 'reflex.turn.cancelled_traceparent': traceparent },
  }),
  'model-called': (entry) => {
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
  'decision-made': (entry) => {
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
  'effect-started': (entry) => {
    const { tool: name, input, cause, idempotence_key } = entry
    const of = { 'gen_ai.tool.call.arguments': input, 'reflex.effect.cause': cause, 'reflex.idempotence_key': idempotence_key }
    return { name: `execute_tool ${name}`, begins: true, attributes: { ...tool(entry), ...of } }
  },
  'effect-ended': (entry) => {
    const { tool: name, status, output, error } = entry
    const ok = status === 'ok' || status === 'reused'
    const of = { ...tool(entry), 'gen_ai.tool.call.result': output, 'reflex.effect.status': status, ...errorType(ok, status) }
    return {
      name: `execute_tool ${name}`,
      ends: ended(ok),
      attributes: { ...of, ...(error !== null && { 'error.message': error }) },
    }
  },
  'reply-sent': ({ content, reflex_id }) => ({
    name: 'reply',
    ends: 'ok',
    attributes: { 'gen_ai.output.type': 'text', 'gen_ai.output.messages': content, 'reflex.id': reflex_id },
  }),
  'reflex-fired': (entry) => ({
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
  'reflex-passed': (entry) => {
    const { reason, error, fuel, state } = entry
    const ok = reason !== 'error' && reason !== 'limit' && reason !== 'invalid_action'
    const why = { 'reflex.pass_reason': reason, 'reflex.reason': entry.detail }
    const of = { ...reflex(entry), 'reflex.state': state, 'reflex.fired': false, ...why, 'reflex.fuel': fuel }
    const failure = { ...errorType(ok, reason), ...(error !== null && { 'error.message': error }) }
    return { name: `reflex ${entry.reflex_id}`, ends: ended(ok), attributes: { ...of, ...failure } }
  },
  'action-ended': (entry) => {
    const ok = entry.status === 'ok' || entry.status === 'reused'
    const of = { ...reflex(entry), 'reflex.action.type': entry.action_type, 'reflex.action.status': entry.status }
    const failure = { ...errorType(ok, entry.status), ...(entry.error !== null && { 'error.message': entry.error }) }
    return { name: `action ${entry.action_type}`, ends: ended(ok), contains: true, attributes: { ...of, ...failure } }
  },
  'reflex-compared': (entry) => ({
    name: `compare ${entry.reflex_id}`,
    ends: 'ok',
    attributes: { ...reflex(entry), 'reflex.action': entry.action, 'reflex.decision': entry.decision, 'reflex.agreed': entry.agreed },
  }),
  'dry-turn-ended': (entry) => {
    const { agent, turn_id, why, status, result, error, did } = entry
    const ok = status === 'result' || status === 'none'
    const of = { 'reflex.turn.id': turn_id, 'reflex.turn.dry': why, 'reflex.turn.status': status, 'reflex.turn.result': result }
    const failure = { ...errorType(ok, status), ...(error !== null && { 'error.message': error }) }
    return { name: `dry_run ${agent}`, ends: ended(ok), attributes: { ...of, 'reflex.turn.acts': did, ...usageOf(entry), ...failure } }
  },
  'decision-judged': ({ kind, right, reply, reason, by }) =>
    note(kind, { 'reflex.agreed': right, 'enduser.id': by, 'reflex.reason': reason, 'gen_ai.output.messages': reply }),
  'reflex-audited': (entry) => {
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
  'reflex-overruled': (entry) => note(entry.kind, { ...reflex(entry), 'reflex.reason': entry.reason }),
  'reflex-moved': (entry) =>
    note(entry.kind, { ...reflex(entry), 'reflex.from': entry.from, 'reflex.to': entry.to, 'reflex.reason': entry.reason }),
  'certificate-changed': (entry) =>
    note(entry.kind, {
      ...reflex(entry),
      'reflex.change': entry.change,
      'reflex.event.type': entry.event_type,
      'reflex.reason': entry.reason,
    }),
  'teacher-changed': ({ kind, teacher, reason }) =>
    note(kind, { 'gen_ai.request.model': teacher.model, 'gen_ai.agent.version': teacher.agent_version, 'reflex.reason': reason }),
  'scratch-set': ({ kind, key, value, reflex_id }) =>
    note(kind, { 'reflex.id': reflex_id, 'reflex.scratch.key': key, 'reflex.scratch.value': value }),
  'settings-changed': ({ by, patch }) => ({
    name: 'settings',
    ends: 'ok',
    attributes: { 'enduser.id': by, 'reflex.settings.patch': patch },
  }),
  'timer-set': timer,
  'timer-removed': timer,
  'timer-skipped': timer,
  'clock-corrected': ({ kind, ahead_ms }) => note(kind, { 'reflex.ahead_ms': ahead_ms }),
  'work-parked': ({ kind, work, reason }) => ({ ...note(kind, { 'reflex.work': work, 'error.message': reason }), ends: 'error' }),
  'alert-raised': ({ kind, name, summary }) => ({ ...note(kind, { 'reflex.alert': name, 'error.message': summary }), ends: 'error' }),
  'notice-ended': ({ kind, notice_type, webhook, status }) =>
    note(kind, { 'reflex.notice': notice_type, 'reflex.webhook': webhook, 'reflex.status': status }),
  'context-trimmed': ({ kind, count }) => note(kind, { 'reflex.count': count }),
}

const all: Record<string, unknown> = { ...describers, ...skillDescribers }

/** Entries of a later version may have kinds that this one lacks. */
export function describe(entry: LogEntry, scope: string): Said {
  const describer = Object.hasOwn(all, entry.kind) ? (all[entry.kind] as (entry: LogEntry, scope: string) => Said) : null
  return describer ? describer(entry, scope) : note(entry.kind)
}
