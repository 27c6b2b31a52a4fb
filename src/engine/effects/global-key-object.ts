import { DurableObject } from 'cloudflare:workers'
import { withDeadline } from '../../base/deadline.ts'
import { SharedMoney } from './shared-money.ts'
import type { KeyedOutput, KeyHolder, LeaseAnswer, LeaseAsked, WorkState } from '../../contract/scope-api.ts'
import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import type { Env, GlobalKeyApi, KeyClaim } from '../../env.ts'
import { Alarm } from '../../kernel/alarm.ts'

/** An unused key's object is deleted after this time, and a held key's scope is asked. */
const DAY_MS = 86_400_000
/** Interval at which a waiting claim asks the holder's scope again. */
const ASK_MS = 500
const LEASE = 'lease:'
const MOST_LEASES = 1000
const RECALL_MS = 5000
/** Recent releases are remembered, because the outbox may repeat them. */
const MOST_RELEASES = 8

type KeyRow = {
  /** The work that holds the key or, with `done`, that is done. Null for a free key. */
  holder: KeyHolder | null
  done: (KeyedOutput & { expires_at: number }) | null
  keep_ms: number
  releases: string[]
  /** The key was released while the outcome of its holder was not known. */
  undone: boolean
}
const FREE: KeyRow = { holder: null, done: null, keep_ms: 0, releases: [], undone: false }

/**
 * A deployment-wide idempotency key: the work that holds it, and the output once it is done.
 *
 * Each key has an object of its own, named by the key's hash, so that claims of one key are
 * serialized without slowing others, and an expired key's object can be deleted as a whole.
 *
 * A claim has no lease. The journal of the holder's scope decides, because the work may outlast any
 * lease: if it succeeded the key is done, if it runs the key stays held, else the key is free. Work
 * of unknown outcome frees its key, because it is repeated under the same key within a scope, too.
 */
export class GlobalKeyObject extends DurableObject<Env> implements GlobalKeyApi {
  #changed = Promise.withResolvers<void>()
  readonly #alarm: Alarm
  #shared: SharedMoney | undefined

  constructor(context: DurableObjectState, env: Env) {
    super(context, env)
    this.#alarm = new Alarm(context.storage)
    this.#alarm.source((since) => {
      const row = this.#stored
      return row ? (row.done?.expires_at ?? since + DAY_MS) : null
    })
  }

  async claim(by: KeyHolder, { wait_ms, keep_ms }: { wait_ms: number; keep_ms: number }): Promise<KeyClaim> {
    const end = Date.now() + wait_ms
    for (;;) {
      const { holder, done } = this.#row
      if (done) return { state: 'done', output: done.output, output_bytes: done.output_bytes, at: done.at }
      if (!holder || isSame(holder, by)) {
        this.#write({ ...this.#row, holder: by, keep_ms })
        return { state: 'granted' }
      }
      const asked = await this.#ask(holder)
      if (asked === 'free' || asked === 'changed' || asked === 'done') continue
      const left_ms = end - Date.now()
      if (left_ms <= 0) return { state: asked === 'running' ? 'held' : 'unknown' }
      await Promise.race([this.#changed.promise, scheduler.wait(Math.min(left_ms, ASK_MS))])
    }
  }

  async lease(name: string, asked: LeaseAsked): Promise<LeaseAnswer> {
    const { kv } = this.ctx.storage
    this.#shared ??= new SharedMoney({
      read: (key) => kv.get(key),
      write: (key, value) => kv.put(key, value),
      scopes: () => Array.from(kv.list({ prefix: LEASE, limit: MOST_LEASES }), ([key]) => key.slice(LEASE.length)),
      recall: (scope, n) =>
        withDeadline(() => this.env.SCOPE.getByName(scope).returnLease(name, n), { timeout_ms: RECALL_MS, what: scope }),
      now: Date.now,
    })
    return this.#shared.lease(asked)
  }

  async settle(holder: KeyHolder, state: WorkState): Promise<void> {
    if (isSame(this.#row.holder, holder) && !this.#row.done) this.#settle(state)
  }

  async release(id: string): Promise<void> {
    if (this.#row.releases.includes(id)) return
    const { holder, done } = this.#row
    const asked = holder && !done ? await this.#ask(holder) : 'done'
    const row = this.#row
    if (asked === 'changed') return this.release(id)
    const releases = [...row.releases, id].slice(-MOST_RELEASES)
    // Running work began after the undone effect.
    if (asked === 'running') this.#write({ ...row, releases })
    else if (asked === 'unknown') this.#write({ ...row, releases, undone: true })
    else this.#write({ ...FREE, releases })
  }

  /** Deletes an expired or unused key, and settles one whose holder did not. */
  override alarm(): Promise<void> {
    return this.#alarm.fired(async () => {
      const { holder, done } = this.#row
      if (holder && !done) await this.#ask(holder)
      if (!this.#row.holder) await this.ctx.storage.deleteAll()
    })
  }

  get #stored(): KeyRow | undefined {
    return this.ctx.storage.kv.get<KeyRow>('row')
  }

  get #row(): KeyRow {
    const row = this.#stored
    return row && (!row.done || row.done.expires_at > Date.now()) ? row : FREE
  }

  #write(row: KeyRow): void {
    this.ctx.storage.kv.put('row', row)
    this.#alarm.rearm()
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #settle(state: WorkState): void {
    const row = this.#row
    if (state.state === 'running') return
    if (state.state === 'free' || row.undone) return this.#write({ ...FREE, releases: row.releases })
    const { output, output_bytes, at } = state
    this.#write({ ...row, done: { output, output_bytes, at, expires_at: Date.now() + row.keep_ms } })
  }

  /** Asks the holder's scope and applies the answer. `changed`: another call was faster. */
  async #ask(holder: KeyHolder): Promise<WorkState['state'] | 'unknown' | 'changed'> {
    let answer: WorkState | null = null
    try {
      answer = await this.env.SCOPE.getByName(holder.scope).workState(holder)
    } catch (error) {
      warn({ message: 'the scope that holds a deployment-wide key did not respond', scope: holder.scope, error: messageOf(error) })
    }
    if (!isSame(this.#row.holder, holder) || this.#row.done) return 'changed'
    if (answer) this.#settle(answer)
    return answer?.state ?? 'unknown'
  }
}

const isSame = (left: KeyHolder | null, right: KeyHolder): boolean =>
  left?.scope === right.scope && (left.kind === 'run' ? right.kind === 'run' && left.run_id === right.run_id : isSameEffect(left, right))

const isSameEffect = (left: KeyHolder, right: KeyHolder): boolean =>
  left.kind === 'effect' &&
  right.kind === 'effect' &&
  left.owner === right.owner &&
  left.phase === right.phase &&
  left.place === right.place
