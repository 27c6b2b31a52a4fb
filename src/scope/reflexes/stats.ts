import type { Action } from '../../contract/action.ts'
import type { ReflexReference } from '../../contract/reflex.ts'
import type { ReflexMetrics } from '../../contract/reflex-metrics.ts'
import { emptyMetrics } from '../../reflexes/metrics.ts'
import type { RecentAction } from '../../reflexes/reflex-context.ts'
import type { Database, StateChange } from '../database.ts'

/** `at` as reflexes are shown it, at every event. */
type Fire = { at: string; event_id: string; action: Action; overruled?: true }
/** An action as its reflex is shown it later; a long one without its content, or ten of them would fill the context. */
const LONGEST = 1000
/** `minute` counts from the epoch. */
type History = { fires: Fire[]; last_at: number | null; minute: number; fired: number }
/** What a version did since it came into its state here; `limits` in a row. */
export type Trial = Pick<ReflexMetrics, 'runs' | 'passed' | 'acted' | 'failed' | 'overruled'> & { state: string; limits: number }
type Version = { metrics: ReflexMetrics; trial: Trial }

const RECENT = 10
const DEFAULT_RATE = 6000
const emptyTrial = (state: string): Trial => ({ ...pick(emptyMetrics()), state, limits: 0 })
const pick = ({ runs, passed, acted, failed, overruled }: ReflexMetrics) => ({ runs, passed, acted, failed, overruled })

/**
 * What reflexes have done here: their latest actions, for cooldowns, and their sums. Held in memory and written once per unit of work, in its transaction,
 * so that what is counted and what happened are kept together or not at all.
 */
export class Records {
  readonly #database: Database
  readonly #histories = new Map<string, History>()
  readonly #versions = new Map<string, Version>()
  readonly #changed = new Set<string>()
  #names: Set<string>
  /** Versions whose sums D1 may not have been told. */
  readonly untold: Set<string>

  constructor(database: Database) {
    this.#database = database
    this.#names = new Set(database.all<{ key: string }>(`SELECT key FROM state WHERE key GLOB 'metrics:*'`).map(({ key }) => key.slice(8)))
    this.untold = new Set(this.#names)
  }

  /** The newest last. `who` is the reflex's id, or `id@version` for one that only watches. */
  recent(who: string, now: number): RecentAction[] {
    return this.#history(who).fires.map(({ at, event_id, action }) => ({
      at,
      seconds_ago: Math.max(0, (now - Date.parse(at)) / 1000),
      event_id,
      action,
    }))
  }

  /** Starts a version's trial anew: it was demoted, or suspended. */
  tryAnew({ id, version, state }: { id: string; version: number; state: string }): void {
    this.of({ id, version, state }).trial = emptyTrial(state)
  }

  /** Marks the latest action that fits, once; false where there is none. */
  overrule(who: string, fits: (action: Action) => boolean): boolean {
    const history = this.#history(who)
    const fire = history.fires.findLast(({ overruled, action }) => !overruled && fits(action))
    if (!fire) return false
    fire.overruled = true
    this.#changed.add(`history:${who}`)
    return true
  }

  /** Actions of this type within the last minute, of those that are remembered. */
  lately(who: string, action_type: Action['action_type'], now: number): number {
    return this.#history(who).fires.filter(({ at, action }) => action.action_type === action_type && now - Date.parse(at) < 60_000).length
  }

  heldBack(who: string, { cooldown_s, rate = DEFAULT_RATE }: ReflexReference, now: number): 'cooldown' | 'rate' | null {
    const { last_at, minute, fired } = this.#history(who)
    if (cooldown_s !== undefined && last_at !== null && now - last_at < cooldown_s * 1000) return 'cooldown'
    return minute === Math.floor(now / 60_000) && fired >= rate ? 'rate' : null
  }

  fired(who: string, { at, event_id, action }: { at: number; event_id: string; action: Action }): void {
    const history = this.#history(who)
    const minute = Math.floor(at / 60_000)
    history.fired = (history.minute === minute ? history.fired : 0) + 1
    history.minute = minute
    history.last_at = at
    history.fires = [...history.fires, { at: new Date(at).toISOString(), event_id, action: brief(action) }].slice(-RECENT)
    this.#changed.add(`history:${who}`)
  }

  /** To be changed in place, within a unit of work. */
  of({ id, version, state }: { id: string; version: number; state: string }): Version {
    const name = `${id}@${version}`
    const known = this.#read(name)
    // A version that comes into a state starts there with a clean slate.
    if (known.trial.state !== state) known.trial = emptyTrial(state)
    this.#changed.add(`metrics:${name}`)
    this.untold.add(name)
    return known
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

  /** What is to be kept since it was last asked. */
  changes(): StateChange[] {
    const changes = Array.from(this.#changed, (key): StateChange => {
      const [kind = ''] = key.split(':', 1)
      const name = key.slice(kind.length + 1)
      return [key, kind === 'history' ? this.#histories.get(name) : this.#versions.get(name)]
    })
    this.#changed.clear()
    return changes
  }

  #history(who: string): History {
    let history = this.#histories.get(who)
    if (!history) {
      history = this.#database.read<History>(`history:${who}`, { fires: [], last_at: null, minute: 0, fired: 0 })
      this.#histories.set(who, history)
    }
    return history
  }

  #read(name: string): Version {
    let version = this.#versions.get(name)
    if (!version) {
      version = this.#database.read<Version>(`metrics:${name}`, { metrics: emptyMetrics(), trial: emptyTrial('') })
      this.#versions.set(name, version)
      this.#names.add(name)
    }
    return version
  }
}

function brief(action: Action): Action {
  if (JSON.stringify(action).length <= LONGEST) return action
  switch (action.action_type) {
    case 'call_tool':
      return { ...action, args: {} }
    case 'emit_event':
      return { ...action, event: { type: action.event.type } }
    case 'reply':
    case 'write_artifact':
      return { ...action, content: '' }
    case 'run_skill':
      return { ...action, inputs: {} }
    case 'invoke_artifact':
      return { ...action, args: [] }
    case 'set_scratch':
      return { ...action, value: null }
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return action
}
