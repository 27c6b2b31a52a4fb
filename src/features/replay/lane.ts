import { Toolbox } from '../../agent/toolbox.ts'
import { isMask } from '../../traces/redact.ts'
import { asJson, isJsonFields, type Json, type JsonFields } from '../../base/json.ts'
import type { LogEntry, EntryOf } from '../../contract/log-entry.ts'
import type { Event } from '../../core/event.ts'
import {
  ACTED,
  NO_BRANCH,
  UNKNOWN_OUTPUT,
  endOfAct,
  endOfFailure,
  endOfProposal,
  REUSED,
  type ActionEnding,
} from '../../agent/action-end.ts'
import { actsOnPath, asksUnknown, failureOf, type Outputs, outputsAsked, outputsUsed, resolveAct } from '../../reflexes/sequence.ts'
import type { KeyOf } from '../../contract/reflex.ts'
import { agreedIn, recordedKeys } from '../../reflexes/agreement.ts'
import { actionsIn, type Branching, toolCallOf, type LaneWork } from '../../contract/action.ts'
import type { Fire } from '../../reflexes/decide.ts'
import { agentRoles, ownText } from '../../skills/session/context.ts'
import type { Acted, Chains } from './chain.ts'
import type { EffectEnded } from './source.ts'
import type { Around } from './given.ts'
import { OUTSIDE, ownTools } from './recorded-chain.ts'
import { isMasked } from '../../base/secrets.ts'
import { anchorsTouched } from '../../tools/define-tool.ts'
import { Unrecorded } from './report.ts'
import type { Sessions } from './skills/sessions.ts'

type Doing = Acted & { ended: EntryOf<'action-ended'>; clean: (value: unknown) => unknown }

/** The attempts of an action, as in the live lane. */
const MOST_ATTEMPTS = 5

/** Replays the actions of reflexes that fired: tool calls, events, skills, replies and notes. */
export async function replayActions(around: Around, chains: Chains, sessions: Sessions): Promise<void> {
  const { source, host, given, comparison } = around
  const { acted } = chains
  compareAtOnce(around, chains)
  compareTrials(around)
  for (const one of acted) {
    await host.computing.rest(8)
    const { fire, event, settings, entry } = one
    if (!fire.permitted.lane || fire.reused) continue
    const ended = source.entriesOf('action-ended').find((of) => isOf(of, event.id, fire))
    // With changes, an action may be new: its effect is not known.
    if (!ended && given.departures !== null) continue
    try {
      if (!ended) throw new Unrecorded('the action had not ended when it was exported')
      const replayed = await endOf(fire.permitted.work, { ...one, ended, clean: host.cleaner(settings) }, { around, sessions })
      const { status, error, action_type } = ended
      const { action } = fire
      comparison.compare(ended, 'action', {
        recorded: { action_type, status, error },
        replayed: { action_type: action.action_type, ...replayed },
      })
    } catch (error) {
      if (!(error instanceof Unrecorded)) throw error
      comparison.cannot(ended ?? entry, 'action', error.message)
    }
  }
}

const isOf = ({ event_ids, reflex_id }: LogEntry & { reflex_id: unknown }, event_id: string, { version }: Fire): boolean =>
  event_ids[0] === event_id && reflex_id === version.id

/** Replies and notes on the scratch are made in the unit of the decision. */
function compareAtOnce({ source, host, comparison }: Around, { acted, decided }: Chains): void {
  for (const entry of source.entriesOf('reply-sent', 'scratch-set')) {
    if (entry.reflex_id === null) continue
    if (!decided.has(entry.event_ids[0] ?? '')) {
      comparison.cannot(entry, 'action', 'the decision of its reflex could not be made again')
      continue
    }
    const one = acted.find(({ fire, event }) => isOf(entry, event.id, fire))
    // The acts of a sequence are compared in their order.
    if (one?.fire.action.action_type === 'sequence') continue
    const recorded = entry.kind === 'reply-sent' ? { content: entry.content } : { key: entry.key, value: entry.value }
    comparison.compare(entry, 'action', { recorded, replayed: one ? host.cleaner(one.settings)(outputOf(one.fire)) : null })
  }
}

function outputOf({ action }: Pick<Fire, 'action'>): object | null {
  if (action.action_type === 'reply') return { content: action.content }
  return action.action_type === 'set_scratch' ? { key: action.key, value: action.value } : null
}

/** Compares again what a reflex in shadow mode wished with what was decided. */
function compareTrials({ source, host, comparison }: Around): void {
  const agent = host.agents.agentOf(source.scope, source.recording.settings.agent)
  const outside = { ready: async () => {}, available: () => ({}), find: () => null }
  const toolbox = new Toolbox({ scope: source.scope, agent: () => agent, settings: () => source.recording.settings, outside })
  toolbox.offer(...ownTools)
  const keyOf: KeyOf = (tool, args) => recordedKeys(toolbox.keyOf(tool, args), args)
  const seen = new Map<string, Map<string, number>>()
  for (const entry of source.entriesOf('reflex-compared')) {
    const { reflex_id: id, version, action, decision, agreed, terms } = entry
    const name = entry.event_ids[0] ?? ''
    const counts = seen.get(name) ?? new Map<string, number>()
    seen.set(name, counts)
    if (actionsIn(action).some((one) => one.action_type === 'call_tool' && OUTSIDE.test(one.tool)))
      comparison.cannot(entry, 'trial', 'the keys of tools of other servers are not in the recording')
    else if (action.action_type === 'sequence' && holdsMask((terms?.outputs ?? null) as Json))
      comparison.cannot(entry, 'trial', 'an output of the decision is masked in the log')
    // Older scopes did not compare the calls that these actions are.
    else if (agreed === null && action.action_type !== 'call_tool' && toolCallOf(action)) comparison.same(entry, 'trial')
    else {
      const { agreed: replayed } = agreedIn({ version: { id, version }, action, decision, seen: counts, ...terms }, keyOf)
      comparison.compare(entry, 'trial', { recorded: agreed, replayed })
    }
  }
}

type With = { around: Around; sessions: Sessions }

async function endOf(work: LaneWork, doing: Doing, { around, sessions }: With): Promise<ActionEnding> {
  const { status } = doing.ended
  if (status === 'reused' && doing.fire.action.idempotence_key !== undefined && work.kind !== 'skill') return REUSED
  if (work.kind === 'sequence') return endOfSequence(work, doing, { around, sessions })
  if (work.kind === 'event') return endOfEvent(work.event, doing, around)
  return work.kind === 'skill' ? endOfSkill(work, doing, sessions) : endOfCall(work, doing, around)
}

/** The event that the action sent, without its time and its place in the trace. */
function endOfEvent(sent: Event, { clean }: Doing, { source, comparison }: Around): ActionEnding {
  const accepted = source.entriesOf('event-accepted').find(({ event_ids }) => event_ids[0] === sent.id)
  const recorded = source.eventOf(sent.id)?.event
  if (!accepted || !recorded) throw new Unrecorded('the event that it sent was not accepted in this trace')
  const bare = ({
    timestamp: _timestamp,
    meta: { parent_id: _parent, trace_flags: _flags, tracestate: _state, ...meta },
    ...event
  }: Event) => ({ ...event, meta })
  comparison.compare(accepted, 'action', { recorded: bare(recorded), replayed: clean(bare(sent)) })
  return ACTED
}

/** Each begun act with the outputs that the log has. It ends with the first that failed. */
async function endOfSequence(work: Branching, doing: Doing, { around, sessions }: With): Promise<ActionEnding> {
  const { ended, fire, event, clean } = doing
  const { source, comparison } = around
  const effects = source.entriesOf('effect-ended').filter(({ parent_id }) => parent_id === ended.span_id)
  const said = source.entriesOf('reply-sent', 'scratch-set').filter((one) => one.reflex_id !== null && isOf(one as never, event.id, fire))
  const records = [...sessions.of(ended.span_id)]
  const outputs: (Json | undefined)[] = []
  const begun = Math.max(ended.acts?.length ?? work.acts.length, 1)
  for (let place = 0; place < begun; place += 1) {
    const acts = takenPath(work, outputs) ?? []
    const act = acts[place]
    if (act === undefined) break
    if (outputsUsed(act, outputs).some(holdsMask)) throw new Unrecorded('an output that it uses is masked in the log')
    const resolved = resolveAct(act, outputs)
    if (!resolved.ok) return endOfAct({ status: 'failed', error: resolved.detail }, place, acts.length)
    const { action } = resolved
    let ending = ACTED
    let output: Json | undefined = null
    if (action.action_type === 'call_tool') {
      const isFailedRead = work.branches !== undefined && place === work.acts.length - 1 && effects[0]?.reads === true
      const last = isFailedRead ? 0 : effects.findIndex(({ status }) => status === 'ok' || status === 'reused')
      const own = effects.splice(0, last + 1 || effects.length)
      const ended = endOfCall({ kind: 'tool', tool: action.tool, input: action.args }, doing, around, own)
      ending = isFailedRead ? ACTED : ended
      output = outputIn(own.at(-1))
    } else if (action.action_type === 'run_skill') {
      ending = await endOfSkill(
        { kind: 'skill', skill_id: action.skill_id, inputs: action.inputs as JsonFields },
        doing,
        sessions,
        records.splice(0, 1),
      )
      output = undefined
    } else if (action.action_type === 'emit_event') {
      const sent = source.entriesOf('event-accepted').find(({ via, event_type }) => via === 'reflex' && event_type === action.event.type)
      if (!sent) throw new Unrecorded('the event that it sent was not accepted in this trace')
      comparison.same(sent, 'action')
    } else {
      const entry = said.shift()
      if (!entry) throw new Unrecorded('what it said or noted is not in the recording')
      const recorded = entry.kind === 'reply-sent' ? { content: entry.content } : { key: entry.key, value: entry.value }
      comparison.compare(entry, 'action', { recorded, replayed: clean(outputOf({ action })) })
    }
    if (ending.status !== 'ok' && ending.status !== 'reused') return endOfAct(ending, place, acts.length)
    outputs.push(output)
  }
  // Why it stopped before an act is not in effects, but in its end.
  const last = ended.acts?.at(-1)
  if (last && last.status !== 'ok' && last.status !== 'reused') return { status: ended.status, error: ended.error }
  if (ended.error === UNKNOWN_OUTPUT.error) throw new Unrecorded('an output that its branches ask about was not kept')
  if (takenPath(work, outputs) === null) return NO_BRANCH
  return ended.acts?.every(({ status }) => status === 'reused') ? REUSED : ACTED
}

/** The output of a call. One that was not kept has an error in its place. */
const outputIn = (effect: EffectEnded | undefined): Json | undefined =>
  effect?.error === null ? asJson(effect.output) : effect?.reads ? failureOf(effect.error) : undefined

/** Throws if a branch asks about an output that the log does not have. */
function takenPath(work: Branching, outputs: Outputs): ReturnType<typeof actsOnPath> {
  if (asksUnknown(work, outputs) || isMasked(outputsAsked(work, outputs)))
    throw new Unrecorded('an output that its branches ask about is not in the log, or masked there')
  return actsOnPath(work, outputs)
}

const holdsMask = (value: Json): boolean =>
  typeof value === 'object' && value !== null ? Object.values(value).some((inner: Json) => holdsMask(inner)) : isMask(value)

async function endOfSkill(
  { skill_id, inputs }: Extract<LaneWork, { kind: 'skill' }>,
  { fire, event, settings, ended }: Doing,
  sessions: Sessions,
  records: Iterable<Parameters<Sessions['propose']>[0]> = sessions.of(ended.span_id),
): Promise<ActionEnding> {
  const { id, version } = fire.version
  const proposal = { skill_id, inputs, why: `reflex ${id}@${version}` }
  const request = { from: 'reflex', roles: agentRoles(settings), text: ownText(event) } as const
  let ending: ActionEnding | null = null
  for (const record of records) {
    const result = await sessions.propose(record, proposal, { request, events: [event] })
    ending = result && endOfProposal({ ...result, skill_id })
  }
  if (!ending) throw new Unrecorded('the session in which it proposed a skill is not replayed')
  return ending
}

/** Each recorded attempt in its order: the last one decides, as in the live lane. */
function endOfCall(
  { tool, input }: Extract<LaneWork, { kind: 'tool' }>,
  { ended, clean, settings }: Doing,
  { source, host, comparison }: Around,
  effects: readonly EffectEnded[] = source.entriesOf('effect-ended').filter(({ parent_id }) => parent_id === ended.span_id),
): ActionEnding {
  const parsed = host.agents.agentOf(source.scope, settings.agent).tools[tool]?.input.safeParse(input)
  const asked = clean(parsed?.success ? parsed.data : input)
  // A person was asked instead.
  const asks = settings.origins === 'ask' && ended.status === 'ok'
  if (effects.length === 0 && (asks || anchorsTouched(settings.anchors, { tool, input: asked }).length > 0)) return ACTED
  for (const [index, effect] of effects.entries()) {
    const known = source.inputOf(effect)
    const replayed = parsed ? asked : asLogged(asked, known?.value)
    comparison.compare(effect, 'effect', {
      recorded: { tool: effect.tool, input: known ? known.value : replayed },
      replayed: { tool, input: replayed },
    })
    if (effect.status === 'ok' || effect.status === 'reused') return ACTED
    const error = new Error(effect.error ?? '')
    if (LOST.test(error.message)) continue
    const ending = endOfFailure(error, { last: effect, attempts: index + 1, most: MOST_ATTEMPTS })
    if (ending) return ending
  }
  throw new Unrecorded(effects.length === 0 ? `the tool ${tool} was not called` : 'the process died during the action')
}

const LOST = /^the server died/

/** Fields that the schema of a tool of the scope adds come from the log. */
const asLogged = (asked: unknown, recorded: unknown): unknown =>
  isJsonFields(asked) && isJsonFields(recorded) ? ({ ...recorded, ...asked } satisfies JsonFields) : asked
