import { warn } from '../../../base/warn.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import type { Unit } from '../../../kernel/unit.ts'

const KEY = 'one_url'
/** Turns before the first run of learning, and how many more there are before the next. */
const FIRST = 200
const GROWTH = 1.3
const MOST_SENDERS = 100

/** `next`: the number of turns at which a run starts. `senders`: the keys that teach. */
type Teaching = { next: number; senders: readonly string[] }

/**
 * Starts runs of learning as requests come, so that the first day does not end without one. Where
 * neither a person nor the agent says whether the scope learns, it does so in shadow mode, and the
 * keys of its callers teach it: nothing acts, nothing is asked again. The setting ends that.
 */
export class EarlyRuns {
  readonly #parts: Collaborators
  #kept: Teaching
  #starting = false

  constructor(parts: Collaborators) {
    this.#parts = parts
    this.#kept = parts.database.read<Teaching>(KEY, { next: FIRST, senders: [] })
  }

  get senders(): readonly string[] {
    return this.#kept.senders
  }

  /** Somebody has set how the scope learns, and so who teaches it. */
  wasSet(unit: Unit): void {
    if (this.senders.length > 0) this.#keep(unit, { ...this.#kept, senders: [] })
  }

  /** After a turn: starts a run that is due. Without it, the scheduled one comes within a day. */
  async decided(sender: string): Promise<void> {
    const { counters, scope } = this.#parts
    const { turns } = counters.counts
    if (this.#starting || turns < this.#kept.next) return
    this.#starting = true
    try {
      await this.#start(sender, turns)
    } catch (error) {
      warn({ message: 'failed to start a run of learning', scope, error })
    } finally {
      this.#starting = false
    }
  }

  async #start(sender: string, turns: number): Promise<void> {
    const { store, configuration, settings, unit, env, scope } = this.#parts
    const was_set = store.saysMode && this.senders.length === 0
    if (!store.saysMode) await configuration.change({ learning: { mode: 'shadow' } }, { by: 'one url' })
    const senders = was_set ? [] : [...new Set([sender, ...this.senders])].slice(0, MOST_SENDERS)
    unit((unit) => this.#keep(unit, { next: Math.ceil(turns * GROWTH), senders }))
    if (settings().learning.mode !== 'off') await env.LEARNER.getByName(scope).start({ scope, started_by: 'schedule', by: 'one url' })
  }

  #keep(unit: Unit, kept: Teaching): void {
    unit.write(KEY, kept)
    this.#kept = kept
  }
}
