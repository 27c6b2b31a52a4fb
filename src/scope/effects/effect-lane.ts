import { v7 as uuidv7 } from 'uuid'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import { argumentsHash } from '../../tools/tool-keys.ts'
import type { Env } from '../../env.ts'
import type { ScopedLocks } from '../../core/scoped-locks.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import { hideInError } from '../../contract/secrets.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Counters } from '../counters.ts'
import type { Database } from '../database.ts'
import { withDeadline } from '../../base/deadline.ts'
import type { Log } from '../log.ts'
import { CutOff } from '../../tools/cut-off.ts'
import { childHead } from '../spans.ts'
import type { DoneKeys } from './done-keys.ts'
import { endedEntry, hidden } from './effect-entry.ts'
import { effectInput } from './effect-input.ts'
import type { EffectRequest, ReadyRequest } from './effect-request.ts'
import { fillSecrets } from './secret-arguments.ts'
import { effectKey } from './effect-key.ts'
import { effectWork } from './effect-work.ts'
import { recordable, type Done } from './recordable.ts'
import { toolFailure } from '../report-failure.ts'
import { releaseUndone } from './undone.ts'
import type { UnitOfWork } from '../unit.ts'

/** How long a tool that was told to stop may hold the lane up. */
const GRACE_MS = 2000

type Parts = {
  scope: string
  env: Env
  settings: () => Settings
  database: Database
  done_keys: DoneKeys
  log: Log
  counters: Counters
  locks: ScopedLocks
  unit: UnitOfWork
  tools: () => Readonly<Record<string, ToolDefinition>>
  fetch: typeof fetch
  now: () => number
}
type Journalled = { id: string; status: 'started' | 'ok' | 'failed' | 'unknown'; output: string | null; error: string | null }

/**
 * The effect lane: one effect of this scope at a time (G4), each journalled before and after (G8).
 *
 * If the process dies before the first write, nothing was done. Between the writes, the effect ends as `unknown`: without an idempotency key it is
 * never run again by itself, with one it runs again under the same key. After the second write, a repeated turn gets the recorded output.
 */
export class Effects {
  readonly #parts: Parts
  /** Journalled effects that this turn was given already: the same call twice in one turn is two effects. */
  readonly #reused = new Map<string, Set<string>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Runs a tool, or answers from the journal. Throws what the tool throws, and where the input does not fit. */
  async run(request: EffectRequest): Promise<unknown> {
    const filled = fillSecrets(this.#parts.env, request)
    const parsed = effectInput({ ...request, input: filled.input })
    const input = filled.names.length > 0 ? request.input : parsed
    const ready = { ...request, input, filled: { ...filled, input: parsed } }
    return this.#parts.locks.run('effects', () => this.#serialised(ready), { signal: request.signal })
  }

  /** On waking, within a unit of work: what had begun and has no end may or may not have happened. `quiet` leaves out the log. */
  recover(quiet = false): void {
    const { database, log, now } = this.#parts
    const error = 'the server died while this effect ran: look whether it happened'
    const lost = database.all<{ id: string; tool: string; idempotence_key: string | null; head: string }>(
      `UPDATE effects SET status = 'unknown', ended_at = ?, error = ? WHERE status = 'started' RETURNING id, tool, idempotence_key, head`,
      now(),
      error,
    )
    if (quiet) return
    log.append(
      lost.map(({ id, tool, idempotence_key, head }) => ({
        ...(JSON.parse(head) as EntryHead),
        kind: 'effect-ended',
        effect_id: id,
        tool,
        status: 'unknown',
        output: null,
        error,
        idempotence_key,
      })),
    )
  }

  /** Tools of this turn whose effects may or may not have happened, and carry no key. */
  unknownIn(turn_id: string): string[] {
    return this.#parts.database
      .all<{ tool: string }>(
        `SELECT tool FROM effects WHERE turn_id = ? AND status IN ('unknown', 'started') AND idempotence_key IS NULL`,
        turn_id,
      )
      .map(({ tool }) => tool)
  }

  /** What the journal says of this actor's latest effect; undefined where none began. */
  lastOf(turn_id: string): { status: string; idempotence_key: string | null } | undefined {
    return this.#parts.database.first(
      'SELECT status, idempotence_key FROM effects WHERE turn_id = ? ORDER BY started_at DESC LIMIT 1',
      turn_id,
    )
  }

  /** For what is no tool, and must overlap none (G4). */
  async exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#parts.locks.run('effects', work, { signal })
  }

  /** A person looked, and has these turns' events tried again: what may have happened is taken not to have. What is recorded as done stays done. */
  release(turn_ids: readonly string[]): void {
    this.#parts.database.allOf(
      turn_ids,
      `UPDATE effects SET status = 'failed', error = 'may have happened; its event was retried by hand' WHERE status = 'unknown' AND idempotence_key IS NULL
        AND turn_id IN (SELECT value FROM json_each(?1))`,
    )
  }

  /** Whether a call under this key would be answered from the journal. */
  done(tool: string, key: string): boolean {
    return this.#byKey(tool, key)?.status === 'ok'
  }

  forgetTurn(turn_id: string): void {
    this.#reused.delete(turn_id)
  }

  async #serialised(request: ReadyRequest): Promise<unknown> {
    request.signal.throwIfAborted()
    const key = effectKey(request, this.#parts.scope)
    const arguments_hash = argumentsHash(request.input)
    const earlier = key === null ? this.#earlier(request, arguments_hash) : this.#byKey(request.tool, key)
    if (earlier?.status === 'ok') return this.#reuse(request, earlier, key)
    if (earlier?.status === 'unknown' && key === null) {
      throw new Error(`effect ${request.tool} may have happened in an earlier attempt and carries no idempotency key: it is not run again`)
    }
    return this.#execute(request, { id: earlier && key !== null ? earlier.id : uuidv7(), key, arguments_hash })
  }

  async #execute(
    request: ReadyRequest,
    { id, key, arguments_hash }: { id: string; key: string | null; arguments_hash: string },
  ): Promise<unknown> {
    const { unit, now, env, scope, settings, fetch } = this.#parts
    const { tool, definition, input, turn_id, filled } = request
    const { hider, names: secrets } = filled
    const head = childHead(request.head)
    const started = now()
    const of = effectWork(request)
    unit(() => this.#begin(request, { id, key, arguments_hash, head, started }), of)
    const timeout_ms = definition.timeout_ms ?? request.timeout_ms
    const end = (done: Done) =>
      unit(() => {
        this.#end({ id, tool, key, head, started, turn_id }, done, request.hide)
        if (done.status === 'ok') releaseUndone(this.#parts, definition, input)
      }, of)
    let stopped = false
    let work: Promise<unknown> = Promise.resolve()
    try {
      const given = await withDeadline(
        (signal) => {
          signal.addEventListener('abort', () => (stopped = true), { once: true })
          const { parameters } = settings()
          return (work = definition.execute(filled.input, { env, fetch, scope, parameters, signal, idempotence_key: key, secrets, now }))
        },
        { signal: request.signal, timeout_ms, what: `effect ${tool}` },
      )
      // What was asked with a secret may send it back: nobody is given it, neither a model nor the journal.
      const output = hider.value(given)
      end(recordable(output))
      return output
    } catch (error) {
      hideInError(error, hider)
      // The lane is not free while a tool that was told to stop is still at it, unless it does not listen (G4).
      if (stopped) await Promise.race([work.catch(() => null), scheduler.wait(GRACE_MS)])
      // A stopped effect may have happened or not; one that failed by itself says which of the two.
      end({ status: stopped || error instanceof CutOff ? 'unknown' : 'failed', output: null, ...toolFailure(request, scope, error) })
      throw error
    }
  }

  #begin(request: EffectRequest, row: { id: string; key: string | null; arguments_hash: string; head: EntryHead; started: number }): void {
    const { database, log, counters } = this.#parts
    const { tool, cause, turn_id, input, definition } = request
    const insert = () =>
      database.all(
        `INSERT INTO effects (id, turn_id, tool, arguments_hash, idempotence_key, status, head, started_at) VALUES (?1, ?2, ?3, ?4, ?5, 'started', ?6, ?7)
        ON CONFLICT (id) DO UPDATE SET status = 'started', turn_id = ?2, arguments_hash = ?4, head = ?6, started_at = ?7, ended_at = NULL, error = NULL`,
        row.id,
        turn_id,
        tool,
        row.arguments_hash,
        row.key,
        JSON.stringify(row.head),
        row.started,
      )
    if (!definition.repeatable) insert()
    counters.add({ effects: 1 })
    const shown = log.clean(hidden(input, request.hide))
    log.append([{ ...row.head, kind: 'effect-started', effect_id: row.id, tool, input: shown, idempotence_key: row.key, cause }])
  }

  #end(
    effect: { id: string; tool: string; key: string | null; head: EntryHead; started: number; turn_id: string | null },
    done: Done,
    hide: EffectRequest['hide'],
  ): void {
    const { database, log, counters, now } = this.#parts
    const { id, head, started } = effect
    const output = JSON.stringify(done.output ?? null)
    database.all(
      'UPDATE effects SET status = ?2, output = ?3, error = ?4, ended_at = ?5 WHERE id = ?1',
      id,
      done.status,
      output,
      done.error,
      now(),
    )
    if (done.status !== 'ok') counters.add({ effects_failed: 1 })
    const duration_ms = now() - started
    log.append([{ ...head, duration_ms, ...endedEntry(effect, done, { log, hide }) }])
  }

  #reuse(request: EffectRequest, earlier: Journalled, key: string | null): unknown {
    const { unit, log } = this.#parts
    const { tool, turn_id } = request
    if (turn_id !== null) this.#reused.set(turn_id, (this.#reused.get(turn_id) ?? new Set()).add(earlier.id))
    const output: unknown = earlier.output === null ? null : JSON.parse(earlier.output)
    const done: Done = { status: 'reused', output, error: earlier.error }
    const entry = endedEntry({ id: earlier.id, tool, key }, done, { log, hide: request.hide })
    unit(() => log.append([{ ...childHead(request.head), ...entry }]))
    return output
  }

  #byKey(tool: string, key: string): Journalled | undefined {
    const { database, done_keys } = this.#parts
    const sql = 'SELECT id, status, output, error FROM effects WHERE tool = ? AND idempotence_key = ?'
    const journalled = database.first<Journalled>(sql, tool, key)
    if (journalled) return journalled
    const before = done_keys.find({ kind: 'effect', tool }, key)
    return before && { id: before.id, status: 'ok', output: before.output, error: before.detail }
  }

  #earlier({ tool, turn_id, earlier_turns }: EffectRequest, arguments_hash: string): Journalled | undefined {
    if (turn_id === null) return undefined
    const reused = this.#reused.get(turn_id) ?? new Set()
    return this.#parts.database
      .all<Journalled>(
        `SELECT id, status, output, error FROM effects WHERE turn_id IN (SELECT value FROM json_each(?1) UNION ALL SELECT ?2) AND tool = ?3 AND arguments_hash = ?4 AND idempotence_key IS NULL
          AND (status = 'unknown' OR status = 'ok' AND turn_id IN (SELECT value FROM json_each(?1))) ORDER BY started_at`,
        JSON.stringify(earlier_turns),
        turn_id,
        tool,
        arguments_hash,
      )
      .find(({ id }) => !reused.has(id))
  }
}
