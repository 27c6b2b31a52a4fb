import type { EntryOf, Kinds } from './kind.ts'
import { ended, errorType, middleOf, note, usageOf } from './said.ts'
import { addTurn, sample, turnOf, type Counts, type Tally } from './tally.ts'

const tool = ({ tool: name, effect_id }: { tool: string; effect_id: string }) => ({
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': name,
  'gen_ai.tool.call.id': effect_id,
  ...(name?.startsWith('mcp.') && { 'mcp.method.name': 'tools/call' }),
})

/** Turns, and what they ask of models and tools. */
export const turns = {
  'turn-started': {
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
    span: 'turn',
    said: (entry) => {
      const { turn_id, status, result, error, acts } = entry
      const ok = status === 'result' || status === 'none' || status === 'waiting'
      const of = { 'reflex.turn.id': turn_id, 'reflex.turn.status': status, 'reflex.turn.result': result, 'reflex.turn.acts': acts }
      const failure = { ...errorType(ok, status), ...(error !== null && { 'error.message': error }) }
      return { ends: ended(ok), attributes: { ...of, ...usageOf(entry), ...failure } }
    },
    counts: (entry, context) => endTurn(entry, context),
    notices: ({ status, turn_id, trace_id, error }) =>
      status === 'refused' ? [{ type: 'budget.spent', data: { turn_id, trace_id, detail: error } }] : [],
  },
  'turn-cancelled': {
    span: 'turn',
    said: ({ reason, by, traceparent }) => ({
      attributes: { 'reflex.turn.cancelled_by': by, 'reflex.turn.cancelled_for': reason, 'reflex.turn.cancelled_traceparent': traceparent },
    }),
  },
  'dry-turn-ended': {
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
  'model-lost': { span: 'note', said: ({ kind, error }) => note(kind, { 'error.message': error }) },
  'model-restored': { span: 'note', said: ({ kind, waited_ms }) => note(kind, { 'reflex.waited_ms': waited_ms }) },
  'model-hurried': { span: 'note', said: ({ kind, by }) => note(kind, { 'reflex.by': by }) },
  'decision-made': {
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
    span: 'effect',
    said: (entry) => {
      const { tool: name, input, cause, idempotence_key } = entry
      const of = { 'gen_ai.tool.call.arguments': input, 'reflex.effect.cause': cause, 'reflex.idempotence_key': idempotence_key }
      return { name: `execute_tool ${name}`, begins: true, attributes: { ...tool(entry), ...of } }
    },
  },
  'effect-ended': {
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
    span: 'reply',
    said: ({ content, reflex_id }) => ({
      name: 'reply',
      ends: 'ok',
      attributes: { 'gen_ai.output.type': 'text', 'gen_ai.output.messages': content, 'reflex.id': reflex_id },
    }),
  },
} satisfies Kinds

function countCall(
  { status, usage: { input_tokens, output_tokens, cost_usd } }: EntryOf<'model-called' | 'decision-made'>,
  { add }: Tally,
): void {
  add('scope', '', {
    model_calls: 1,
    model_failures: status === 'ok' ? 0 : 1,
    input_tokens,
    output_tokens,
    model_cost_usd: cost_usd ?? 0,
    unpriced_calls: cost_usd === null ? 1 : 0,
  })
}

function endTurn(entry: EntryOf<'turn-ended'>, { record, add }: Tally): void {
  const { status, duration_ms, span_id, usage } = entry
  const cost_usd = usage.cost_usd ?? 0
  record.sums = addTurn(record.sums, entry)
  const turn = turnOf(record, span_id)
  record.turn = null
  const measured: Counts = {
    turns: 1,
    turn_cost_usd: cost_usd,
    ...(duration_ms !== null && { turn_time_ms: duration_ms, ...sample('turn_ms', duration_ms) }),
  }
  const used = Object.entries(turn?.skills ?? {})
  const counts: Counts = {
    ...measured,
    turns_failed: status === 'failed' || status === 'timeout' ? 1 : 0,
    refused: status === 'refused' ? 1 : 0,
  }
  if (turn?.has_bulletin && used.some(([, { ok }]) => ok > 0)) {
    counts['ranked'] = 1
    counts['ranked_first'] = turn.first !== null && (turn.skills[turn.first]?.ok ?? 0) > 0 ? 1 : 0
  }
  for (const [id, { runs, pending }] of used) {
    const fallbacks = status === 'result' ? Math.max(0, pending) : 0
    add('skill', id, { ...(runs > 0 && measured), fallbacks })
    counts['fallbacks'] = (counts['fallbacks'] ?? 0) + fallbacks
  }
  add('scope', '', counts)
}
