import { withDeadline } from '../../base/deadline.ts'
import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import type { KeyedWork, WorkState } from '../../contract/scope-api.ts'
import type { Reflexes } from '../reflexes/wiring.ts'
import type { Unit } from '../../kernel/unit.ts'
import {
  doneBefore,
  hashOf,
  keptOutput,
  type DoneBefore,
  type KeyOwner,
  type EffectJournal,
  type RecordedEffect,
} from './effect-journal.ts'
import type { EffectPlace, EffectRequest, EffectResult } from './effect.ts'

const DAY_MS = 86_400_000
/** A claim waits this long for other work under the key, then fails as retryable. */
const WAIT_MS = 5000
const TIMEOUT_MS = 15_000
const TOPIC = 'released-keys'

/** The key is held by other work, or cannot be claimed now. Nothing was done. */
export class KeyNotFree extends Error {
  override readonly name = 'KeyNotFree'
  readonly retryable = true
}

/** The scope's side of deployment-wide idempotency keys (`GlobalKeyObject`). */
export class GlobalKeys {
  readonly #parts: Pick<Reflexes, 'scope' | 'env' | 'context' | 'outbox' | 'settings'>
  /** Work of this process, from its claim to its end: its journal may not have it yet. */
  readonly #held = new Map<string, string>()

  constructor(parts: Pick<Reflexes, 'scope' | 'env' | 'context' | 'outbox' | 'settings'>) {
    this.#parts = parts
    parts.outbox.topic(TOPIC, {
      send: async (items) => {
        for (const { key, value } of items) await this.#object(key).release(value as string)
      },
    })
  }

  holds(work: KeyedWork): boolean {
    return this.#held.has(nameOf(work))
  }

  /** Claims the key, or returns the work that was done under it. Throws KeyNotFree. */
  async claim(of: KeyOwner, key: string, work: KeyedWork): Promise<DoneBefore | null> {
    const { scope, outbox, settings } = this.#parts
    const hash = hashOf(of, key)
    const days = Math.max(settings().idempotence_days, settings().retention_days)
    this.#held.set(nameOf(work), hash)
    try {
      // A release by an earlier undo comes first.
      if (!(await outbox.push(TOPIC))) throw new Error('a release could not be sent')
      const options = { wait_ms: WAIT_MS, keep_ms: days * DAY_MS }
      const called = () => this.#object(hash).claim({ ...work, scope }, options)
      const claim = await withDeadline(called, { timeout_ms: TIMEOUT_MS, what: 'the claim' })
      if (claim.state === 'granted') return null
      if (claim.state === 'done') return this.#given(work, doneBefore(hash, claim, 'is not kept for other scopes'))
      throw new Error(claim.state === 'held' ? 'other work holds it' : 'the scope that holds it does not respond')
    } catch (error) {
      this.#held.delete(nameOf(work))
      throw new KeyNotFree(`the deployment-wide key ${key} cannot be claimed: ${messageOf(error)}; nothing was done`, { cause: error })
    }
  }

  /**
   * Claims the key of an effect. The key's object decides, not the journal: another scope may have
   * done the effect, or undone this scope's.
   */
  async claimEffect(
    { tool, signal }: Pick<EffectRequest, 'tool' | 'signal'>,
    { key, place }: { key: string; place: EffectPlace },
    journal: Pick<EffectJournal, 'byKey'>,
  ): Promise<RecordedEffect | undefined> {
    const work = { kind: 'effect', ...place } as const
    const done = await this.claim({ kind: 'effect', tool }, key, work)
    if (signal.aborted) this.settle(work, { state: 'free' })
    signal.throwIfAborted()
    if (!done) return undefined
    const own = done.output === null ? journal.byKey(tool, key) : undefined
    return own?.status === 'ok' ? own : { id: done.id, status: 'ok', output: done.output, error: done.detail }
  }

  settleEffect(place: EffectPlace, { status, output }: EffectResult, at: number): void {
    const is_done = status === 'ok'
    this.settle(
      { kind: 'effect', ...place },
      is_done ? { state: 'done', ...keptOutput(JSON.stringify(output ?? null), at) } : { state: 'free' },
    )
  }

  /** Reports the end of work that holds a key. If the report is lost, the key's object asks. */
  settle(work: KeyedWork, state: WorkState): void {
    const { scope, context } = this.#parts
    const hash = this.#held.get(nameOf(work))
    if (hash === undefined) return
    this.#held.delete(nameOf(work))
    const failed = (error: unknown) => warn({ message: 'the end of keyed work could not be reported', scope, error: messageOf(error) })
    context.waitUntil(
      this.#object(hash)
        .settle({ ...work, scope }, state)
        .catch(failed),
    )
  }

  /** Frees the key of an undone effect, once the unit is committed. */
  release(unit: Unit, of: KeyOwner, key: string): void {
    const { outbox, context } = this.#parts
    outbox.put(unit, TOPIC, hashOf(of, key), crypto.randomUUID())
    context.waitUntil(Promise.resolve().then(() => outbox.push(TOPIC)))
  }

  #given(work: KeyedWork, done: DoneBefore): DoneBefore {
    this.#held.delete(nameOf(work))
    return done
  }

  #object(hash: string) {
    return this.#parts.env.GLOBAL_KEYS.getByName(hash)
  }
}

const nameOf = (work: KeyedWork): string =>
  work.kind === 'run' ? `run:${work.run_id}` : `effect:${work.owner}/${work.phase}/${work.place}`
