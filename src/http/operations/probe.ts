import { TooLate, withDeadline } from '../../base/deadline.ts'
import { messageOf } from '../../base/error-text.ts'

const PATIENCE_MS = 1000

export type Probed = { ok: boolean; duration_ms: number; error: string | null }

/** Checks that a dependency responds, with a short time limit. */
export async function probe(ask: () => Promise<unknown>): Promise<Probed> {
  const begun = performance.now()
  const error = await withDeadline(async () => ask(), { timeout_ms: PATIENCE_MS, what: 'the response' }).then(
    () => null,
    (failure: unknown) => (failure instanceof TooLate ? `no response within ${PATIENCE_MS} ms` : messageOf(failure)),
  )
  return { ok: error === null, duration_ms: Math.round(performance.now() - begun), error }
}
