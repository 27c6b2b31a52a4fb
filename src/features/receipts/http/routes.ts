import { readJsonLines } from '../../../base/json-lines.ts'
import { hashJson } from '../../../base/json.ts'
import type { Env } from '../../../env.ts'
import { jsonText, resource, serve } from '../../../http/describe/operation.ts'
import { conflict, notFound } from '../../../http/problems/refusals.ts'
import { RECORDING_SCHEMA } from '../../replay/contract/replay.ts'
import { absentTrace, manifestsOf, programsOf } from '../../traces/http/export.ts'
import { scopesOfTrace } from '../../traces/http/trace-scope.ts'
import { redactionSecret, saltedMask, saltOf } from '../../../traces/keyed-hash.ts'
import { traceRecording } from '../../../traces/recording-lines.ts'
import type { Asker } from '../../../artifacts/look-up.ts'
import { RECEIPT, type OfReceipt, type ScopeEvidence } from '../contract/receipt.ts'
import { keyProblem, publicKeys, signerOf } from '../keys.ts'
import { getKeys, getReceipt, openMask } from '../operations/receipts.ts'
import { sealed } from '../seal.ts'

export const keyRoutes = resource().openapiRoutes([
  serve(getKeys, (c) => c.json(publicKeys(c.env), 200, { 'Cache-Control': 'max-age=300', 'Access-Control-Allow-Origin': '*' })),
])

export const receiptRoutes = resource().openapiRoutes([
  serve(getReceipt, async ({ env, var: { principal } }, { params: { trace_id }, query }) => {
    const signer = signerOf(env)
    if (!signer) throw conflict('no-receipts-key', keyProblem(env) ?? 'This deployment signs nothing: `reflex receipts init` makes a key.')
    const of = { trace_id, neighbours: query.neighbours === 'true' }
    const names = await scopesOfTrace(env, principal, trace_id, query.scope)
    const found = await Promise.all(names.map((scope) => partOf(env, scope, of, { key: principal })))
    const scopes = found.filter((part) => part !== null && part !== undefined)
    if (scopes.length === 0) throw absentTrace(trace_id, names, found)
    const { keys } = publicKeys(env)
    const made_at = new Date().toISOString()
    return jsonText(await sealed({ receipt: RECEIPT, trace_id, made_at, neighbours: of.neighbours, keys, scopes }, signer))
  }),
  serve(openMask, async (c, { params: { trace_id }, query, body: { value } }) => {
    const secret = redactionSecret(c.env)
    if (secret === null)
      throw conflict('no-redaction-secret', 'Without REFLEX_REDACTION_SECRET a mask says nothing of its value: docs/secrets.md.')
    const salt = saltOf(secret, value)
    const mask = saltedMask(salt, value)
    const names = await scopesOfTrace(c.env, c.var.principal, trace_id, query.scope)
    const found = await Promise.all(names.map((scope) => traceRecording(c.env.SCOPE.getByName(scope), { trace_id, contexts: true })))
    if (found.every((part) => part === null || part.entries.length === 0)) throw absentTrace(trace_id, names, found)
    if (!found.some((part) => JSON.stringify(part?.entries ?? []).includes(mask)))
      throw notFound(`The value stands masked nowhere in the log of ${trace_id}, or the secret has changed since.`)
    return c.json({ mask, salt }, 200)
  }),
])

/**
 * The scope's part of the file, with the code and the manifests that its reader may read. Undefined
 * if the entries are in files that cannot be read.
 */
async function partOf(env: Env, scope: string, of: OfReceipt, reader: Asker) {
  const lines = await env.SCOPE.getByName(scope).receipt(of)
  if (lines === null) return null
  const { recording: recorded, evidence } = (await readJsonLines(lines)) as ScopeEvidence
  if (recorded.entries.length === 0) return undefined
  const [programs, manifests] = await Promise.all([programsOf(env, recorded, reader), manifestsOf(env, recorded, reader)])
  const { entries: _in_evidence, ...rest } = recorded
  const settings_hash = await hashJson(recorded.settings)
  return { scope, ...evidence, recording: { schema: RECORDING_SCHEMA, trace_id: of.trace_id, ...rest, settings_hash, programs, manifests } }
}
