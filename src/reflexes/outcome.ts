import type { Ending } from './engine/engine.ts'
import { sandboxLimits, type Run } from './sandbox.ts'
import { byteLength } from '../base/byte-length.ts'

export type Outcome = Pick<Run, 'value' | 'reason' | 'error'>

/** What a run's ending means, in words for the reflex's author. */
export function outcomeOf(ending: Ending, fuel: number): Outcome {
  switch (ending.kind) {
    case 'answer':
      return outcomeOfAnswer(ending.text)
    case 'fuel':
      return failed('limit', `it was stopped after ${fuel} units of fuel: it computes too much, or never ends`)
    case 'clock':
      return failed('limit', `it was stopped after ${sandboxLimits.run_ms} ms`)
    case 'depth':
      return failed('limit', 'the calls are nested too deeply')
    case 'memory':
      return failed('limit', 'out of memory')
    case 'too_large':
      return failed('limit', `the ${ending.what} is larger than ${ending.bytes} bytes`)
    case 'broken':
      break
  }
  return failed('error', 'it broke the interpreter, which has been put back')
}

const failed = (reason: 'error' | 'limit' | 'invalid_action', error: string): Outcome => ({ value: null, reason, error })

/** The realm's answers: `fired {json}`, `null`, `invalid why`, `error why`, `limit why`. */
function outcomeOfAnswer(text: string): Outcome {
  const [kind = ''] = text.split(' ', 1)
  const rest = text.slice(kind.length + 1)
  if (kind === 'fired') return firedWith(rest)
  if (kind === 'null') return { value: null, reason: 'null', error: null }
  if (kind === 'invalid') return failed('invalid_action', withLine(rest))
  return failed(kind === 'limit' ? 'limit' : 'error', withLine(rest))
}

function firedWith(json: string): Outcome {
  const bytes = byteLength(json)
  if (bytes <= sandboxLimits.output_bytes) return { value: JSON.parse(json), reason: 'fired', error: null }
  return failed('limit', `the action takes ${bytes} bytes as JSON; ${sandboxLimits.output_bytes} are allowed`)
}

/** An error is told in one line: `TypeError: not a function (line 3)`. Behind it the realm sends QuickJS's stack. */
function withLine(text: string): string {
  const [message = '', ...stack] = text.split('\n')
  const line = /\breflex:(\d+)/.exec(stack.join('\n'))?.[1]
  return line === undefined ? message : `${message} (line ${line})`
}
