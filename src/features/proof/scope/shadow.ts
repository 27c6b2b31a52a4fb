import { actNameOf } from '../../../contract/act-name.ts'
import { actionsIn, toolCallOf, type Action, type ActionCall } from '../../../contract/action.ts'
import { actsOf, type Decision, type ReflexVersion, type ComparisonTerms, type Words } from '../../../contract/reflex.ts'
import type { Event } from '../../../core/event.ts'
import { signsOf } from '../../../evidence/branches.ts'
import { type EventTraits, traitsOf } from '../../../evidence/novelty.ts'
import { shapeOf } from '../../../evidence/shape.ts'
import { comparedWords, wordsFor } from '../../../contract/words.ts'
import { DONE_BY_REFLEX } from '../../../engine/turns/dry/dry-turn.ts'
import { agreedIn, ownersOfActs } from '../../../reflexes/agreement.ts'
import { countRun } from '../../../reflexes/metrics.ts'
import { countTrial, demotionOf } from '../../../reflexes/promotion.ts'
import { historyOf, type ReflexStep } from '../../../reflexes/decide.ts'
import { actOwners, isOfSequence, sequenceKey } from '../../../engine/effects/effect-journal.ts'
import type { Applied, ScopeFeature, Undoing } from '../../../engine/feature.ts'
import type { Stored } from '../../../engine/inbox/inbox.ts'
import { eventHead, headOf, scopeHead } from '../../../engine/log/spans.ts'
import { childHead } from '../../../traces/ids.ts'
import type { Toolbox } from '../../../agent/toolbox.ts'
import type { ReflexVersions } from '../../../engine/reflexes/versions.ts'
import type { Records } from '../../../engine/reflexes/stats.ts'
import type { Promotions } from './promotions.ts'
import { riskIn } from '../../../agent/risk.ts'
import { savingsOf } from '../../../engine/turns/model-access.ts'
import type { Disputing } from './disputes.ts'
import type { Judgements, JudgedAct } from './judgements.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Turn } from '../../../engine/turns/turn.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'

type ShadowTrialsParts = Pick<Lanes, 'database' | 'records' | 'features' | 'agent' | 'log' | 'settings' | 'effects'> & {
  programs: ReflexVersions
  toolbox: Toolbox
  promotions: Promotions
  judgements: Judgements
  dispute: Disputing
}
type Overruling = { turn_id: string | null; reason: string } & Partial<Pick<JudgedAct, 'judged_by' | 'by'>>
/** `teaches`: the slow path decided, or a version that a person activated. */
type Comparison = {
  version: ReflexVersion
  action: Action
  seq: number
  event_type: string
  shape: string | undefined
  traits: EventTraits | undefined
  signs: string[] | undefined
  decision: Decision
  teaches: boolean
  seen: Map<string, number>
  terms: ComparisonTerms
  /** The turn that decided about this event alone. */
  turn?: DecidingTurn | undefined
}
type Disputed = Pick<Comparison, 'version' | 'action' | 'seq' | 'event_type' | 'signs' | 'terms' | 'turn'>
type MadeDecision = Partial<Pick<Turn, 'claimed' | 'inputs' | 'outputs' | 'failed_reads' | 'seen'>> & DecidingTurn
type DecidingTurn = Partial<Pick<Turn, 'turn_id' | 'started'>>
type Trial = { seq: number; reflex_id: string; version: number; action: string; event_type: string; payload: string | null }

/** Compares shadow actions with decisions, and demotes versions whose actions or runs fail. */
export class ShadowTrials implements ScopeFeature {
  readonly name = 'proof'
  readonly #parts: ShadowTrialsParts
  #waiting: number

  constructor(parts: ShadowTrialsParts) {
    this.#parts = parts
    this.#waiting = parts.database.first<{ n: number }>('SELECT count(*) AS n FROM trials')?.n ?? 0
  }

  ran(unit: Unit, { id, version, state, ran, fire, passed }: ReflexStep, { one }: Applied['decision']): void {
    if (ran) this.#count(unit, ran, state)
    const on = { at: unit.now, event_id: one.event.id }
    if (fire && state) this.#parts.records.fired(historyOf(fire.version, state), fire, on)
    if (version !== null && (passed?.reason === 'cooldown' || passed?.reason === 'rate')) this.#heldBack({ id, version })
  }

  /** Compares the trials on an event with the reflex that acted, or has them wait for a turn. */
  applied(unit: Unit, { decision: { one, acted, steps }, row, asks }: Applied): void {
    const trials = steps.flatMap(({ state, fire }) => (state === 'shadow' && fire ? [fire] : []))
    if (trials.length === 0) return
    const acts = acted && acted.action.action_type !== 'escalate' ? actsOf(acted.action, this.#parts.toolbox.keyOf) : null
    // A reflex that acts by proof teaches nobody: its own mistakes would prove others.
    this.#watch(unit, one, trials, { decision: acts && { by: 'reflex', acts }, teaches: !acted?.version.by_proof })
    const { event, seq } = one
    const waits = asks || (row.in_context && row.status === 'pending')
    if (!acts && !waits) this.eventsDecided(unit, [{ seq, scope: event.scope, id: event.id, trace_id: event.meta.trace_id }], null)
  }

  /** Counts a run. `refused` actions are those this scope does not allow. */
  #count(unit: Unit, { version, run, refused }: NonNullable<ReflexStep['ran']>, state: ReflexStep['state']): void {
    const known = this.#parts.records.of(version)
    const { metrics } = known
    countRun(metrics, refused ? { ...run, reason: 'invalid_action' } : run)
    known.trial = countTrial(known.trial, run)
    if (state === 'shadow') {
      metrics.shadow.runs += 1
      if (run.reason === 'fired' && !refused) metrics.shadow.fired += 1
    }
    if (version.by_proof) this.#parts.promotions.expire(unit, version)
    this.#judge(unit, version)
  }

  /** Counts a run that a cooldown or a rate limit suppressed. */
  #heldBack(of: { id: string; version: number }): void {
    const version = this.#parts.programs.find(of)
    if (version) this.#parts.records.of(version).metrics.held_back += 1
  }

  watches(): boolean {
    return this.#parts.promotions.watches
  }

  taught(unit: Unit, shown: Turn['shown']): void {
    this.#parts.promotions.taught(unit, shown)
  }

  /** Counts an ended action. `saves`: it spared a turn. */
  actionEnded(unit: Unit, of: { id: string; version: number }, { ok, saves }: { ok: boolean; saves: boolean }): void {
    const version = this.#parts.programs.find(of)
    // The version has left the chain.
    if (!version) return
    const { metrics, trial } = this.#parts.records.of(version)
    metrics.acted += 1
    trial.acted += 1
    if (!ok) {
      metrics.failed += 1
      trial.failed += 1
    } else if (saves) this.#save(metrics)
    this.#judge(unit, version)
  }

  /** Compares shadow actions with a reflex's decision now, or with the turn's later. */
  #watch(
    unit: Unit,
    { seq, event }: Stored,
    trials: readonly { version: ReflexVersion; action: Action }[],
    { decision, teaches }: { decision: Decision | null; teaches: boolean },
  ): void {
    for (const { version, action } of trials) {
      // The author may have known this event, so agreement proves nothing.
      if (this.#acceptedBefore(seq, version.created_at)) continue
      if (decision)
        this.#compare(
          unit,
          {
            version,
            action,
            seq,
            event_type: event.type,
            ...this.#factsOf(event, action),
            decision,
            teaches,
            seen: new Map(),
            terms: { alone: true, words: this.#wordsFor(action, event) },
          },
          headOf(event),
        )
      else {
        unit.all(
          'INSERT OR REPLACE INTO trials (seq, reflex_id, version, action) VALUES (?, ?, ?, ?)',
          seq,
          version.id,
          version.version,
          JSON.stringify(action),
        )
        this.#waiting += 1
      }
    }
  }

  /** Compares shadow actions with a turn's decision; null if no turn will decide. */
  eventsDecided(
    unit: Unit,
    events: readonly { seq: number; scope: string; id: string; trace_id: string }[],
    decision: Decision | null,
    { claimed = [], inputs = {}, outputs = {}, failed_reads = [], seen: shown, ...turn }: MadeDecision = {},
  ): void {
    if (this.#waiting === 0 || events.length === 0) return
    const { programs } = this.#parts
    const rows = unit.allOf<Trial>(
      events.map(({ seq }) => seq),
      `DELETE FROM trials WHERE seq IN (SELECT value FROM json_each(?1))
       RETURNING seq, reflex_id, version, action, (SELECT type FROM events WHERE events.seq = trials.seq) AS event_type,
         (SELECT payload FROM events WHERE events.seq = trials.seq) AS payload`,
    )
    this.#waiting -= rows.length
    const seen = new Map<string, number>()
    const bySeq = new Map(events.map((event) => [event.seq, event]))
    const own = claimed.map((one) => one.event)
    const considered = () => ({ events: [...own, ...doneByReflexes(unit, own, shown?.context.events ?? [])], inputs })
    let ownerOf: ReturnType<typeof ownersOfActs> | undefined
    const hasLeft = leftBy(rows, events.length)
    for (const row of rows) {
      const version = programs.find({ id: row.reflex_id, version: row.version })
      const event = bySeq.get(row.seq)
      if (!version || !event) continue
      if (decision) {
        const taught = row.payload === null ? null : (JSON.parse(row.payload) as Event)
        const action = JSON.parse(row.action) as Action
        const owner = action.action_type === 'ignore' ? (ownerOf ??= ownersOfActs(decision, considered()))(event.id) : 'own'
        const terms = {
          alone: events.length === 1,
          words: this.#wordsFor(action, taught ?? {}),
          outputs,
          ...(failed_reads.length > 0 && { failed_reads }),
          ...(owner === 'others' && { others: true }),
          ...(owner === 'words' && hasLeft(row) && { unclear: true }),
        }
        this.#compare(
          unit,
          {
            ...row,
            version,
            action,
            ...this.#factsOf(taught, action),
            decision,
            teaches: true,
            seen,
            terms,
            turn: events.length === 1 ? turn : undefined,
          },
          eventHead(event),
        )
      } else this.#parts.records.of(version).metrics.shadow.undecided += 1
    }
  }

  /**
   * Records that a later turn or an operator overruled a reflex. Returns false if the reflex is not
   * in the chain or has no recent action left to overrule.
   */
  overruled(
    unit: Unit,
    reflex_id: string,
    { turn_id, reason, judged_by = 'overruled', by = null }: Overruling,
    fits: (action: Action, event_id: string) => boolean = () => true,
  ): boolean {
    const { programs, records, judgements } = this.#parts
    const acting = programs.links.find((link) => link.acting?.id === reflex_id)?.acting
    const fire = acting ? records.overrule(reflex_id, fits) : null
    if (!acting || !fire) return false
    // An earlier version may have done it, which the one that acts now does not answer for.
    const { event_id, version: number = acting.version } = fire
    unit.log({ ...scopeHead(), event_ids: [event_id], kind: 'reflex-overruled', reflex_id, version: number, turn_id, reason })
    const version = programs.find({ id: reflex_id, version: number })
    if (!version) return true
    const { metrics, trial } = records.of(version)
    metrics.overruled += 1
    trial.overruled += 1
    judgements.overruled(unit, version, event_id, { judged_by, by, reason })
    this.#judge(unit, version)
    return true
  }

  /** Overrules the latest actions that a turn's or operator's tool call undoes. */
  undone(unit: Unit, { tool, undoes }: Undoing, input: unknown, { turn_id, who }: { turn_id: string | null; who: string }): void {
    const fieldOf = (given: unknown, field: string): string | undefined =>
      JSON.stringify((given as Record<string, unknown> | null)?.[field])
    const fits = (action: Action, event_id: string): boolean =>
      this.#callsOf(action, event_id).some(
        ({ tool: called, args }) =>
          called === undoes.tool &&
          undoes.match.every((field) => fieldOf(input, field) !== undefined && fieldOf(args, field) === fieldOf(input, field)),
      )
    const reason = `${who} called ${tool}, which undoes its ${undoes.tool}`
    const acting = this.#parts.programs.links.flatMap((link) => link.acting?.id ?? [])
    const overruled = acting.filter((id) => this.overruled(unit, id, { turn_id, reason }, fits))
    if (overruled.length === 0) this.#parts.judgements.overruledLater(unit, { acting, turn_id, reason }, fits)
  }

  /** The calls of an action. Only the journal knows which branch of a sequence was taken. */
  #callsOf(action: Action, event_id: string): ActionCall[] {
    if (action.action_type !== 'sequence' || !action.branches) return actionsIn(action).flatMap((one) => toolCallOf(one) ?? [])
    const { database, effects, log } = this.#parts
    const row = database.first<{ log_seq: number | null; turns: string | null }>(
      `SELECT outcome ->> '$.log_seq' AS log_seq, turns FROM events WHERE id = ?`,
      event_id,
    )
    const ended = row?.log_seq == null ? [] : actOwners(sequenceKey(row.log_seq))
    const failed = (JSON.parse(row?.turns ?? '[]') as string[]).filter(isOfSequence)
    return effects.journal.doneBy([...ended, ...failed]).flatMap(({ tool, log_seq }): ActionCall[] => {
      const started = log_seq === null ? null : log.entry(log_seq)
      return tool !== null && started?.kind === 'effect-started' ? [{ tool, args: started.input }] : []
    })
  }

  /** Undefined where nothing is learned: no shapes are guarded there. */
  /** The facts of an event that its comparison keeps; none once retention has deleted the event. */
  #factsOf(event: Event | null, action: Action): Pick<Comparison, 'shape' | 'traits' | 'signs'> {
    if (!event) return { shape: undefined, traits: undefined, signs: undefined }
    const shape = this.#parts.settings().learning.mode === 'off' ? undefined : shapeOf(event)
    return { shape, traits: traitsOf(event), signs: signsOf(event, action, this.#parts.log) }
  }

  #wordsFor(action: Action, event: Pick<Partial<Event>, 'meta'>): Words {
    return wordsFor(action, this.#parts.settings().learning.replies, event)
  }

  /** A new event has no row yet. */
  #acceptedBefore(seq: number, at: number): boolean {
    const row = this.#parts.database.first<{ accepted_at: number }>('SELECT accepted_at FROM events WHERE seq = ?', seq)
    return row !== undefined && row.accepted_at < at
  }

  #compare(
    unit: Unit,
    { version, action, seq, event_type, shape, traits, signs, decision, teaches, seen, terms, turn }: Comparison,
    head: ReturnType<typeof eventHead>,
  ): void {
    const { toolbox, records, log, promotions, judgements } = this.#parts
    const { agreed } = agreedIn({ version, action, decision, seen, ...terms }, toolbox.keyOf)
    const { metrics } = records.of(version)
    metrics.shadow[agreed === null ? 'undecided' : agreed ? 'agreed' : 'disagreed'] += 1
    const span = childHead(head)
    const log_seq = unit.log({
      ...span,
      kind: 'reflex-compared',
      reflex_id: version.id,
      version: version.version,
      action: log.clean(action) as Action,
      decision: log.clean(decision) as Decision,
      agreed,
      ...(action.action_type === 'sequence' && { terms: log.clean(terms) as ComparisonTerms }),
      ...(terms.others && { terms: { others: true } }),
      ...(terms.unclear && { terms: { unclear: true } }),
    })
    if (agreed === null || !teaches) return
    const words = comparedWords(action, this.#parts.settings().learning.replies, log_seq)
    const act = { event_type, risk: riskIn(toolbox, action), act: actNameOf(action) }
    const compared = { ...act, agreed, seq, shape, traits, signs, words, head: span }
    const isProven = judgements.isProven(version, { event_type, own: action })
    // Asked before it counts, which may refute the act.
    const disputes = !agreed && turn !== undefined && judgements.counts(version, { event_type, own: action, ...(signs && { signs }) })
    if (isProven) judgements.compared(unit, version, { ...compared, log_seq })
    else promotions.compared(unit, version, compared)
    if (disputes) this.#dispute(unit, { version, action, seq, event_type, signs, terms, turn }, { isProven, head: span })
  }

  /** Has the turn asked again, whose decision was another one. */
  #dispute(
    unit: Unit,
    { version: { id: reflex_id, version }, action: own, seq, event_type, signs, terms: { words }, turn }: Disputed,
    { isProven, head }: { isProven: boolean; head: EntryHead },
  ): void {
    const { turn_id, started } = turn ?? {}
    if (turn_id === undefined || started === undefined) return
    const { considered, since = unit.now, saw } = started
    const { seqs, scratch, created_at = since, last_action_at = null } = saw
    const view = { considered, saw: { seqs, scratch, created_at, last_action_at }, decided_at: since }
    const of = isProven ? 'audit' : 'comparison'
    const disputed = { reflex_id, version, event_type, seq, own, of, view, head, answers_of: [turn_id] } as const
    this.#parts.dispute(unit, { ...disputed, ...(words && { words }), ...(signs && { signs }) })
  }

  /**
   * Demotes a version, to shadow or out of use; a version that this scope does not govern is
   * suspended here only.
   */
  #judge(unit: Unit, version: ReflexVersion): void {
    const { programs, records, promotions } = this.#parts
    const demotion = demotionOf(records.of(version).trial, version.state)
    if (!demotion || version.state === 'retired' || version.state === demotion.to) return
    const { to, reason } = demotion
    records.restartTrial(version)
    if (programs.governs(version)) promotions.move(unit, version, { to, reason, by_proof: false })
    else promotions.suspend(unit, version, reason)
  }

  /** Counts the average cost of a turn as saved, since no turn sees the event. */
  #save(metrics: ReturnType<Records['of']>['metrics']): void {
    const { model_calls, tokens, cost_usd } = savingsOf(this.#parts)
    metrics.model_calls_saved += model_calls
    metrics.tokens_saved += tokens
    metrics.cost_saved_usd += cost_usd
  }
}

/**
 * The other events of a context for which a reflex has acted: a turn may do their acts again. Those
 * that turns have decided may have waited for the event that a turn is about.
 */
function doneByReflexes(unit: Unit, own: readonly Event[], shown: readonly Event[]): readonly Event[] {
  const others = shown.filter(({ id }) => own.every((one) => one.id !== id))
  if (others.length === 0) return []
  const sql = `SELECT id FROM events WHERE id IN (SELECT value FROM json_each(?1)) AND ${DONE_BY_REFLEX}`
  const done = new Set(
    unit
      .allOf<{ id: string }>(
        others.map(({ id }) => id),
        sql,
      )
      .map(({ id }) => id),
  )
  return others.filter(({ id }) => done.has(id))
}

/**
 * Tells whether a version would have left one of so many events to the turn, which its words may be
 * about. Of one that ignores all of them they certainly contradict it.
 */
function leftBy(rows: readonly Trial[], events: number): (of: Pick<Trial, 'reflex_id' | 'version'>) => boolean {
  const ignored = rows.filter(({ action }) => (JSON.parse(action) as Action).action_type === 'ignore')
  const counts = Map.groupBy(ignored, ({ reflex_id, version }) => `${reflex_id}@${version}`)
  return ({ reflex_id, version }) => (counts.get(`${reflex_id}@${version}`)?.length ?? 0) < events
}
