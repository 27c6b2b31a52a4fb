import { z } from 'zod'
import { jsonValue } from '../base/json.ts'
import { CALLER_TOOL } from '../contract/model-asked.ts'
import { defineTool, type ToolDefinition } from './define-tool.ts'

/** The output of a call of a caller's tool: the caller's own comes with a later request. */
const HANDED_OVER = { handed_over: true } as const

const MOST_QUOTED = 200
const NAME = /^caller\.[\w-]{1,128}$/

const callerInput = z.record(z.string(), z.json(), {
  error: ({ input }) => (typeof input === 'string' ? `expected an object, received the text ${input.slice(0, MOST_QUOTED)}` : undefined),
})

/**
 * The arguments of a call as its caller gets them, which are those that were judged: a duplicate
 * name, or a number with too many digits, may mean something else to the caller's parser.
 */
export function handedArguments(text: string): string {
  const judged = JSON.stringify(callerInput.parse(jsonValue(text === '' ? '{}' : text)))
  return text.replaceAll(BETWEEN_VALUES, '$1') === judged ? text : judged
}
const BETWEEN_VALUES = /("(?:[^"\\]|\\.)*")|\s+/g

/**
 * The tools that callers run themselves. A call is handed over in the answer to the request whose
 * trace it is in; without such a request there is nobody to run it.
 */
export class CallerTools {
  /** Calls that were handed over, by the traces of open requests. */
  readonly #open = new Map<string, { requests: number; handed: number }>()

  open(trace_id: string): void {
    const open = this.#open.get(trace_id) ?? { requests: 0, handed: 0 }
    open.requests += 1
    this.#open.set(trace_id, open)
  }

  close(trace_id: string): void {
    const open = this.#open.get(trace_id)
    if (open && (open.requests -= 1) === 0) this.#open.delete(trace_id)
  }

  /** The number of calls in this trace so far. */
  handed(trace_id: string): number {
    return this.#open.get(trace_id)?.handed ?? 0
  }

  /** Null for other names. The caller's own schema judges the input. */
  find(name: string): { ok: true; definition: ToolDefinition } | null {
    return NAME.test(name) ? { ok: true, definition: this.#definition } : null
  }

  readonly #definition = defineTool({
    description: `A tool of a caller: its name begins with ${CALLER_TOOL}.`,
    input: callerInput,
    execute: async (_input, { trace }) => {
      const open = this.#open.get(trace?.trace_id ?? '')
      if (!open) throw new Error('no caller waits for this call: it runs its own tools')
      open.handed += 1
      return HANDED_OVER
    },
  })
}
