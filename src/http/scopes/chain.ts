import { scopeChain } from '../../contract/scope.ts'
import { guard, json, problems, resource, routes, scopePath } from '../describe/describe.ts'

const route = routes('Scopes')

const chain = route('get /v1/scopes/{scope}/chain', 'getScopeChain', 'Get what decides on an event', {
  description:
    "The agent's filters, the chain of reflexes, the decision model and the turn, in the order in which an event meets them, and which of them act.",
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath },
  responses: { 200: json(scopeChain, 'The chain.'), ...problems(400) },
})

export const chainRoutes = resource().openapi(chain, async (c) => c.json(await c.env.SCOPE.getByName(c.var.scope).chain(), 200))
