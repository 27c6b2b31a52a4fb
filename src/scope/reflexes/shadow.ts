import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Action } from '../../contract/action.ts'
import type { Decision, ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import { agreedIn } from '../../reflexes/agreement.ts'
import { countRun } from '../../reflexes/metrics.ts'
import { countComparison, promotable, refuted, riskOf, countTrial, demotionOf } from '../../reflexes/promotion.ts'
import type { Step } from '../../reflexes/decide.ts'
import type { Stored } from '../inbox/event-row.ts'
import { childHead, eventHead, headOf, scopeHead } from '../log/spans.ts'
import type { Toolbox } from '../../agent/toolbox.ts'
import type { ReflexVersions } from './versions.ts'
import type { Records } from './stats.ts'
import type { ReflexSync } from './sync.ts'
import type { Unit } from '../storage/unit.ts'
import type { Ground } from '../storage/wiring.ts'

type Parts = Pick<Ground, 'database' | 'records' | 'counters' | 'agent' | 'log'> & {
  programs: ReflexVersions
  toolbox: Toolbox
  reflex_sync: Pick<ReflexSync, 'moved'>
}
type Undoing = { tool: string; undoes: NonNullable<ToolDefinition['undoes']> }
type Comparison = { version: ReflexVersion; action: Action; event_type: string; decision: Decision; seen: Map<string, number> }
type Trial = { seq: number; reflex_id: string; version: number; action: string; event_type: string }

/** Promotes and demotes reflexes by comparing their actions, real or in shadow, with decisions. */
export class Proving {
  readonly #parts: Parts
  #waiting: number

  constructor(parts: Parts) {
    this.#parts = parts
    this.#waiting = parts.database.first<{ n: number }>('SELECT count(*) AS n FROM trials')?.n ?? 0
  }

  /** Counts a run. `refused` actions are those this scope does not allow. */
  ran(unit: Unit, { version, run, refused }: NonNullable<Step['ran']>): void {
    const known = this.#parts.records.of(version)
    const { metrics } = known
    countRun(metrics, refused ? { ...run, reason: 'invalid_action' } : run)
    known.trial = countTrial(known.trial, run)
    if (version.state === 'shadow') {
      metrics.shadow.runs += 1
      if (run.reason === 'fired' && !refused) metrics.shadow.fired += 1
    }
    this.#judge(unit, version)
  }

  /** Counts a run that a cooldown or a rate limit suppressed. */
  heldBack(of: { id: string; version: number }): void {
    const version = this.#parts.programs.find(of)
    if (version) this.#parts.records.of(version).metrics.held_back += 1
  }

  /** Counts an ended action. `saves`: it spared a turn. */
  acted(unit: Unit, of: { id: string; version: number }, { ok, saves }: { ok: boolean; saves: boolean }): void {
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
  watch(
    unit: Unit,
    { seq, event }: Stored,
    trials: readonly { version: ReflexVersion; action: Action }[],
    decision: Decision | null,
  ): void {
    for (const { version, action } of trials) {
      // The author may have known this event, so agreement proves nothing.
      if (this.#acceptedBefore(seq, version.created_at)) continue
      if (decision) this.#compare(unit, { version, action, event_type: event.type, decision, seen: new Map() }, headOf(event))
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
  decided(unit: Unit, events: readonly { seq: number; scope: string; id: string; trace_id: string }[], decision: Decision | null): void {
    if (this.#waiting === 0 || events.length === 0) return
    const { programs } = this.#parts
    const rows = unit.allOf<Trial>(
      events.map(({ seq }) => seq),
      `DELETE FROM trials WHERE seq IN (SELECT value FROM json_each(?1))
       RETURNING seq, reflex_id, version, action, (SELECT type FROM events WHERE events.seq = trials.seq) AS event_type`,
    )
    this.#waiting -= rows.length
    const seen = new Map<string, number>()
    const bySeq = new Map(events.map((event) => [event.seq, event]))
    for (const row of rows) {
      const version = programs.find({ id: row.reflex_id, version: row.version })
      const event = bySeq.get(row.seq)
      if (!version || !event) continue
      const { event_type } = row
      if (decision) this.#compare(unit, { version, action: JSON.parse(row.action) as Action, event_type, decision, seen }, eventHead(event))
      else this.#parts.records.of(version).metrics.shadow.undecided += 1
    }
  }

  /**
   * Records that a later turn or an operator overruled a reflex. Returns false if the reflex is not
   * in the chain or has no recent action left to overrule.
   */
  overruled(
    unit: Unit,
    reflex_id: string,
    turn_id: string | null,
    reason: string,
    fits: (action: Action) => boolean = () => true,
  ): boolean {
    const { programs, records } = this.#parts
    const version = programs.links.find(({ acting }) => acting?.id === reflex_id)?.acting
    if (!version || !records.overrule(version.id, fits)) return false
    const { metrics, trial } = records.of(version)
    metrics.overruled += 1
    trial.overruled += 1
    unit.log({ ...scopeHead(), kind: 'reflex-overruled', reflex_id, version: version.version, turn_id, reason })
    this.#judge(unit, version)
    return true
  }

  /** Overrules the latest actions that a turn's or operator's tool call undoes. */
  undone(unit: Unit, { tool, undoes }: Undoing, input: unknown, { turn_id, who }: { turn_id: string | null; who: string }): void {
    const fieldOf = (given: unknown, field: string): string | undefined =>
      JSON.stringify((given as Record<string, unknown> | null)?.[field])
    const fits = (action: Action): boolean =>
      action.action_type === 'call_tool' &&
      action.tool === undoes.tool &&
      undoes.match.every((field) => fieldOf(input, field) !== undefined && fieldOf(action.args, field) === fieldOf(input, field))
    for (const { acting } of this.#parts.programs.links) {
      if (acting) this.overruled(unit, acting.id, turn_id, `${who} called ${tool}, which undoes its ${undoes.tool}`, fits)
    }
  }

  /** A new event has no row yet. */
  #acceptedBefore(seq: number, at: number): boolean {
    const row = this.#parts.database.first<{ accepted_at: number }>('SELECT accepted_at FROM events WHERE seq = ?', seq)
    return row !== undefined && row.accepted_at < at
  }

  #compare(unit: Unit, { version, action, event_type, decision, seen }: Comparison, head: ReturnType<typeof eventHead>): void {
    const { toolbox, records, log } = this.#parts
    const { agreed, keyed } = agreedIn({ version, action, decision, seen }, toolbox.keyOf)
    const { metrics } = records.of(version)
    metrics.shadow[agreed === null ? 'undecided' : agreed ? 'agreed' : 'disagreed'] += 1
    if (agreed !== null) {
      const undoable = action.action_type === 'call_tool' && this.#isUndoable(action.tool)
      metrics.strata = countComparison(metrics.strata, { event_type, risk: riskOf(action, { keyed, undoable }), agreed })
    }
    unit.log({
      ...childHead(head),
      kind: 'reflex-compared',
      reflex_id: version.id,
      version: version.version,
      action: log.clean(action) as Action,
      decision: log.clean(decision) as Decision,
      agreed,
    })
    this.#promote(unit, version)
  }

  #isUndoable(tool: string): boolean {
    return Object.values(this.#parts.toolbox.all).some(({ undoes }) => undoes?.tool === tool)
  }

  #judge(unit: Unit, version: ReflexVersion): void {
    const demotion = demotionOf(this.#parts.records.of(version).trial, version.state)
    if (demotion) this.#demote(unit, version, demotion)
  }

  /**
   * Demotes a version, to shadow or out of use; a version that this scope does not govern is
   * suspended here only.
   */
  #demote(unit: Unit, version: ReflexVersion, { to, reason }: { to: ReflexState; reason: string }): void {
    const { programs, records } = this.#parts
    if (version.state === 'retired' || version.state === to) return
    records.restartTrial(version)
    if (programs.governs(version)) return this.#move(unit, version, to, reason)
    programs.suspend(unit, version, reason)
    this.#log(unit, version, 'suspended', reason)
  }

  /**
   * Promotes an agent's version whose shadow decisions match; a person's version waits for a
   * person.
   */
  #promote(unit: Unit, compared: ReflexVersion): void {
    const { programs, records } = this.#parts
    // An earlier comparison of the same decision may have changed its state.
    const version = programs.find(compared) ?? compared
    if (version.state !== 'shadow' || version.provenance.scope === null || !programs.governs(version)) return
    // Only a person can promote a demoted version.
    if (version.state_reason !== null) return
    const { metrics } = records.of(version)
    const { agreed, disagreed } = metrics.shadow
    const shown = `${agreed} of ${agreed + disagreed} compared fires in shadow agreed`
    if (refuted(metrics.strata)) {
      // A reason ends the trial: further agreement does not promote this version.
      this.#move(unit, version, 'shadow', `${shown}: too few to activate it`)
    } else if (promotable(metrics).ok) this.#move(unit, version, 'active', shown)
  }

  #move(unit: Unit, version: ReflexVersion, to: ReflexState, reason: string): void {
    const { programs, reflex_sync } = this.#parts
    programs.move(version, to, reason)
    reflex_sync.moved(unit, version, to, reason)
    this.#log(unit, version, to, reason)
  }

  #log(unit: Unit, { id, version, state }: ReflexVersion, to: ReflexState | 'suspended', reason: string): void {
    unit.log({ ...scopeHead(), kind: 'reflex-moved', reflex_id: id, version, from: state, to, reason })
  }

  /** Counts the average cost of a turn as saved, since no turn sees the event. */
  #save(metrics: ReturnType<Records['of']>['metrics']): void {
    const { agent, counters } = this.#parts
    if (agent().trigger === null) return
    const { turns, model_calls, input_tokens, output_tokens, cost_usd } = counters.counts
    const share = (sum: number) => (turns === 0 ? 0 : sum / turns)
    metrics.model_calls_saved += turns === 0 ? 1 : share(model_calls)
    metrics.tokens_saved += share(input_tokens + output_tokens)
    metrics.cost_saved_usd += share(cost_usd)
  }
}
