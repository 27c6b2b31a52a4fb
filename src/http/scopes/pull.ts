import { hexHash } from '../../base/hash.ts'
import { ack, claim, nack } from '../../contract/operations/pull.ts'
import type { ScopeApi } from '../../contract/scope-api.ts'
import { jsonText, resource, serve } from '../describe/operation.ts'
import { conflict } from '../problems/refusals.ts'
import { warn } from '../../base/warn.ts'

export const pullRoutes = resource().openapiRoutes([
  serve(claim, async (c, { body: { claim_id: given, ...which } }) => {
    const { scope, principal } = c.var
    const claim_id = claimOf(principal.key_id, given ?? crypto.randomUUID())
    const giveBack = (why: string) => returnClaim(c.env.SCOPE.getByName(scope), { scope, claim_id, why })
    const claimed = await c.env.SCOPE.getByName(scope)
      .claim({ ...which, claim_id }, principal.name)
      .catch(async (error: unknown) => {
        await giveBack('the scope did not answer the claim')
        throw error
      })
    if (!claimed.ok) throw conflict('not-pull', claimed.detail)
    const lost = () => c.executionCtx.waitUntil(giveBack('the connection broke before the answer was sent'))
    return jsonText(wholeOrLost(JSON.stringify({ deliveries: claimed.deliveries }), lost))
  }),
  serve(ack, (c, { body: { ack_tokens } }) => c.env.SCOPE.getByName(c.var.scope).ack(ack_tokens)),
  serve(nack, async (c, { body: { ack_token, error } }) => {
    const refused = await c.env.SCOPE.getByName(c.var.scope).nack(ack_token, error)
    if (!refused.ok) throw conflict('stale-token', refused.detail)
    return { status: refused.status, due_at: refused.due_at }
  }),
])

/** With the key: consumers with equal ids share no claim, and a key that ends leaves none. */
const claimOf = (key_id: string, claim_id: string): string => `${key_id}:${hexHash(claim_id).slice(0, 32)}`

/** If this fails as well, the lease expires and the attempt counts. */
async function returnClaim(stub: ScopeApi, { scope, claim_id, why }: { scope: string; claim_id: string; why: string }) {
  try {
    await stub.giveBack(claim_id, why)
  } catch (error) {
    warn({ message: 'failed to return a claim; its lease will expire', scope, error })
  }
}

const CHUNK_BYTES = 64 * 1024

/** Sends a text; calls `lost` if the connection breaks first, unless network buffers hide it. */
function wholeOrLost(text: string, lost: () => void): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let taken = 0
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(taken, taken + CHUNK_BYTES))
        taken += CHUNK_BYTES
        if (taken >= bytes.length) controller.close()
      },
      cancel: lost,
    },
    { highWaterMark: 0 },
  )
}
