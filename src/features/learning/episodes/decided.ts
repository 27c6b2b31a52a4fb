import { replyOf } from '../../decisions/agent/answers.ts'
import { isJsonFields, jsonValue, type Json, type JsonFields } from '../../../base/json.ts'
import { toolCallOf, withoutOutputs, type Action } from '../../../contract/action.ts'
import { actsOnPath, failureOf, type Outputs, resolveAct } from '../../../reflexes/sequence.ts'
import { skillAct } from '../../../contract/reflex.ts'
import type { LogEntry, EntryOf } from '../../../contract/log-entry.ts'
import type { Episode, EpisodeAct } from '../episode.ts'

export type SkillFields = LogEntry & JsonFields
/** An act with the place in the log where it began. `sent`: the id of the event that it sent. */
export type Placed = { seq: number; act: EpisodeAct; sent?: string }

/** A decision about events, as the log has it. */
export type EpisodeDecision = Pick<Episode, 'trace_id' | 'at' | 'log_seq' | 'usage' | 'outcome' | 'left'> & {
  by: Episode['teacher']['by']
  agent: string
  basis: string | undefined
  models: string[]
  /** The ids of its events, of which a turn lists the newest; `places` lists all. */
  ids: readonly string[]
  places: readonly [number, number][]
  acts: Placed[]
  approvals: string[]
  blackboard?: JsonFields
  /** True if its entries are all there. */
  whole: boolean
  /** Why no reflex can be learned from it. */
  unusable: string | null
}

type Called = Pick<EntryOf<'effect-started'>, 'tool' | 'input'>
type Answered = Pick<EntryOf<'effect-ended'>, 'status' | 'output' | 'error' | 'reads' | 'duration_ms' | 'cost_usd'>

/** An act whose failure may be what a later one depends on has it as its output, others none. */
export function toolAct({ tool, input }: Called, { status, output, error, reads, duration_ms, cost_usd }: Answered): EpisodeAct {
  const ok = status === 'ok' || status === 'reused'
  return {
    kind: 'tool',
    name: tool,
    input: fieldsOf(input),
    ...(ok ? { output } : reads && error !== null && { output: failureOf(error) }),
    ok,
    cost_usd: cost_usd ?? numberOf(fieldsOf(output)['cost_usd']),
    duration_ms: duration_ms ?? 0,
  }
}

export const DONE = { ok: true, cost_usd: 0, duration_ms: 0 } as const

export const replyAct = (content: string): EpisodeAct => ({ kind: 'reply', name: '', input: { content }, ...DONE })

/** The notes that a turn changed, which are written at its end. */
export const notesOf = ({ seq, acts }: EntryOf<'turn-ended'>): Placed[] =>
  acts.flatMap((act) =>
    act.act === 'set_scratch' ? [{ seq, act: { kind: 'note', name: act.key, input: { value: act.value as Json }, ...DONE } }] : [],
  )

/** `inputs`: null if the entries of its start are not kept. */
export function skillRun(end: SkillFields, inputs: unknown): EpisodeAct {
  const is_reused = (end.kind as string) === 'skill-reused'
  return {
    kind: 'skill',
    name: textIn(end, 'skill_id'),
    input: fieldsOf(inputs),
    output: end['outputs'],
    ok: is_reused || end['status'] === 'ok' || end['status'] === 'reused',
    cost_usd: numberOf(end['cost_usd']),
    duration_ms: (end as { duration_ms?: number | null }).duration_ms ?? 0,
  }
}

/** The answer to a request for a decision, as the reply that a reflex would give. */
export function asked(entry: EntryOf<'decision-made'>): EpisodeDecision[] {
  const { event_ids: ids, answers, middle, audit, model, usage, duration_ms, seq, trace_id, at } = entry
  if (middle || audit || !answers) return []
  const content = replyOf(answers)
  const { model_calls, input_tokens, output_tokens, cost_usd } = usage
  const is_sure = Object.values(fieldsOf(jsonValue(content))).every((value) => value !== null)
  return [
    {
      by: 'pull',
      agent: '',
      basis: undefined,
      ids,
      places: [],
      trace_id,
      at: Date.parse(at),
      log_seq: seq,
      models: [model],
      approvals: [],
      acts: [{ seq, act: replyAct(content) }],
      usage: { model_calls, tokens: input_tokens + output_tokens, cost_usd: cost_usd ?? 0, duration_ms: duration_ms ?? 0 },
      outcome: 'ok',
      whole: true,
      unusable: is_sure ? null : 'the decision model was not sure of an answer',
    },
  ]
}

/**
 * An action of a reflex, as a decision. `outputs`: of its acts, by their places. Without them
 * neither the arguments that are outputs are known, nor the branch.
 */
export function actsOfAction(action: Action, outputs: Outputs = []): EpisodeAct[] {
  if (action.action_type !== 'sequence') return actsOfOne(action)
  const acts = actsOnPath(action, outputs) ?? action.acts
  return acts.flatMap((act, place) => {
    const resolved = resolveAct(act, outputs.slice(0, place))
    return actsOfOne(resolved.ok ? resolved.action : withoutOutputs(act))
  })
}

function actsOfOne(action: Action): EpisodeAct[] {
  const act = (kind: EpisodeAct['kind'], name: string, input: unknown): EpisodeAct[] => [
    { kind, name, input: input as JsonFields, ok: true, cost_usd: 0, duration_ms: 0 },
  ]
  switch (action.action_type) {
    case 'call_tool':
    case 'write_artifact':
    case 'invoke_artifact': {
      const call = toolCallOf(action)
      return call ? act('tool', call.tool, call.args) : []
    }
    case 'reply':
      return act('reply', '', { content: action.content })
    case 'run_skill':
      return act('skill', action.skill_id, action.inputs)
    case 'emit_event': {
      const { type, ...fields } = action.event
      return act('emit', type, fields)
    }
    case 'ignore':
    case 'sequence':
    case 'cancel_turn':
    case 'escalate':
    case 'set_scratch':
      break
  }
  return []
}

export const NOT_KEPT = 'the entries of its acts are not kept'

/** Why the acts are not those that the turn's end lists; null if they are. */
export function actsMissing({ acts: listed }: EntryOf<'turn-ended'>, acts: readonly Placed[]): string | null {
  if (listed.some((act) => act.act === 'set_scratch' && act.value === undefined))
    return 'it removed a note, which no action of a reflex does'
  if (listed.some(({ act }) => act === 'other')) return 'it did something that the log does not describe'
  const count = (kind: EpisodeAct['kind']) => acts.filter(({ act }) => act.kind === kind && (act.ok || kind === 'skill')).length
  const has = (act: (typeof listed)[number]['act']) => listed.filter((one) => one.act === act).length
  if (has('emit_event') > count('emit')) return 'it sent an event to another scope, whose content is not in this log'
  const is_whole = has('call_tool') <= count('tool') && has('reply') <= count('reply') && has('run_skill') <= count('skill')
  return is_whole ? null : NOT_KEPT
}

/**
 * The inputs as they were proposed, or as they were bound: those that the turn's end names by their
 * hash are what a reflex would have to give.
 */
export function inputsOf(listed: EntryOf<'turn-ended'>['acts'], skill_id: string, candidates: readonly unknown[]): JsonFields {
  const found = candidates.filter(isJsonFields)
  const hashes = new Set(listed.flatMap((act) => (act.act === 'run_skill' ? [act.inputs_hash] : [])))
  return found.find((inputs) => hashes.has(skillAct(skill_id, inputs).inputs_hash)) ?? found[0] ?? {}
}

export const textIn = (fields: Readonly<Record<string, unknown>>, name: string): string => {
  const value = fields[name]
  return typeof value === 'string' ? value : ''
}
export const fieldsOf = (value: unknown): JsonFields => (isJsonFields(value) ? value : {})
const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0)
