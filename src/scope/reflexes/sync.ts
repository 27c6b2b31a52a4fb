import type { Env } from '../../env.ts'
import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings.ts'
import { reflexes as registry } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { setUses } from '../../store/artifact-feed.ts'
import { selectReferenced } from '../../store/artifacts.ts'
import { tellReflexMetrics } from '../../store/reflex-metrics.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import { withDeadline } from '../../base/deadline.ts'
import type { Programs } from './versions.ts'
import type { Records } from './stats.ts'
import { warn } from '../../base/warn.ts'
import type { Unit, UnitOfWork } from '../unit.ts'

/** How old the chain's programs may be when events come: a change is told at once, but the telling may be lost. */
const STALE_MS = 60_000
const RETRY_MS = 5000
const TIMEOUT_MS = 15_000
/** Events wait no longer for a chain that was never read. */
const READY_MS = 1000

type Move = { id: string; version: number; from: ReflexState; state: ReflexState; reason: string }
type Parts = {
  scope: string
  env: Env
  database: Database
  programs: Programs
  records: Records
  settings: () => Settings
  unit: UnitOfWork
  alarm: Alarm
  now: () => number
}

/**
 * Keeps the chain and D1 in step: reads what the chain's references stand for now, tells which reflexes are used here, what became of them, and their sums. Kept
 * state: the moves that D1 has not been told of. D1 may be away: the chain goes on with what it has, and this tries again.
 */
export class Upkeep {
  readonly #parts: Parts
  #moves: Move[]
  #read_at = 0
  #reading = 0
  #due: number | null = null
  /** What was told before the object slept may have been lost: told once more. */
  #uses_told = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#moves = parts.database.read<Move[]>('reflex_moves', [])
    if (this.#moves.length > 0) this.#due = parts.now()
    parts.alarm.source(() => this.#due)
  }

  moved(unit: Unit, { id, version, state: from }: ReflexVersion, state: ReflexState, reason: string): void {
    this.#moves.push({ id, version, from, state, reason })
    unit.write('reflex_moves', this.#moves)
    this.#due = unit.now
    unit.wakeBy(this.#due)
  }

  get due(): boolean {
    return this.#due !== null && this.#due <= this.#parts.now()
  }

  /** Events came: are the programs that see them fresh? */
  touch(): void {
    const { settings, now, alarm } = this.#parts
    if (settings().reflexes.length === 0 || this.#due !== null || now() - this.#read_at < STALE_MS) return
    this.#due = now()
    alarm.by(this.#due)
  }

  /** Before the first events of a scope whose agent brings a chain along: it is read now, if D1 answers soon. */
  async ready(): Promise<void> {
    if (this.#read_at > 0 || this.#parts.programs.versions.length > 0 || this.#parts.settings().reflexes.length === 0) return
    await this.refresh(READY_MS)
  }

  /** Reads the chain's programs anew; where D1 does not answer, those at hand stay, and it is tried again. */
  async refresh(timeout_ms = TIMEOUT_MS): Promise<void> {
    const { programs, unit, now, env } = this.#parts
    const references = this.#references()
    this.#reading += 1
    const reading = this.#reading
    try {
      const versions = await timely(async () => selectReferenced(env.DB, 'reflex', this.#parts.settings().reflexes), timeout_ms)
      // An older answer, or one about another chain, is none.
      if (reading !== this.#reading || references !== this.#references()) return
      this.#read_at = now()
      unit((unit) => programs.replace(unit, this.#withMoves(versions.map((row) => registry.present(row)))))
    } catch (error) {
      this.#read_at ||= 1
      this.#failed('reflexes could not be read, the scope goes on with those it has', error)
    }
  }

  #references(): string {
    return JSON.stringify(this.#parts.settings().reflexes.map(({ id, version }) => [id, version]))
  }

  /** The chain was set anew. */
  async rechained(): Promise<void> {
    this.#uses_told = false
    await this.refresh()
    await this.#tellUses()
  }

  async #tellUses(): Promise<void> {
    const { env, scope, settings } = this.#parts
    try {
      const ids = Array.from(new Set(settings().reflexes.map(({ id }) => id)))
      await timely(() => setUses(env.DB, scope, ids))
      this.#uses_told = true
    } catch (error) {
      this.#failed('D1 could not be told which reflexes are used here', error)
    }
  }

  /** Everything that is due; from the alarm. */
  async run(): Promise<void> {
    this.#due = null
    const { settings } = this.#parts
    await this.#tellMoves()
    if (settings().reflexes.length > 0) await this.refresh()
    if (!this.#uses_told) await this.#tellUses()
    this.#parts.alarm.rearm()
  }

  /** With the outbox: the sums that changed. */
  async tellSums(db: D1Database): Promise<void> {
    const { records, scope, now } = this.#parts
    const names = Array.from(records.untold)
    if (names.length === 0) return
    records.untold.clear()
    try {
      await tellReflexMetrics(
        db,
        scope,
        names.map((name) => records.entry(name)),
        now(),
      )
    } catch (error) {
      for (const name of names) records.untold.add(name)
      throw error
    }
  }

  /** What this scope has decided about versions stands, until D1 has been told. */
  #withMoves(versions: readonly ReflexVersion[]): ReflexVersion[] {
    return versions.map((version) => {
      const move = this.#moves.findLast(({ id, version: number }) => id === version.id && number === version.version)
      // Whoever changed it meanwhile was right.
      return move && version.state === move.from ? { ...version, state: move.state, state_reason: move.reason } : version
    })
  }

  async #tellMoves(): Promise<void> {
    const { env, scope, unit, now } = this.#parts
    for (const move of this.#moves) {
      try {
        await timely(() => registry.setState(env.DB, { ...move, reason: `${move.reason} (in scope ${scope})`, now: now() }))
        await timely(() => notifyScopes(env, move.id, scope))
      } catch (error) {
        return this.#failed('D1 could not be told of a reflex that moved', error)
      }
      this.#moves = this.#moves.filter((one) => one !== move)
      unit((unit) => unit.write('reflex_moves', this.#moves))
    }
  }

  #failed(message: string, error: unknown): void {
    const { now, alarm } = this.#parts
    warn({ message, scope: this.#parts.scope, error })
    this.#due = now() + RETRY_MS
    alarm.by(this.#due)
  }
}

const timely = <Result>(work: () => Promise<Result>, timeout_ms = TIMEOUT_MS): Promise<Result> =>
  withDeadline(work, { timeout_ms, what: 'D1' })
