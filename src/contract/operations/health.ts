import { z } from 'zod'
import { operations } from '../operation.ts'
import { health, readiness } from '../reports/health.ts'

const open = operations({ tag: 'Health', roles: null })

export const alive = open('get /health', 'getHealth', 'Check that the Worker responds', {
  answers: { 200: [z.object({ status: z.literal('ok') }), 'It responds.'] },
})

export const ready = open(
  'get /health/ready',
  'getReadiness',
  'Check that D1 and the queue are reachable, and that a model is configured and answers',
  { answers: { 200: [readiness, 'Ready.'], 503: [readiness, 'Not ready; the failing part has an `error`.'] } },
)

export const detailed = open('get /health/detailed', 'getDetailedHealth', 'The state of each part', {
  description: 'Depths and dead letters cover the scopes of the key, as last replicated to D1.',
  roles: ['viewer'],
  answers: { 200: [health, 'Values that could not be read from D1 are null.'] },
  mcp: {
    name: 'health',
    title: 'Health of the deployment',
    description: 'The parts of the deployment, and what is wrong with them.',
    input: {},
  },
})
