const PATIENCE_MS = 1000

export type Probed = { ok: boolean; duration_ms: number; error: string | null }

/** Asks a part whether it is there, and does not wait long for it. */
export async function probe(ask: () => Promise<unknown>): Promise<Probed> {
  const begun = performance.now()
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${PATIENCE_MS} ms`)), PATIENCE_MS)
  const error = await Promise.race([Promise.resolve().then(ask), late]).then(
    () => null,
    (failure: unknown) => (failure instanceof Error ? failure.message : String(failure)),
  )
  clearTimeout(timer)
  return { ok: error === null, duration_ms: Math.round(performance.now() - begun), error }
}
