import { reflexes as registry } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'
import type { Artifact, ArtifactChanges } from '../../contract/artifact.ts'
import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import { readFeed, setUses } from '../../store/artifact-feed.ts'
import { tellReflexMetrics } from '../../store/reflex-metrics.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import { ArtifactCopy } from '../replication/artifact-copy.ts'
import type { Database } from '../storage/database.ts'
import type { Unit, UnitOfWork } from '../storage/unit.ts'
import type { ReflexVersions } from './versions.ts'
import type { Records } from './stats.ts'
import { storeOf } from '../../store/store.ts'

/** Maximum age of the versions in ms when events arrive, in case a notification was lost. */
const STALE_MS = 60_000
const RETRY_MS = 5000
const TIMEOUT_MS = 15_000
/** The first events wait no longer than this for the chain. */
const READY_MS = 1000

type Move = { id: string; version: number; from: ReflexState; state: ReflexState; reason: string }
type Parts = {
  scope: string
  env: Env
  database: Database
  versions: ReflexVersions
  records: Records
  settings: () => Settings
  unit: UnitOfWork
  alarm: Alarm
  now: () => number
}

/**
 * Synchronizes the chain with D1: resolves the chain's references and reports uses, moves and
 * metrics. Durable state: the moves that D1 lacks. If D1 is unavailable, the chain keeps its
 * versions and this retries.
 */
export class ReflexSync {
  readonly #parts: Parts
  readonly #copy: ArtifactCopy
  #moves: Move[]
  #read_at = 0
  #due: number | null = null
  /** A report before an eviction may have been lost, so each object reports once. */
  #uses_reported = false

  constructor(parts: Parts) {
    this.#parts = parts
    const { env, database, alarm, settings } = parts
    this.#moves = database.read<Move[]>('reflex_moves', [])
    if (this.#moves.length > 0) this.#due = parts.now()
    const subscription = () => ({ kind: 'reflex' as const, references: settings().reflexes.map(({ id, version }) => ({ id, version })) })
    this.#copy = new ArtifactCopy({
      ...parts,
      kind: 'reflex',
      subscription,
      read: (of, since) => readFeed(storeOf(env), of, since),
      apply: (page) => this.#apply(page),
    })
    this.#copy.load()
    alarm.source(() => this.#due)
  }

  moved(unit: Unit, { id, version, state: from }: ReflexVersion, state: ReflexState, reason: string): void {
    this.#moves.push({ id, version, from, state, reason })
    unit.write('reflex_moves', this.#moves)
    this.#copy.move(unit, { id, version: String(version) }, state, reason)
    this.#due = unit.now
    unit.wakeBy(this.#due)
  }

  get due(): boolean {
    return this.#due !== null && this.#due <= this.#parts.now()
  }

  /** Events arrived: polls if the versions are stale. */
  touch(): void {
    const { settings, now, alarm } = this.#parts
    this.#copy.flush()
    if (settings().reflexes.length === 0 || this.#due !== null || now() - this.#read_at < STALE_MS) return
    this.#due = now()
    alarm.by(this.#due)
  }

  /** Reads the agent's initial chain before the first events, if D1 answers in time. */
  async ready(): Promise<void> {
    const { versions, settings } = this.#parts
    if (this.#read_at > 0 || versions.all.length > 0 || settings().reflexes.length === 0) return
    await this.refresh(READY_MS)
  }

  /** Polls. If D1 does not answer, the chain keeps its versions, and this retries. */
  async refresh(timeout_ms = TIMEOUT_MS): Promise<void> {
    try {
      await this.#copy.catchUp(timeout_ms)
      this.#read_at = this.#parts.now()
    } catch (error) {
      this.#read_at ||= 1
      this.#retry('failed to read reflexes; using the cached ones', error)
    }
  }

  async rechained(): Promise<void> {
    this.#uses_reported = false
    await this.refresh()
    await this.#reportUses()
  }

  async #reportUses(): Promise<void> {
    const { env, scope, settings } = this.#parts
    try {
      const ids = Array.from(new Set(settings().reflexes.map(({ id }) => id)))
      await setUses(storeOf(env), scope, ids)
      this.#uses_reported = true
    } catch (error) {
      this.#retry('failed to report to D1 which reflexes are used here; will retry', error)
    }
  }

  /** Runs all due work, from the alarm. */
  async run(): Promise<void> {
    this.#due = null
    const { settings } = this.#parts
    await this.#reportMoves()
    if (settings().reflexes.length > 0) await this.refresh()
    if (!this.#uses_reported) await this.#reportUses()
    this.#parts.alarm.rearm()
  }

  /** Sends changed metrics to D1, with the outbox. */
  async tellSums(): Promise<void> {
    const { records, env, scope, now } = this.#parts
    const names = Array.from(records.untold)
    if (names.length === 0) return
    records.untold.clear()
    const entries = names.map((name) => records.entry(name))
    try {
      await tellReflexMetrics(storeOf(env), scope, entries, now())
    } catch (error) {
      for (const name of names) records.untold.add(name)
      throw error
    }
  }

  #apply(page: ArtifactChanges): ArtifactChanges {
    if (!page.whole && !page.restart) return page
    const changes = page.changes.map((change) => ({ ...change, artifact: change.artifact && this.#withMove(change.artifact) }))
    this.#parts.versions.replace(changes.flatMap(({ artifact }) => (artifact ? [registry.present(artifact)] : [])))
    return { ...page, changes }
  }

  /** This scope's decisions hold until D1 knows them, unless another change came first. */
  #withMove(artifact: Artifact): Artifact {
    const move = this.#moves.findLast(({ id, version }) => id === artifact.id && String(version) === artifact.version)
    return move && artifact.state === move.from ? { ...artifact, state: move.state, state_reason: move.reason } : artifact
  }

  async #reportMoves(): Promise<void> {
    const { env, scope, unit, now } = this.#parts
    for (const move of this.#moves) {
      try {
        await registry.setState(storeOf(env), { ...move, reason: `${move.reason} (in scope ${scope})`, now: now() })
        await withDeadline(() => notifyScopes(env, move.id, scope), { timeout_ms: TIMEOUT_MS, what: 'notifying scopes' })
      } catch (error) {
        return this.#retry('failed to report a state change of a reflex to D1; will retry', error)
      }
      this.#moves = this.#moves.filter((one) => one !== move)
      unit((work) => work.write('reflex_moves', this.#moves))
    }
  }

  #retry(message: string, error: unknown): void {
    const { now, alarm, scope } = this.#parts
    warn({ message, scope, error })
    this.#due = now() + RETRY_MS
    alarm.by(this.#due)
  }
}
