import { backoff, pauses } from '../../base/backoff.ts'
import { presentReflex, setReflexState } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { warn } from '../../base/warn.ts'
import type { Artifact, ArtifactChanges } from '../../contract/artifact.ts'
import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import { readFeed, setUses } from '../../store/artifacts/feed.ts'
import { METRICS, tellReflexMetrics, type AnsweredMetrics } from '../../store/artifacts/reflex-metrics.ts'
import { ArtifactCopy } from '../replication/artifact-copy.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Move, ReflexVersions } from './versions.ts'
import { storeOf } from '../../store/store.ts'
import type { Ground } from '../storage/wiring.ts'

/** Maximum age of the versions in ms when events arrive, in case a notification was lost. */
const STALE_MS = 60_000
const TIMEOUT_MS = 15_000
/** The first events wait no longer than this for the chain. */
const READY_MS = 1000

/** The topic of the outbox for changes of a version's state. */
const MOVES = 'reflex-moves'
/**
 * A version's new state, if D1 has it in the state `from`. `since`: when that state was set, as far
 * as the scope knew; null if that is unknown.
 */
type ReflexMove = {
  id: string
  version: number
  from: ReflexState
  state: ReflexState
  reason: string
  by_proof: boolean
  since: number | null
}
/** Ends the reasons of the moves of a scope. */
const inScope = (scope: string): string => ` (in scope ${scope})`

type ReflexSyncParts = Ground & {
  versions: ReflexVersions
}

/**
 * Synchronizes the chain with D1: resolves the chain's references, and reports uses, moves and
 * metrics through the outbox. If D1 is unavailable, the chain keeps its versions and this retries.
 */
export class ReflexSync {
  readonly #parts: ReflexSyncParts
  readonly #copy: ArtifactCopy
  #read_at = 0
  #due: number | null = null
  #polls = false
  /** Versions whose metrics were answered to a caller. */
  readonly #told = new Set<string>()
  /** A report before an eviction may have been lost, so each object reports once. */
  #uses_reported: boolean

  constructor(parts: ReflexSyncParts) {
    this.#parts = parts
    const { scope, env, alarm, outbox, settings } = parts
    this.#uses_reported = settings().reflexes.length === 0
    const subscription = () => ({
      kind: 'reflex' as const,
      scope,
      references: settings().reflexes.map(({ id, version }) => ({ id, version })),
    })
    this.#copy = new ArtifactCopy({
      ...parts,
      kind: 'reflex',
      subscription,
      read: (of, since) => readFeed(storeOf(env), of, since),
      apply: (page) => this.#apply(page),
    })
    this.#copy.load()
    alarm.source(() => this.#due)
    outbox.topic(MOVES, { send: async (items) => this.#sendMoves(items.map(({ value }) => value as ReflexMove)) })
    outbox.source('reflex-uses', { send: () => this.#reportUses() })
    outbox.source('reflex-metrics', { send: () => this.#reportMetrics() })
    parts.features.push({ name: METRICS, answers: () => this.#answered(), unanswered: () => this.#tellAgain() })
  }

  moved(unit: Unit, { id, version, state: from }: ReflexVersion, { to: state, reason, by_proof }: Move): void {
    const { outbox } = this.#parts
    const of = { id, version: String(version) }
    // Several moves that D1 lacks are reported as one.
    const lacking = outbox.get<ReflexMove>(MOVES, nameOf(of))
    const before = { from: lacking?.from ?? from, since: lacking ? lacking.since : this.#copy.stateAt(of) }
    outbox.put(unit, MOVES, nameOf(of), { id, version, ...before, state, reason, by_proof } satisfies ReflexMove)
    this.#copy.move(unit, of, { state, reason, by_proof })
    // Another change of its state may have come first.
    this.#due = unit.now
    unit.wakeBy(unit.now)
  }

  async #sendMoves(moves: readonly ReflexMove[]): Promise<void> {
    const { env, scope, now, features } = this.#parts
    const by = inScope(scope)
    for (const { since, ...move } of moves) {
      const reason = move.reason + by
      const moved = await setReflexState(storeOf(env), { ...move, reason, unless: since === null ? null : { since, by }, now: now() })
      await notifyScopes(env, move.id, scope)
      // If a feature fails, the move is sent again, and changes nothing else.
      if (moved.ok) for (const feature of features) await feature.moved?.(moved.version)
    }
  }

  get due(): boolean {
    return this.#due !== null && this.#due <= this.#parts.now()
  }

  /** Events arrived: polls if the versions are stale. */
  touch(): void {
    const { settings, now } = this.#parts
    this.#copy.flush()
    if (settings().reflexes.length === 0 || this.#due !== null || this.#polls || now() - this.#read_at < STALE_MS) return
    // Without an alarm: should the object die, the next event polls.
    this.#polls = true
    void this.run().finally(() => (this.#polls = false))
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
    await this.#reportUses().catch((error: unknown) => warn({ message: 'failed to report the reflexes in use; will retry', error }))
  }

  /** If D1 fails, the outbox retries. */
  async #reportUses(): Promise<void> {
    if (this.#uses_reported) return
    const { env, scope, settings } = this.#parts
    this.#uses_reported = true
    try {
      await setUses(storeOf(env), scope, Array.from(new Set(settings().reflexes.map(({ id }) => id))))
    } catch (error) {
      this.#uses_reported = false
      throw error
    }
  }

  /** Polls, from the alarm. */
  async run(): Promise<void> {
    this.#due = null
    if (this.#parts.settings().reflexes.length > 0) await this.refresh()
    this.#parts.alarm.rearm()
  }

  async #reportMetrics(): Promise<void> {
    const { records, env, scope, now, log } = this.#parts
    const names = Array.from(records.untold)
    if (names.length === 0) return
    records.untold.clear()
    const entries = names.map((name) => records.entry(name))
    const seq = log.last
    try {
      await tellReflexMetrics(storeOf(env), { scope, seq, now: now() }, entries)
    } catch (error) {
      for (const name of names) records.untold.add(name)
      throw error
    }
  }

  /** The metrics that D1 lacks. */
  #answered(): AnsweredMetrics | undefined {
    const { records, scope, log } = this.#parts
    if (records.untold.size === 0) return undefined
    for (const name of records.untold) this.#told.add(name)
    const reports = Array.from(records.untold, (name) => records.entry(name))
    records.untold.clear()
    return { scope, seq: log.last, reports }
  }

  #tellAgain(): void {
    for (const name of this.#told) this.#parts.records.untold.add(name)
  }

  #apply(page: ArtifactChanges): ArtifactChanges {
    if (!page.whole && !page.restart) return page
    const changes = page.changes.map((change) => ({ ...change, artifact: change.artifact && this.#withMove(change.artifact) }))
    this.#parts.versions.replace(changes.flatMap(({ artifact }) => (artifact ? [presentReflex(artifact)] : [])))
    return { ...page, changes }
  }

  /** This scope's decisions hold until D1 knows them, unless another change came first. */
  #withMove(artifact: Artifact): Artifact {
    const { outbox, scope } = this.#parts
    const move = outbox.get<ReflexMove>(MOVES, nameOf(artifact))
    const is_own = (since: number | null) =>
      since === null || artifact.state_at === since || artifact.state_reason?.endsWith(inScope(scope)) === true
    return move && artifact.state === move.from && is_own(move.since)
      ? { ...artifact, state: move.state, state_reason: move.reason, by_proof: move.by_proof }
      : artifact
  }

  #retry(message: string, error: unknown): void {
    const { now, alarm, scope } = this.#parts
    warn({ message, scope, error })
    this.#due = now() + backoff(pauses.read)
    alarm.by(this.#due)
  }
}

const nameOf = ({ id, version }: { id: string; version: string }): string => `${id}@${version}`
