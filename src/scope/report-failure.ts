import { messageOf, stackOf } from '../base/error-text.ts'
import type { Json } from '../base/json.ts'

type Failure = { what: string; scope: string; event_ids?: readonly string[]; error: string; stack: string | null }

const MOST_IDS = 20

/** Prints a failure to the Worker's output; `wrangler dev` maps the stack to source lines. */
export function tellFailure({ what, scope, event_ids = [], error, stack }: Failure): void {
  const shown = event_ids.slice(0, MOST_IDS).join(', ')
  const more = event_ids.length > MOST_IDS ? ` and ${event_ids.length - MOST_IDS} more` : ''
  const events = event_ids.length > 0 ? ` [event ${shown}${more}]` : ''
  console.error(`${what} in scope ${scope}${events}: ${error}${stack === null ? '' : `\n${stack}`}`)
}

type ToolRequest = { tool: string; head: { event_ids: readonly string[] }; hide?: (value: Json) => Json }

/** Builds the record of a tool's error, and prints it. */
export function toolFailure({ tool, head, hide }: ToolRequest, scope: string, thrown: unknown): { error: string; stack: string | null } {
  const failure = { error: messageOf(thrown), stack: stackOf(thrown) }
  const shown = (text: string): string => {
    const hidden = hide ? hide(text) : text
    return typeof hidden === 'string' ? hidden : ''
  }
  const { error, stack } = failure
  tellFailure({ what: `The tool ${tool} failed`, scope, event_ids: head.event_ids, error: shown(error), stack: stack && shown(stack) })
  return failure
}
