import { DurableObject } from 'cloudflare:workers'
import type { Env, SweeperApi } from '../env.ts'
import { anyQueued } from '../store/queued.ts'
import { LATE_MS } from './queue.ts'
import { sweep, type SweepSteps } from './sweep.ts'
import { storeOf } from '../store/store.ts'

/** The time for which a sweeper sweeps after it was armed, even if it finds nothing. */
const ARMED_MS = 120_000

/** Sweeps by its own alarm: the local server runs no cron and loses its queue in a crash. */
export class SweeperObject extends DurableObject<Env> implements SweeperApi {
  readonly #steps: SweepSteps

  constructor(context: DurableObjectState, env: Env, steps: SweepSteps) {
    super(context, env)
    this.#steps = steps
  }

  async arm(): Promise<void> {
    this.ctx.storage.kv.put('armed_until', Date.now() + ARMED_MS)
    const next = await this.ctx.storage.getAlarm()
    const latest = Date.now() + LATE_MS
    // A later alarm was set while the clock was ahead.
    if (next === null || next > latest) await this.ctx.storage.setAlarm(latest)
  }

  override async alarm(): Promise<void> {
    const now = Date.now()
    // Set first, so that a failure below is retried.
    await this.ctx.storage.setAlarm(now + LATE_MS)
    const done = await sweep(this.env, now, this.#steps)
    const until = this.ctx.storage.kv.get<number>('armed_until') ?? 0
    const armed = until > now && until <= now + ARMED_MS
    if (!armed && done.sent_again === 0 && !(await anyQueued(storeOf(this.env)))) await this.ctx.storage.deleteAlarm()
  }
}
