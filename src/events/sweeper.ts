import { DurableObject } from 'cloudflare:workers'
import type { Env, SweeperApi } from '../env.ts'
import { Alarm } from '../kernel/alarm.ts'
import { anyQueued } from '../store/queued.ts'
import { LATE_MS } from './queue.ts'
import { sweep, type SweepSteps } from './sweep.ts'
import { storeOf } from '../store/store.ts'

/** The time for which a sweeper sweeps after it was armed, even if it finds nothing. */
const ARMED_MS = 120_000

/** Sweeps by its own alarm: the local server runs no cron and loses its queue in a crash. */
export class SweeperObject extends DurableObject<Env> implements SweeperApi {
  readonly #steps: SweepSteps
  readonly #alarm: Alarm

  constructor(context: DurableObjectState, env: Env, steps: SweepSteps) {
    super(context, env)
    this.#steps = steps
    this.#alarm = new Alarm(context.storage)
    this.#alarm.source(() => this.#sweeps_at)
  }

  get #sweeps_at(): number | null {
    return this.ctx.storage.kv.get<number>('sweeps_at') ?? null
  }

  async arm(): Promise<void> {
    const { kv } = this.ctx.storage
    const now = Date.now()
    kv.put('armed_until', now + ARMED_MS)
    // A later time was set while the clock was ahead.
    kv.put('sweeps_at', Math.min(this.#sweeps_at ?? Infinity, now + LATE_MS))
    this.#alarm.rearm()
  }

  override alarm(): Promise<void> {
    return this.#alarm.fired(() => this.#sweep(Date.now()))
  }

  async #sweep(now: number): Promise<void> {
    const { kv } = this.ctx.storage
    // Set first, so that a failure below is retried.
    kv.put('sweeps_at', now + LATE_MS)
    const done = await sweep(this.env, now, this.#steps)
    const until = kv.get<number>('armed_until') ?? 0
    const armed = until > now && until <= now + ARMED_MS
    if (!armed && done.sent_again === 0 && !(await anyQueued(storeOf(this.env)))) kv.delete('sweeps_at')
  }
}
