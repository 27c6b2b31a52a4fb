import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import type { EffectEnd } from '../../contract/log-entry.ts'
import { messageOf } from '../../base/error-text.ts'

/** How an effect ended, as the journal and the log have it. */
export type Done = { status: EffectEnd; output: unknown; error: string | null; stack?: string | null }

/** The effect happened, whatever its output is: what cannot be recorded is said, not failed. */
export function recordable(output: unknown): Done {
  try {
    const text = JSON.stringify(output ?? null)
    const bytes = byteLength(text)
    if (bytes <= limits.result_bytes) return { status: 'ok', output: JSON.parse(text), error: null }
    return {
      status: 'ok',
      output: null,
      error: `the output takes ${bytes} bytes as JSON, more than ${limits.result_bytes}, and was not recorded`,
    }
  } catch (error) {
    return { status: 'ok', output: null, error: `the output could not be recorded: ${messageOf(error)}` }
  }
}
