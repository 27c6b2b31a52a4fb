import type { Env } from '../env.ts'
import { cutStack } from '../base/error-text.ts'

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
