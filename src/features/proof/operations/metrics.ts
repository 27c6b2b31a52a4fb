import { z } from 'zod'
import { operations } from '../../../contract/operation.ts'
import { proven, reflexPath } from '../../../contract/operations/reflexes.ts'
import { scopePath, toolScope } from '../../../contract/operations/shared.ts'
import { whole } from '../../../contract/paging.ts'
import { reflexMetrics } from '../../../contract/reports/reflex-report.ts'
import { shownCertificate } from '../../../contract/certificate.ts'

const operation = operations({ tag: 'Reflexes', roles: ['viewer'] })
const version = z.int()

export const metrics = operation('get /v1/reflexes/{ref}/metrics', 'getReflexMetrics', 'Get the metrics of a reflex', {
  description: 'By version and by scope, for the scopes that the key covers. With `id@version`, only that version. Updated within seconds.',
  params: reflexPath,
  answers: {
    200: [
      z.object({
        id: z.string(),
        versions: z.array(reflexMetrics.extend({ version })),
        scopes: z.array(reflexMetrics.extend({ scope: z.string(), version })),
        total: reflexMetrics,
      }),
      'Newest versions first.',
    ],
  },
  problems: [404],
})

export const certificates = operation('get /v1/certificates', 'listCertificates', 'List the certificates of a reflex or a decision model', {
  description:
    'The evidence for its versions in the scopes that the key covers, last reported first. Updated within seconds. A decision model is named as in the log: `decision:NAME`.',
  query: z.object({ id: z.string().min(1).max(128).describe('The id of a reflex, or `decision:NAME`.') }),
  answers: { 200: [whole(proven), 'All of them.'] },
})

export const metricsInScope = operation('get /v1/scopes/{scope}/metrics', 'getScopeMetrics', "Get the metrics of a scope's reflexes", {
  description: 'Current values, together with the counters of the scope.',
  scoped: true,
  params: scopePath,
  answers: {
    200: [
      z.object({
        counters: z.record(z.string(), z.number()),
        reflexes: z.array(reflexMetrics.extend({ reflex_id: z.string(), version, proof: shownCertificate.nullable() })),
      }),
      'The metrics.',
    ],
  },
  mcp: {
    name: 'what_acts',
    title: 'What acts in a scope',
    description: 'The reflexes of a scope with their fire rate, agreement in shadow mode and certificate.',
    input: { scope: toolScope },
  },
})
