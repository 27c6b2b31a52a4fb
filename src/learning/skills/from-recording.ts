import { isJsonFields, type JsonFields } from '../../base/json.ts'
import type { LogEntry, SkillEntryKind } from '../../contract/log-entry.ts'
import type { Recording } from '../../replay/recording.ts'
import type { Act, Trace } from './trace.ts'

type PlainKind = 'turn-ended' | 'effect-started' | 'effect-ended'
type Of<Kind extends PlainKind> = Extract<LogEntry, { kind: Kind }>
type SkillEntry = Extract<LogEntry, { kind: SkillEntryKind }>
type Placed = { seq: number; act: Act }

/** The turns of an exported trace, with their calls; a run of a skill is one call. */
export function tracesOf(recording: Recording): Trace[] {
  const { project, env, toolset, repo, goal_labels } = recording.settings
  const of = <Kind extends PlainKind>(kind: Kind) => recording.entries.filter((entry): entry is Of<Kind> => entry.kind === kind)
  const ofSkills = (kind: SkillEntryKind) => recording.entries.filter((entry): entry is SkillEntry => entry.kind === kind)
  const started = new Map(of('effect-started').map((entry) => [entry.effect_id, entry]))
  const runs = new Map(ofSkills('skill-started').map((entry) => [entry['run_id'], entry]))
  const applied = ofSkills('skill-applied')
  const seeded = ofSkills('blackboard-seeded')
  const place = {
    agent: recording.agent.name,
    ...(project !== undefined && { project }),
    ...(env !== undefined && { env }),
    ...(toolset !== undefined && { toolset }),
    ...(repo !== undefined && { repo }),
  }
  return of('turn-ended').map((turn): Trace => {
    const calls = of('effect-ended').flatMap((ended) => {
      const begun = started.get(ended.effect_id)
      const is_own = begun !== undefined && !begun.step && 'turn_id' in begun.cause && begun.cause.turn_id === turn.turn_id
      return is_own ? [{ seq: begun.seq, act: callOf(begun, ended) }] : []
    })
    const skills = applied.flatMap((end): Placed[] => {
      const begun = end.parent_id === turn.span_id ? runs.get(end['run_id']) : undefined
      return begun ? [{ seq: begun.seq, act: runOf(begun, end) }] : []
    })
    const blackboard = seeded.find(({ parent_id }) => parent_id === turn.span_id)?.['blackboard']
    const { model_calls, input_tokens, output_tokens, cost_usd } = turn.usage
    return {
      trace_id: recording.trace_id,
      at: Date.parse(turn.at),
      place,
      goal: { text: textOf(recording, new Set(turn.event_ids)), labels: [...goal_labels] },
      ...(isJsonFields(blackboard) && { blackboard }),
      acts: [...calls, ...skills].sort((one, other) => one.seq - other.seq).map(({ act }) => act),
      usage: { model_calls, tokens: input_tokens + output_tokens, cost_usd: cost_usd ?? 0, duration_ms: turn.duration_ms ?? 0 },
      outcome: turn.status === 'result' || turn.status === 'none' ? 'ok' : 'failed',
    }
  })
}

const callOf = ({ tool, input }: Of<'effect-started'>, { status, output, duration_ms, cost_usd }: Of<'effect-ended'>): Act => ({
  kind: 'tool',
  name: tool,
  input: fieldsOf(input),
  output,
  ok: status === 'ok' || status === 'reused',
  cost_usd: cost_usd ?? numberOf(fieldsOf(output)['cost_usd']),
  duration_ms: duration_ms ?? 0,
})

const runOf = (begun: SkillEntry, end: SkillEntry): Act => ({
  kind: 'skill',
  name: String(end['skill_id']),
  input: fieldsOf(begun['inputs']),
  output: end['outputs'],
  ok: end['status'] === 'ok' || end['status'] === 'reused',
  cost_usd: numberOf(end['cost_usd']),
  duration_ms: end.duration_ms ?? 0,
})

const fieldsOf = (value: unknown): JsonFields => (isJsonFields(value) ? value : {})
const numberOf = (value: unknown): number => (typeof value === 'number' ? value : 0)

/** The texts of the events that the turn was about. */
function textOf({ events }: Recording, ids: ReadonlySet<string>): string {
  const said = events.filter(({ event }) => ids.has(event.id)).map(({ event }) => event as Record<string, unknown>)
  return said.flatMap(({ content, text }) => [content, text].filter((one) => typeof one === 'string')).join('\n')
}
