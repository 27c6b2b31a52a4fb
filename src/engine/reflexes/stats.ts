import type { Action } from '../../contract/action.ts'
import type { ReflexMetrics } from '../../contract/reports/reflex-report.ts'
import { ReflexHistory, type FireRecord, type HistoryRecord } from '../../reflexes/history.ts'
import { emptyMetrics } from '../../reflexes/metrics.ts'
import type { AuditPace } from '../../contract/reports/reflex-report.ts'
import { emptyTrial, type Trial } from '../../reflexes/promotion.ts'
import type { Database, Noted, ScopeCounters, StateWrite } from '../../kernel/unit.ts'

/** `paces`: how its acts are audited, by kind; missing in older rows. */
type VersionRecord = { metrics: ReflexMetrics; trial: Trial; paces?: Record<string, AuditPace> }
type Named = { id: string; version: number; state: string }

const MOST_KINDS = 100
/** Kinds with counts of values, which a unit writes with each act of the version. */
const MOST_COUNTED = 8

/**
 * The history and metrics of reflexes, cached and written once per unit, in its transaction: with
 * the counts in its row of the log, and now and then to the table `state`.
 */
export class Records implements Noted {
  readonly #database: Database
  readonly #histories = new Map<string, ReflexHistory>()
  readonly #versions = new Map<string, VersionRecord>()
  readonly #changed = new Set<string>()
  /** Keys whose values the log has, and the table `state` lacks. */
  readonly #noted: Set<string>
  readonly #from_log: ReadonlyMap<string, unknown>
  #names: Set<string>
  /** The names of the histories that were there when the object woke. */
  readonly #who: readonly string[]
  /** Versions whose metrics D1 may lack. */
  readonly untold: Set<string>

  constructor(database: Database, counters: Pick<ScopeCounters, 'noted' | 'notes'>) {
    this.#database = database
    this.#from_log = counters.noted
    this.#noted = new Set(counters.noted.keys())
    counters.notes(this)
    const stored = database.all<{ key: string }>(`SELECT key FROM state WHERE key GLOB 'metrics:*' OR key GLOB 'history:*'`)
    const keys = [...stored.map(({ key }) => key), ...counters.noted.keys()]
    this.#names = new Set(keys.flatMap((key) => (key.startsWith('metrics:') ? [key.slice('metrics:'.length)] : [])))
    this.#who = keys.flatMap((key) => (key.startsWith('history:') ? [key.slice('history:'.length)] : []))
    this.untold = new Set(this.#names)
  }

  /** Restarts the trial of a demoted or suspended version. */
  restartTrial(version: Named): void {
    this.of(version).trial = emptyTrial(version.state)
  }

  /** Marks the latest action that fits as overruled, and returns it; null if none fits. */
  overrule(who: string, fits: (action: Action, event_id: string) => boolean): FireRecord | null {
    const overruled = this.history(who).overrule(fits)
    if (overruled !== null) this.#changed.add(`history:${who}`)
    return overruled
  }

  /** The ids of all reflexes that have acted. The histories of shadow mode name a version, too. */
  acted(): string[] {
    const all = new Set([...this.#who, ...this.#histories.keys()])
    return Array.from(all).filter((who) => !who.includes('@'))
  }

  fired(who: string, { version, action }: { version: { version: number }; action: Action }, on: { at: number; event_id: string }): void {
    this.history(who).fired({ ...on, version: version.version, action })
    this.#changed.add(`history:${who}`)
  }

  /** `who` is the reflex's id, or `id@version` for a version in shadow mode. */
  history(who: string): ReflexHistory {
    let history = this.#histories.get(who)
    if (!history) {
      history = new ReflexHistory(this.#stored<HistoryRecord | undefined>(`history:${who}`, undefined))
      this.#histories.set(who, history)
    }
    return history
  }

  /** Read-only. */
  trial({ id, version, state }: Named): Trial {
    const { trial } = this.#read(`${id}@${version}`)
    return trial.state === state ? trial : emptyTrial(state)
  }

  /** Change the result in place, within a unit. */
  of({ id, version, state }: Named): VersionRecord {
    const name = `${id}@${version}`
    const known = this.#read(name)
    // A new state starts a new trial.
    if (known.trial.state !== state) known.trial = emptyTrial(state)
    this.#changed.add(`metrics:${name}`)
    this.untold.add(name)
    return known
  }

  /** The audits of acts of this kind since that proof. Read-only. */
  pace({ id, version }: Pick<Named, 'id' | 'version'>, kind: string, proof: number): AuditPace {
    const known = this.#read(`${id}@${version}`).paces?.[kind]
    return known?.proof === proof ? known : { proof, acts: 0, unaudited: 0 }
  }

  /** Beyond some kinds those that were counted first are forgotten: they begin again. */
  paced(version: Named, kind: string, pace: AuditPace): void {
    const known = this.of(version)
    const { [kind]: _before, ...others } = known.paces ?? {}
    const kept = Object.entries(others).slice(1 - MOST_KINDS)
    const older = kept.slice(0, 1 - MOST_COUNTED).map(([name, { values: _values, ...own }]): [string, AuditPace] => [name, own])
    known.paces = Object.fromEntries([...older, ...kept.slice(1 - MOST_COUNTED), [kind, pace]])
  }

  /** Has the next act of each kind audited. */
  auditNext(version: Named): void {
    const known = this.of(version)
    known.paces = Object.fromEntries(Object.entries(known.paces ?? {}).map(([kind, pace]) => [kind, { ...pace, next: true as const }]))
  }

  all(): { reflex_id: string; version: number; metrics: ReflexMetrics }[] {
    return Array.from(this.#names)
      .sort()
      .map((name) => this.entry(name))
  }

  entry(name: string): { reflex_id: string; version: number; metrics: ReflexMetrics } {
    const at = name.lastIndexOf('@')
    return { reflex_id: name.slice(0, at), version: Number(name.slice(at + 1)), metrics: this.#read(name).metrics }
  }

  note(): StateWrite[] {
    const changes = Array.from(this.#changed, (key) => this.#written(key))
    for (const key of this.#changed) this.#noted.add(key)
    this.#changed.clear()
    return changes
  }

  save(): StateWrite[] {
    this.note()
    const all = Array.from(this.#noted, (key) => this.#written(key))
    this.#noted.clear()
    return all
  }

  #written(key: string): StateWrite {
    const [kind = ''] = key.split(':', 1)
    const name = key.slice(kind.length + 1)
    return [key, kind === 'history' ? this.history(name).record : this.#read(name)]
  }

  /** The value before a change of this process: it is read once, and then cached. */
  #stored<Value>(key: string, otherwise: Value): Value {
    return this.#from_log.has(key) ? (this.#from_log.get(key) as Value) : this.#database.read(key, otherwise)
  }

  #read(name: string): VersionRecord {
    let version = this.#versions.get(name)
    if (!version) {
      version = this.#stored<VersionRecord>(`metrics:${name}`, { metrics: emptyMetrics(), trial: emptyTrial('') })
      this.#versions.set(name, version)
      this.#names.add(name)
    }
    return version
  }
}
