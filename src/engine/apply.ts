import { arrivalOf, noTurn, type OverlapSituation, type ReactionDecision, type ReflexStep } from '../reflexes/decide.ts'
import { parseAction, type Action } from '../contract/action.ts'
import type { NewEntry, Via } from '../contract/log-entry.ts'
import { RECENT_EVENTS } from '../reflexes/reflex-context.ts'
import type { Applied, ScopeFeature, Next } from './feature.ts'
import type { Actions } from './reflexes/actions.ts'
import { asksModel, stateAfter } from './inbox/inbox.ts'
import type { Log } from './log/log.ts'
import { tellFailure } from './log/failures.ts'
import { headOf, reflexHead, scopeHead } from './log/spans.ts'
import { marksOf } from '../traces/ids.ts'
import type { Unit } from '../kernel/unit.ts'
import type { Lanes } from './effects/wiring.ts'

export type ApplyParts = Pick<Lanes, 'inbox' | 'memory' | 'log' | 'basis' | 'settlement'> & {
  features: readonly ScopeFeature[]
  actions: Pick<Actions, 'queue' | 'atOnce'>
}
/** Ways on which events come from outside the scope. */
export const OUTSIDE: ReadonlySet<Via | null> = new Set<Via>(['http', 'queue', 'socket'])
/**
 * `via` is null for events that are already stored. `agent` is the name of the scope's agent.
 * `no_slow_path`: why no turn takes an event that a reflex escalates.
 * `holds`: events that wait for a turn are stored with its end, if it ends within the task.
 */
type How = { via: Via | null; meeting: OverlapSituation; agent: string; no_slow_path: () => string | null; holds: () => boolean }

/**
 * Writes decisions in one unit: log, inbox, context and settlements. Then each action is queued or
 * done, and features follow each decision, in the order of their list.
 */
export function apply(unit: Unit, decisions: readonly ReactionDecision[], how: How, parts: ApplyParts): Next[] {
  const { inbox, settlement } = parts
  const { via } = how
  const basis = via ? parts.basis(unit) : null
  const applied = decisions.map((decision) => record(unit, decision, { ...how, basis }, parts))
  const rows = applied.map(({ row }) => row)
  const unheard: typeof applied = []
  let waits = false
  for (const one of applied) {
    if (one.row.status !== 'pending') continue
    if (one.decision.acted?.action.action_type === 'escalate' && how.no_slow_path() !== null) unheard.push(one)
    else waits ||= one.row.in_context
  }
  if (via && waits && unheard.length === 0 && how.holds()) inbox.hold(unit, rows)
  else if (via) inbox.insert(unit, rows)
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
  retryFailed(unit, decisions, how.agent, parts)
  const next = applied.flatMap((one) => followed(unit, one, parts))
  for (const { decision } of unheard) {
    const reason = `reflex ${decision.acted?.version.id} escalated it, and there is nobody to escalate to: ${how.no_slow_path()}`
    settlement.end(unit, [decision.one.seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
  }
  return waits ? [...next, { do: 'think', interrupts: applied.some(({ arrival }) => arrival === 'interrupts') }] : next
}

/** Does the action of a decision, and has the features follow it, then the decision. */
function followed(unit: Unit, one: Applied, { features, actions }: ApplyParts): Next[] {
  const { acted } = one.decision
  const next: Next[] = []
  if (acted && !acted.reused) {
    next.push(...actions.queue(unit, acted, one))
    // Before the action changes what a turn would have seen.
    for (const feature of features) next.push(...(feature.acted?.(unit, acted, one) ?? []))
    if (!acted.permitted.lane) {
      next.push(...actions.atOnce(unit, acted, one.decision))
      const ended = { ok: true, saves: acted.action.action_type !== 'escalate' }
      for (const feature of features) feature.actionEnded?.(unit, acted.version, ended)
    }
  }
  for (const feature of features) feature.applied?.(unit, one)
  if (one.asks) for (const feature of features) next.push(...(feature.asked?.(unit, one) ?? []))
  return next
}

const RETRIED: ReadonlySet<ReactionDecision['perceived']> = new Set(['failed', 'unperceived'])

/** Logs a decision, has its runs counted and joins its event to the context. */
function record(
  unit: Unit,
  decision: ReactionDecision,
  { via, meeting, agent, basis }: How & { basis: string | null },
  { log, memory, features }: ApplyParts,
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
  const counted = acted && !acted.reused ? features.map((feature) => feature.fired?.(unit, acted)) : []
  const told = Object.assign({}, ...counted) as object
  const seqs = steps.map((step) => unit.log({ ...entryOf(step, decision, { log, shown }), ...(step.fire === acted && told) }))
  for (const step of steps) for (const feature of features) feature.ran?.(unit, step, decision)
  if (in_context) memory.add(one)
  if (acted && !acted.reused && acted.action.action_type === 'set_scratch') memory.setScratch(unit, acted.action.key, acted.action.value)
  const fired_seq = seqs[steps.findIndex(({ fire }) => fire === acted)] ?? 0
  const no_turn = noTurn(arrival, agent)
  const waits = arrival !== null && !acted && no_turn === null
  const asks = asksModel(decision) || (waits && features.some((feature) => feature.takes?.(event)))
  const row = {
    stored: one,
    in_context,
    chain_seq: seqs[0] ?? null,
    sent: OUTSIDE.has(via),
    ...stateAfter(decision, { fired_seq, no_turn, asks }),
  }
  return { decision, row, fired_seq, arrival, asks }
}

/** Retries or dead-letters events on which a filter failed. Logs each failure once. */
function retryFailed(unit: Unit, decisions: readonly ReactionDecision[], agent: string, { inbox, settlement, log }: ApplyParts): void {
  const failed = decisions.flatMap(({ one, failure }) => {
    if (!failure) return []
    const { text } = log.masks.of(one.event.meta.trace_id)
    return [{ one, error: text(failure.error), stack: failure.stack && text(failure.stack) }]
  })
  for (const group of Map.groupBy(failed, ({ error, stack }) => `${error}\n${stack}`).values()) {
    const [first] = group
    if (!first) continue
    const { error, stack } = first
    const event_ids = group.map(({ one }) => one.event.id)
    const log_seq = unit.log({ ...scopeHead(), event_ids, kind: 'filter-failed', agent, error, stack })
    tellFailure({ what: 'A filter failed', scope: first.one.event.scope, event_ids, error, stack })
    const failure = settlement.failure(unit, error, log_seq)
    const seqs = group.map(({ one }) => one.seq)
    settlement.failed(unit, inbox.failPerceiving(unit, seqs, failure), failure)
  }
}

/** Logs a context shared by several steps once. */
function entryOf(
  { id, version, hash, state, ran, shown, fire, passed, pace }: ReflexStep,
  { one }: ReactionDecision,
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

type Reason = NonNullable<ReflexStep['passed']>['reason']

/** Without it, `reflex-passed, reason: error` would read as if a test had passed. */
function meaningOf(reason: Reason): { detail?: string } {
  if (reason === 'null') return {}
  if (reason === 'error' || reason === 'limit' || reason === 'invalid_action')
    return { detail: 'the reflex failed and did nothing: the event continued' }
  if (reason === 'refused') return { detail: 'the scope does not allow the action that the reflex requested: the event continued' }
  return { detail: 'the reflex did not run: the event continued' }
}
