import { messageOf, stackOf, cutStack } from '../../base/error-text.ts'
import type { Json } from '../../base/json.ts'
import { isRetryable } from '../../base/faults.ts'
import { hidesNothing, type SecretHider } from '../../base/secrets.ts'
import { logError, printError } from '../../base/warn.ts'
import type { Env } from '../../env.ts'
import { costIn } from '../../skills/runner/call-step.ts'

type Failure = { what: string; scope: string; event_ids?: readonly string[]; error: string; stack: string | null }

const MOST_IDS = 20

/** Prints a failure to the Worker's output; `wrangler dev` maps the stack to source lines. */
export function tellFailure({ what, scope, event_ids = [], error, stack }: Failure): void {
  const shown = event_ids.slice(0, MOST_IDS).join(', ')
  const more = event_ids.length > MOST_IDS ? ` and ${event_ids.length - MOST_IDS} more` : ''
  const events = event_ids.length > 0 ? ` [event ${shown}${more}]` : ''
  printError(`${what} in scope ${scope}${events}: ${error}${stack === null ? '' : `\n${stack}`}`)
}

type ToolRequest = { tool: string; head: { event_ids: readonly string[] }; hide?: (value: Json) => Json; key?: string | null }

type ToolFailure = { error: string; stack: string | null; told?: { retryable?: true; cost_usd?: number } }

/** Builds the record of a tool's error, and prints it. `quotes` masks what it quotes. */
export function toolFailure(
  { tool, head, hide, key = null }: ToolRequest,
  scope: string,
  thrown: unknown,
  quotes: SecretHider = hidesNothing,
): ToolFailure {
  const failure = { error: messageOf(thrown), stack: stackOf(thrown) }
  const shown = (text: string): string => {
    const hidden = hide ? hide(text) : text
    return typeof hidden === 'string' ? quotes.text(hidden) : ''
  }
  const { error, stack } = failure
  tellFailure({ what: `The tool ${tool} failed`, scope, event_ids: head.event_ids, error: shown(error), stack: stack && shown(stack) })
  const retryable = isRetryable(thrown, { keyed: key !== null })
  const cost_usd = costIn(thrown)
  return { ...failure, told: { ...(retryable && { retryable }), ...(cost_usd > 0 && { cost_usd }) } }
}

/**
 * Runs work that nobody awaits. It fails only after a failed unit, when the object is about to
 * restart.
 */
export function inBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    logError({ message: 'work in the background failed', error })
  })
}

const PATIENCE_MS = 1000

/** Maps a stack to source lines if the local server provides a mapper. */
export async function mapStack({ REFLEX_STACK_MAPPER }: Env, stack: string): Promise<string> {
  if (!REFLEX_STACK_MAPPER) return stack
  try {
    const response = await fetch(REFLEX_STACK_MAPPER, { method: 'POST', body: stack, signal: AbortSignal.timeout(PATIENCE_MS) })
    const mapped = await response.text()
    return response.ok ? cutStack(mapped) : stack
  } catch {
    return stack
  }
}

/**
 * Restarts the object from disk after a failure, since memory and disk may differ. Syncs first: an
 * abort discards pending writes, among them the record of the failure.
 */
export function dropObject(context: DurableObjectState, scope: string, error: unknown): void {
  const reason = messageOf(error)
  logError({ message: 'a unit of work failed; the object restarts', scope, error: reason })
  const drop = () => context.abort(`the scope restarts after a failure: ${reason}`)
  // A storage failure resets the object by itself.
  void context.storage.sync().then(drop, drop)
}
