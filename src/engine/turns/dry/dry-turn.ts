import { triggerOn } from '../../../agent/answer-request.ts'
import { DecisionContext } from '../../../core/decision-context.ts'
import type { Event } from '../../../core/event.ts'
import { ScopedLocks } from '../../../core/scoped-locks.ts'
import { messageOf } from '../../../base/error-text.ts'
import { withDeadline } from '../../../base/deadline.ts'
import { isPlatformFault } from '../../../base/faults.ts'
import { endingOf, endingOfError, endingWithCalls, type TurnEnding, resultOf } from '../../../agent/turn-ending.ts'
import type { DryAct, DryEnd, DryView } from '../../../contract/dry-turn.ts'
import type { EntryHead, NewEntry, Usage } from '../../../contract/log-entry.ts'
import type { Act } from '../../../contract/reflex.ts'
import { placesIn, toRanges } from '../../../traces/ranges.ts'
import { eventsAt } from '../../context/past-context.ts'
import { scratchActs, scratchChanges } from '../../context/working-memory.ts'
import type { Past } from '../../log/past.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { nothingYet, noUsage } from '../turn.ts'
import { dryDeps, type DryParts, type DryTurn } from './deps.ts'

type DryTurnRequest = { turn_id: string; head: EntryHead; view: DryView; answers_of?: readonly string[] }
/** `until`: the time of the next try in ms, for `refused` and `waiting`; null if unknown. */
export type DryAnswer = {
  status: DryEnd
  error: string | null
  result: unknown
  acts: Act[]
  did: DryAct[]
  /** The events that it was shown. */
  seen: readonly Event[]
  /** The events that an act may be for which was not made before. */
  askers: readonly Event[]
  /** The places in `acts` of calls that were made before. */
  repeats: ReadonlySet<number>
  inputs: DryTurn['inputs']
  /** Outputs of calls that were made before, by their places in `acts`. */
  outputs: DryTurn['outputs']
  failed_reads: DryTurn['failed_reads']
  usage: Usage
  warnings: string[]
  duration_ms: number
  until: number | null
  /** Parts of the instructions and tools of its model calls. */
  shown: DryTurn['shown']
}

/** SQL: it waited for its decision at `?2`. */
const WAITED = '(ended_at IS NULL OR ended_at > ?2)'
/** SQL: a reflex has acted for it. */
export const DONE_BY_REFLEX = `(status = 'completed' AND outcome ->> 'by' = 'reflex')`

/** True if the slow path decided: its acts, or none, can be compared. */
export const isDecided = ({ status }: Pick<DryAnswer, 'status'>): boolean => status === 'result' || status === 'none'

/**
 * Asks the slow path what it would do, with the context of an earlier moment: a dry turn. It has no
 * effects, changes neither context nor events, and takes no place in the turn lane: G4 orders what
 * acts. Its model calls are metered and logged as a turn's. One at a time, so that a scope never
 * asks its model for more than a turn and a dry turn.
 */
export class DryTurns {
  readonly #parts: DryParts & { history: Past }
  readonly #locks = new ScopedLocks()

  constructor(parts: DryParts & { history: Past }) {
    this.#parts = parts
  }

  async ask(asked: DryTurnRequest): Promise<DryAnswer> {
    return this.#locks.run('dry', () => this.#ask(asked))
  }

  /** The view without what waited for a decision beside an event; null if nothing did. */
  viewOf(seq: number, view: DryView): DryView | null {
    const seqs = placesIn(view.saw.seqs)
    const sql = `SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND ${WAITED}`
    const waited = new Set(this.#parts.database.allOf<{ seq: number }>(seqs, sql, view.decided_at).map((row) => row.seq))
    const kept = seqs.filter((one) => one === seq || !waited.has(one))
    return kept.length === seqs.length ? null : { ...view, saw: { ...view.saw, seqs: toRanges(kept) } }
  }

  /** The events that it considers, that waited, or whose acts by a reflex it may repeat. */
  #askersIn({ saw, decided_at }: DryView, { considered, shown }: { considered: readonly Event[]; shown: readonly Event[] }) {
    const sql = `SELECT id FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND (${WAITED} OR ${DONE_BY_REFLEX})`
    const found = this.#parts.database.allOf<{ id: string }>(placesIn(saw.seqs), sql, decided_at)
    const ids = new Set([...considered, ...found].map(({ id }) => id))
    return shown.filter(({ id }) => ids.has(id))
  }

  /** Logs how it ended, in the unit that uses the answer. */
  log(unit: Unit, { head, turn_id, view }: DryTurnRequest, answer: DryAnswer, why: 'audit' | 'asked-again'): number {
    const { log, agent } = this.#parts
    const { status, error, result, acts, did, usage, warnings, duration_ms } = answer
    const clean = log.clean({ result, acts, did, scratch: view.saw.scratch }, head.trace_id) as Pick<
      DryAnswer,
      'result' | 'acts' | 'did'
    > & {
      scratch: unknown
    }
    const saw = { ...view.saw, scratch: clean.scratch }
    const said = { status, error, result: clean.result, acts: clean.acts, did: clean.did, usage, ...(warnings.length > 0 && { warnings }) }
    const entry: NewEntry = { ...head, duration_ms, kind: 'dry-turn-ended', why, turn_id, agent: agent().name, ...view, saw, ...said }
    // A scope whose reflexes take all events has no other turns that show a changed slow path.
    if (isDecided(answer)) for (const feature of this.#parts.features) feature.taught?.(unit, answer.shown ?? null)
    return unit.log(entry)
  }

  async #ask({ turn_id, head, view, answers_of = [] }: DryTurnRequest): Promise<DryAnswer> {
    const { agent, settings, now, outage, unit } = this.#parts
    const started = now()
    const none = {
      result: null,
      acts: [],
      did: [],
      seen: [],
      askers: [],
      repeats: new Set<number>(),
      inputs: {},
      outputs: {},
      failed_reads: [],
      usage: noUsage(),
      warnings: [],
      duration_ms: 0,
      until: null,
      shown: null,
    }
    const events = await this.#eventsOf(view)
    if (typeof events === 'string') return { ...none, status: 'gone', error: events }
    const considered = placesIn(view.considered).flatMap((seq) => events.get(seq) ?? [])
    const trigger = triggerOn(agent(), considered, (hash) => this.#partOf(hash))
    if (!trigger) return { ...none, status: 'unanswerable', error: `agent ${agent().name} has no trigger` }
    const controller = new AbortController()
    const turn = this.#turn({ turn_id, head, view, answers_of }, events, controller.signal)
    const before = structuredClone(view.saw.scratch) as Record<string, unknown>
    let ending: TurnEnding
    try {
      const timeout_ms = settings().turn_timeout_ms
      const work = async () => resultOf(trigger, turn, await dryDeps(this.#parts, turn))
      const result = await withDeadline(work, { timeout_ms, what: 'the dry turn' })
      ending = endingWithCalls(endingOf(result, turn.seen.context.scratch), turn.failed_calls, settings().on_tool_error)
    } catch (error) {
      if (isPlatformFault(error)) throw error
      ending = endingOfError(error, { now: now(), model: turn.model })
    }
    controller.abort(new Error('the dry turn has ended'))
    if (ending.status === 'waiting' && ending.fault) {
      const { fault } = ending
      unit((unit) => outage.failed(unit, fault))
    } else if (turn.model.answered && outage.askAt !== null) unit((unit) => outage.answered(unit))
    const { acts, did, inputs, outputs, failed_reads, usage, warnings, shown, repeats } = turn
    const seen = turn.seen.context.events
    const askers = this.#askersIn(view, { considered, shown: seen })
    const answer = {
      acts,
      did,
      seen,
      askers,
      repeats,
      inputs,
      outputs,
      failed_reads,
      usage,
      warnings,
      shown,
      duration_ms: now() - started,
      until: null,
      result: ending.result,
    }
    if (turn.refused.length > 0)
      return { ...answer, status: 'unanswerable', error: `the trigger used ${[...new Set(turn.refused)].join(', ')}, which may act` }
    const error = ending.error && this.#hidden(ending.error, head)
    if (ending.status === 'waiting') return { ...answer, status: 'waiting', error, until: outage.askAt }
    if (ending.status === 'refused') return { ...answer, status: 'refused', error, until: ending.until ?? null }
    if (isDecided(ending)) acts.push(...scratchActs(scratchChanges(before, turn.seen.context.scratch), settings()))
    return { ...answer, status: ending.status, error }
  }

  #partOf(hash: string): unknown {
    const { [hash]: part } = this.#parts.log_parts.read([hash])
    if (part === undefined) throw new Error('the request is not kept any more')
    return part
  }

  #turn({ turn_id, head, view, answers_of }: Required<DryTurnRequest>, events: Map<number, Event>, signal: AbortSignal): DryTurn {
    const { scope, now } = this.#parts
    const { saw, considered, decided_at } = view
    const since = now()
    // Its clock runs from the decision, so that spans of time are as they were.
    const clock = () => decided_at + (now() - since)
    const at = (places: DryView['considered']) => placesIn(places).flatMap((seq) => structuredClone(events.get(seq)) ?? [])
    const { created_at, last_action_at } = saw
    const scratch = structuredClone(saw.scratch) as Record<string, unknown>
    return {
      turn_id,
      head,
      earlier_turns: [],
      claimed: at(considered).map((event) => ({ event })),
      signal,
      usage: noUsage(),
      acts: [],
      did: [],
      answers_of,
      answered: new Set(),
      repeats: new Set(),
      refused: [],
      decided_at,
      now: clock,
      seen: { context: new DecisionContext({ scope, events: at(saw.seqs), scratch, created_at, last_action_at, now: clock }) },
      ...nothingYet(),
    }
  }

  /** The events by their places, or why they cannot be read. */
  async #eventsOf({ saw, considered }: DryView): Promise<Map<number, Event> | string> {
    const seqs = [...new Set([...placesIn(saw.seqs), ...placesIn(considered)])]
    const found = await eventsAt(this.#parts, seqs)
    const missing = seqs.find((seq) => !found.has(seq))
    if (missing !== undefined) return `the event at place ${missing} of the inbox is no longer kept`
    return new Map(Array.from(found, ([seq, text]) => [seq, JSON.parse(text) as Event]))
  }

  #hidden(error: string, head: EntryHead): string {
    const { hide, log } = this.#parts
    return log.masks.of(head.trace_id).text(hide(messageOf(error)))
  }
}
