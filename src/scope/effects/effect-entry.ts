import type { Json } from '../../base/json.ts'
import type { Log } from '../log.ts'
import type { Done } from './recordable.ts'

/** Takes out of the log what must not be in it. */
type Hide = ((value: Json) => Json) | undefined

export const hidden = (value: unknown, hide: Hide): unknown => (hide ? hide(value as Json) : value)

/** How an effect ended, fit to be logged. */
export function endedEntry(effect: { id: string; tool: string; key: string | null }, done: Done, { log, hide }: { log: Log; hide: Hide }) {
  const { status, output, error, stack } = done
  return {
    kind: 'effect-ended' as const,
    effect_id: effect.id,
    tool: effect.tool,
    status,
    output: log.clean(hidden(output ?? null, hide)),
    error: error === null ? null : String(hidden(error, hide)),
    idempotence_key: effect.key,
    ...(stack && { stack: String(hidden(stack, hide)) }),
  }
}
