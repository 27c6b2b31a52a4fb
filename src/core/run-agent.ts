import { DecisionContext, relevant, type Filter, type ReflexDeps, type Trigger } from './decision-context.ts'
import type { EventStore, Subscription } from './event-store.ts'
import type { Event } from './event.ts'
import { ScopedLocks } from './scoped-locks.ts'

type Own<E extends Event> = Pick<ReflexDeps<E>, 'context' | 'store' | 'scope' | 'signal'>
/** `lease_ms` must outlast a trigger, or another loop gets its event. `deps` go to the trigger. */
export type AgentLoop<E extends Event, D extends object> = Subscription & {
  store: EventStore<E>
  deps: D
  trigger: Trigger<E, D & Own<E>>
  filters?: readonly Filter<E>[]
  context?: DecisionContext<E>
  locks?: ScopedLocks
}

/** Filter, accumulate, think, then `ack`, or `nack` on errors. One scope, until `signal` aborts. */
export async function runAgent<E extends Event, D extends object>(agent: AgentLoop<E, D>): Promise<void> {
  const { store, trigger, filters = [], scope = 'default', signal = new AbortController().signal, locks = new ScopedLocks() } = agent
  const context = agent.context ?? new DecisionContext<E>({ scope })
  const act = async () => {
    if (await trigger(context, { ...agent.deps, context, store, scope, signal })) context.clear()
  }
  for await (const { event, ack_token, attempts } of store.subscribe({ ...agent, scope })) {
    try {
      if (relevant(filters, event, context)) {
        // A retried event is already in memory.
        if (attempts === 1 || !context.events.some(({ id }) => id === event.id)) context.add(event)
        await locks.run(scope, act, { signal })
      }
      await store.ack(ack_token)
    } catch (error) {
      await store.nack(ack_token, error instanceof Error ? error.message : String(error))
    }
  }
}

/** Loops of a scope that share `locks` never run actions at the same time. */
export const runAgentWithLock = <E extends Event, D extends object>(agent: AgentLoop<E, D> & { locks: ScopedLocks }) => runAgent(agent)

/** Stops waiting for a trigger and aborts its `deps.signal` after `action_timeout_ms` (30 s). */
export function runAgentWithTimeout<E extends Event, D extends object>(agent: AgentLoop<E, D> & { action_timeout_ms?: number }) {
  const { action_timeout_ms: ms = 30_000 } = agent
  const trigger: typeof agent.trigger = (context, deps) => within(ms, deps.signal, (signal) => agent.trigger(context, { ...deps, signal }))
  return runAgent({ lease_ms: 2 * ms, ...agent, trigger })
}

/** The late result of a task that ignores its signal is discarded. */
async function within<R>(ms: number, outer: AbortSignal, task: (signal: AbortSignal) => Promise<R>): Promise<R> {
  const timeout = new AbortController()
  const late = new Promise<never>((_, reject) => timeout.signal.addEventListener('abort', () => reject(timeout.signal.reason)))
  const timer = setTimeout(() => timeout.abort(new DOMException(`action timeout: no result in ${ms} ms`, 'TimeoutError')), ms)
  try {
    return await Promise.race([late, task(AbortSignal.any([outer, timeout.signal]))])
  } finally {
    clearTimeout(timer)
  }
}
