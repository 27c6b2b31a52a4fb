import { AHEAD_MS } from '../base/time.ts'
import type { Action } from '../contract/action.ts'
import type { ReflexReference } from '../contract/reflex.ts'
import type { RecentAction } from './reflex-context.ts'

/** `at` is ISO 8601, as reflexes are shown it. `version`: unknown in a replay. */
export type FireRecord = { at: string; event_id: string; version?: number; action: Action; overruled?: true }
/** `minute` counts from the epoch. */
export type Pace = { last_at: number | null; minute: number; fired: number }
export type HistoryRecord = { fires: FireRecord[] } & Pace

const RECENT = 10
const MOST_ARTIFACTS_PER_MINUTE = 5
const DEFAULT_RATE = 6000
/** A longer action is kept without its content, or ten of them would fill the context. */
const LONGEST = 1000

/** The latest actions of one reflex in one scope, for cooldowns, rates and its context. */
export class ReflexHistory {
  #record: HistoryRecord

  constructor(record: HistoryRecord = { fires: [], last_at: null, minute: 0, fired: 0 }) {
    this.#record = record
  }

  get record(): HistoryRecord {
    return this.#record
  }

  get pace(): Pace {
    const { last_at, minute, fired } = this.#record
    return { last_at, minute, fired }
  }

  copy(): ReflexHistory {
    return new ReflexHistory(this.#record)
  }

  recent(now: number): RecentAction[] {
    const ago = (at: string) => {
      const ago_ms = now - Date.parse(at)
      // An action of a clock that was ahead holds nothing up until then.
      return (ago_ms < -AHEAD_MS ? -ago_ms : Math.max(0, ago_ms)) / 1000
    }
    return this.#record.fires.map(({ at, event_id, action }) => ({ at, seconds_ago: ago(at), event_id, action }))
  }

  /** Refuses a reflex that keeps writing reflexes. */
  tooManyWritten({ action_type: asked }: Action, now: number): { ok: false; detail: string } | null {
    if (asked !== 'write_artifact') return null
    const written = this.#record.fires.filter(
      ({ at, action }) => action.action_type === asked && Math.abs(now - Date.parse(at)) < 60_000,
    ).length
    return written < MOST_ARTIFACTS_PER_MINUTE ? null : { ok: false, detail: `it wrote ${written} artifacts within a minute` }
  }

  heldBack({ cooldown_s, rate = DEFAULT_RATE }: ReflexReference, now: number): 'cooldown' | 'rate' | null {
    const { last_at, minute, fired } = this.#record
    if (cooldown_s !== undefined && last_at !== null && Math.abs(now - last_at) < cooldown_s * 1000) return 'cooldown'
    return minute === Math.floor(now / 60_000) && fired >= rate ? 'rate' : null
  }

  fired({ at, event_id, version, action }: Omit<FireRecord, 'at' | 'overruled'> & { at: number }): void {
    const minute = Math.floor(at / 60_000)
    const fired = (this.#record.minute === minute ? this.#record.fired : 0) + 1
    const fires = [
      ...this.#record.fires,
      { at: new Date(at).toISOString(), event_id, action: brief(action), ...(version !== undefined && { version }) },
    ].slice(-RECENT)
    this.#record = { fires, last_at: at, minute, fired }
  }

  /** Marks the latest action that fits, once, and returns it; null if none fits. */
  overrule(fits: (action: Action, event_id: string) => boolean): FireRecord | null {
    const { fires } = this.#record
    const fire = fires.findLast(({ overruled, action, event_id }) => !overruled && fits(action, event_id))
    if (!fire) return null
    this.#record = { ...this.#record, fires: fires.map((one) => (one === fire ? { ...one, overruled: true } : one)) }
    return fire
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
    case 'sequence': {
      const { branches: _branches, ...rest } = action
      return { ...rest, acts: [] }
    }
    case 'ignore':
    case 'cancel_turn':
    case 'escalate':
      break
  }
  return action
}
