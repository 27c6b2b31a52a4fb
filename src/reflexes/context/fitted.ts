import { createHash } from 'node:crypto'
import type { Event } from '../../core/event.ts'
import { RECENT_EVENTS, type ReflexContext } from '../reflex-context.ts'
import { sandboxLimits } from '../sandbox.ts'
import { ContextJson, type ShownContext } from './context-json.ts'

/** The newest events of a context, of which the last is the current one. */
export function recentOf(events: readonly Event[], event: Event): ReflexContext['recent_events'] {
  const last = events.slice(-RECENT_EVENTS)
  // A retried event is not the newest in the context, so move it to the end.
  return last.at(-1) === event ? last : [...last.filter((one) => one !== event).slice(1 - RECENT_EVENTS), event]
}

/** Fits a context to the sandbox's limit, which still rejects a single oversized event. */
export const shownOf = (context: ReflexContext): ReflexContext =>
  fitted(
    context,
    ContextJson.of(context),
    context.recent_events.map((event) => JSON.stringify(event)),
  ).context

/** Drops the oldest of `recent_events` until the rest fits. */
export function fitted(context: ReflexContext, whole: ContextJson, recent_events: readonly string[]): ShownContext {
  for (let from = 0; ; from += 1) {
    const json = from === 0 ? whole : whole.with('recent_events', recent_events.slice(from))
    const fits = json.fits(sandboxLimits.context_bytes)
    if (!fits && from < recent_events.length) continue
    const shown = from === 0 ? context : { ...context, recent_events: context.recent_events.slice(from) }
    return { context: shown, json, hash: createHash('sha256').update(json.text).digest('hex'), fits }
  }
}
