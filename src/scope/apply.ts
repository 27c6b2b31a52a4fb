import { arrivalOf, noTurn, type Meeting } from '../agent/overlap.ts'
import { oncePer } from '../base/once-per.ts'
import { parseAction, type Action } from '../contract/action.ts'
import { isAsked } from '../contract/decisions/event.ts'
import type { Arrival } from '../contract/event-record.ts'
import type { NewEntry, Via } from '../contract/log-entry.ts'
import { RECENT_EVENTS } from '../reflexes/reflex-context.ts'
import { historyOf, type Decision, type Fire, type Step } from '../reflexes/decide.ts'
import type { Judged } from './inbox/event-row.ts'
import { asksModel, stateAfter } from './inbox/state-after.ts'
import type { Log } from './log/log.ts'
import type { Actions } from './reflexes/actions.ts'
import { actsOf, type ReflexVersion } from '../contract/reflex.ts'
import { tellFailure } from './log/failures.ts'
import { meaningOf } from './log/pass-detail.ts'
import { childHead, headOf, reflexHead, scopeHead } from './log/spans.ts'
import { marksOf } from '../traces/otlp-target.ts'
import type { Decisions } from './turns/decisions/decisions.ts'
import type { Stopped } from './turns/turn-lane.ts'
import type { Audits } from './turns/dry/audits.ts'
import type { Unit } from './storage/unit.ts'
import type { Lanes } from './effects/wiring.ts'

/** Work to do after decisions commit. */
export type Next =
  | { do: 'think'; urgent?: boolean; interrupts?: boolean }
  | { do: 'run-jobs' }
  | ({ do: 'stop-turn' } & Stopped)
  | { do: 'say'; content: string; event_id: string }

export type ApplyParts = Pick<
  Lanes,
  | 'scope'
  | 'inbox'
  | 'memory'
  | 'log'
  | 'log_parts'
  | 'basis'
  | 'records'
  | 'proving'
  | 'licence_use'
  | 'settlement'
  | 'turns'
  | 'toolbox'
  | 'agent'
> & {
  actions: Actions
  decisions: Decisions
  audits: Audits
}
/** `via` is null for events that are already stored. */
type How = { via: Via | null; meeting: Meeting }
type Applied = { decision: Decision; row: Judged; fired_seq: number; arrival: Arrival | null; asks: boolean }

/** Writes decisions in one unit: log, inbox, context, settlements, trials and actions. */
export function apply(unit: Unit, decisions: readonly Decision[], { via, meeting }: How, parts: ApplyParts): Next[] {
  const { inbox, settlement } = parts
  const basis = via ? parts.basis(unit) : null
  const applied = decisions.map((decision) => record(unit, decision, { via, meeting, basis }, parts))
  const rows = applied.map(({ row }) => row)
  if (via) inbox.insert(unit, rows)
  else
    inbox.update(
      unit,
      rows.filter((_, index) => !RETRIED.has(decisions[index]?.perceived ?? 'failed')),
    )
  for (const { stored, status, outcome } of rows) {
    const { seq, attempts, event } = stored
    const row = { seq, scope: event.scope, id: event.id, trace_id: event.meta.trace_id, attempts }
    if (outcome && status !== 'pending' && status !== 'processing') settlement.ended(unit, [row], { status, outcome })
  }
  retryFailed(unit, decisions, parts)
  const next = applied.flatMap((one) => act(unit, one, parts))
  const waits = rows.some(({ status, in_context }) => in_context && status === 'pending')
  return waits ? [...next, { do: 'think', interrupts: applied.some(({ arrival }) => arrival === 'interrupts') }] : next
}

const RETRIED: ReadonlySet<Decision['perceived']> = new Set(['failed', 'unperceived'])

/** Logs a decision, counts its runs and joins its event to the context. */
function record(
  unit: Unit,
  decision: Decision,
  { via, meeting, basis }: How & { basis: string | null },
  { log, log_parts, memory, records, proving, licence_use, agent, decisions }: ApplyParts,
): Applied {
  const { one, steps, acted, perceived, consumed } = decision
  const { event } = one
  const ran = steps.some((step) => step.ran)
  log.masks.mayQuote(event.meta.trace_id, ran ? [...memory.live.events.slice(-RECENT_EVENTS), event] : [event])
  const in_context = perceived === 'joined' && !consumed
  const arrival = arrivalOf(decision, meeting)
  if (via)
    unit.log({
      ...headOf(event),
      kind: 'event-accepted',
      event_type: event.type,
      source: event.source,
      via,
      ...marksOf(event.meta),
      ...(basis !== null && { basis }),
      ...(!in_context && { joined: false as const }),
      ...(arrival && meeting.in_flight && { overlap: { ...meeting.in_flight, arrival } }),
    })
  else if (in_context) unit.log({ ...headOf(event), kind: 'event-joined' })
  const shown = new Set<string>()
  const used = licence_use.acted(unit, acted, () => proving.savings)
  const seqs = steps.map((step) => unit.log({ ...entryOf(step, decision, { log, shown }), ...(step.fire === acted && used) }))
  for (const { id, version, state, ran, fire, passed } of steps) {
    if (ran) {
      proving.ran(unit, ran, state)
      // Every reader of the log would read it.
      if (!ran.version.sealed) log_parts.put(unit, programOf(ran.version), { named: ran.version.hash })
    }
    if (fire && state) records.fired(historyOf(fire.version, state), fire, { at: unit.now, event_id: event.id })
    if (version !== null && (passed?.reason === 'cooldown' || passed?.reason === 'rate')) proving.heldBack({ id, version })
  }
  if (in_context) memory.add(one)
  if (acted && !acted.reused && acted.action.action_type === 'set_scratch') memory.setScratch(unit, acted.action.key, acted.action.value)
  const fired_seq = seqs[steps.findIndex(({ fire }) => fire === acted)] ?? 0
  const no_turn = noTurn(arrival, agent().name)
  const asks = asksModel(decision) || (arrival !== null && !acted && no_turn === null && decisions.takes(event))
  const row = {
    stored: one,
    in_context,
    chain_seq: seqs[0] ?? null,
    ...stateAfter(decision, { fired_seq, no_turn, asks }),
  }
  return { decision, row, fired_seq, arrival, asks }
}

/** The code that ran, for replays: a deleted reflex stays as long as the log that names it. */
const programOf = oncePer(({ id, version, state, code }: ReflexVersion) => ({ id, version, state, code }))

/** Retries or dead-letters events on which a filter failed. Logs each failure once. */
function retryFailed(unit: Unit, decisions: readonly Decision[], { scope, agent, inbox, settlement, log }: ApplyParts): void {
  const failed = decisions.flatMap(({ one, failure }) => {
    if (!failure) return []
    const { text } = log.masks.of(one.event.meta.trace_id)
    return [{ one, error: text(failure.error), stack: failure.stack && text(failure.stack) }]
  })
  for (const group of Map.groupBy(failed, ({ error, stack }) => `${error}\n${stack}`).values()) {
    const [{ error, stack } = { error: '', stack: null }] = group
    const event_ids = group.map(({ one }) => one.event.id)
    const log_seq = unit.log({ ...scopeHead(), event_ids, kind: 'filter-failed', agent: agent().name, error, stack })
    tellFailure({ what: 'A filter failed', scope, event_ids, error, stack })
    const failure = settlement.failure(unit, error, log_seq)
    const seqs = group.map(({ one }) => one.seq)
    settlement.failed(unit, inbox.failPerceiving(unit, seqs, failure), failure)
  }
}

/** Executes an immediate action or queues it for the effect lane, and compares trials. */
function act(unit: Unit, { decision, row, fired_seq, asks }: Applied, parts: ApplyParts): Next[] {
  const { proving, actions, toolbox } = parts
  const { one, acted, steps } = decision
  const next: Next[] = []
  if (acted && !acted.reused) {
    unit.count({ reflex_actions: 1 })
    const { action, permitted, version } = acted
    const preempted = action.preempt ? parts.turns.preempt(unit, `reflex ${version.id} preempted it`) : null
    if (preempted) next.push({ do: 'stop-turn', ...preempted })
    actions.add(unit, acted, one, fired_seq)
    if (parts.audits.draw(unit, decision, fired_seq) || permitted.lane) next.push({ do: 'run-jobs' })
    if (!permitted.lane) {
      next.push(...actAtOnce(unit, acted, decision, parts))
      proving.acted(unit, version, { ok: true, saves: action.action_type !== 'escalate' })
    }
  }
  if (asks) {
    parts.decisions.add(unit, one)
    next.push({ do: 'run-jobs' })
  }
  const trials = steps.flatMap(({ state, fire }) => (state === 'shadow' && fire ? [fire] : []))
  if (trials.length === 0) return next
  const acts = acted && acted.action.action_type !== 'escalate' ? actsOf(acted.action, toolbox.keyOf) : null
  // A reflex that acts by proof teaches nobody: its own mistakes would prove others.
  proving.watch(unit, one, trials, acts && { by: 'reflex', acts }, !acted?.version.by_proof)
  const { event, seq } = one
  const waits = asks || (row.in_context && row.status === 'pending')
  if (!acts && !waits) proving.decided(unit, [{ seq, scope: event.scope, id: event.id, trace_id: event.meta.trace_id }], null)
  return next
}

/** `set_scratch` needs no work: the scratch has it already. */
function actAtOnce(unit: Unit, { action, version }: Fire, { one: { event } }: Decision, { log, turns }: ApplyParts): Next[] {
  const head = childHead(reflexHead(event, version.id))
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- the others take the lane, or are refused
  switch (action.action_type) {
    case 'reply':
      unit.log({ ...head, kind: 'reply-sent', turn_id: null, reflex_id: version.id, content: action.content })
      return [{ do: 'say', content: action.content, event_id: event.id }]
    case 'ignore':
      return []
    case 'set_scratch': {
      const { key, value } = log.clean({ key: action.key, value: action.value }, head.trace_id) as { key: string; value: unknown }
      unit.log({ ...head, kind: 'scratch-set', key, value, reflex_id: version.id })
      return []
    }
    case 'cancel_turn': {
      const cancelled = turns.cancel(unit, action.reason, { by: `reflex:${version.id}` })
      return cancelled ? [{ do: 'stop-turn', ...cancelled }] : []
    }
    case 'escalate':
      return isAsked(event) ? [] : [{ do: 'think', urgent: true }]
    default:
      throw new Error(`the action ${action.action_type} is not done at once`)
  }
}

/** Logs a context shared by several steps once. */
function entryOf(
  { id, version, hash, state, ran, shown, fire, passed, pace }: Step,
  { one }: Decision,
  { log, shown: logged }: { log: Log; shown: Set<string> },
): NewEntry {
  const context = shown && !logged.has(shown.hash) && ran ? log.cleanContext(shown.context, shown.json) : null
  if (ran && shown) logged.add(shown.hash)
  const seen = {
    context_hash: ran && shown ? shown.hash : null,
    context,
    fuel: ran?.run.fuel ?? 0,
    duration_us: ran?.run.duration_us ?? 0,
    ...(pace && { pace }),
  }
  const head = reflexHead(one.event, id)
  if (fire) {
    const named = { reflex_id: id, version: fire.version.version, hash: fire.version.hash, state }
    return {
      ...head,
      kind: 'reflex-fired',
      action: cleaned(log, fire.action),
      ...(fire.reused && { reused: true as const }),
      ...named,
      ...seen,
    }
  }
  const why = passed ?? { reason: 'null' as const, error: null }
  return { ...head, kind: 'reflex-passed', ...why, ...meaningOf(why.reason), reflex_id: id, version, hash, state, ...seen }
}

/** Hides redacted fields, unless the action would no longer parse. */
function cleaned(log: Log, action: Action): Action {
  const shown = log.clean(action)
  if (shown === action) return action
  const parsed = parseAction(shown)
  return parsed.ok ? parsed.action : action
}
