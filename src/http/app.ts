import { deploymentHider } from '../base/secrets.ts'
import { hideInOutput } from '../base/warn.ts'
import type { AgentRegistry } from '../agent/registry.ts'
import type { Change } from '../contract/change.ts'
import type { AnyOperation } from '../contract/operation.ts'
import type { Env } from '../env.ts'
import type { DeploymentFeature } from '../events/deployment.ts'
import { OpenAPIHono } from '@hono/zod-openapi'
import { cors } from 'hono/cors'
import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'
import { addressLimited, authenticated, rateLimited, ticketed, type AuthEnv, keySource } from './auth/middleware.ts'
import { handleError, notFoundIn } from './problems/problem.ts'
import { openRoutes, platformRoutes } from './platform.ts'
import { bearer, completed, documentInfo, type Document } from './describe/docs/document.ts'
import { eventShapes } from './body/event-body.ts'
import { refuseInvalid } from './problems/refusals.ts'
import { redeemTicket } from './scopes/sockets.ts'

export type App = OpenAPIHono<AuthEnv>
/** A tuple, whose members keep their types. */
type SomeRoutes = readonly [App, ...App[]]
export type FeatureRoutes = {
  /** Their requests need no key. */
  readonly open?: SomeRoutes
  /** `api`: the interface itself, for routes that make requests of it. */
  readonly routes?: (api: () => ApiOfFeatures) => SomeRoutes
  /** The requests that are tools over MCP. */
  readonly operations?: readonly AnyOperation[]
  /** Receives each change that a request with a key has made. */
  readonly changed?: (env: Env, change: Change) => Promise<void>
}
/** `operations`: what all features declare. */
type ApiOfFeatures = { fetch: App['fetch']; operations: readonly AnyOperation[] }

/** The headers of an answer that the script of a page can read. */
const READABLE = ['Retry-After', 'x-reflex-trace', 'x-reflex-scope', 'x-reflex-decided-by', 'x-reflex-unrecorded', 'x-should-retry']

/** The API of a deployment: routes of its features, the platform and its agents. */
export function createApp(agents: AgentRegistry, features: readonly (FeatureRoutes & DeploymentFeature)[]): App {
  const listeners = features.flatMap(({ changed }) => changed ?? [])
  const operations = features.flatMap((feature) => feature.operations ?? [])
  const base = new OpenAPIHono<AuthEnv>({ defaultHook: (judged) => void refuseInvalid(judged), router: new KnownPaths() })
  base.use('*', (c, next) => {
    hideInOutput(deploymentHider(c.env))
    c.set('agents', agents)
    c.set('features', features)
    c.set('changed', async (change) => void (await Promise.all(listeners.map((listen) => listen(c.env, change)))))
    return next()
  })
  // These need no key and cost more than a fixed answer.
  for (const path of ['/health/ready', '/v1/openapi.json', '/v1/docs']) base.use(path, addressLimited)

  const document = (): Document => completed(app.getOpenAPI31Document(documentInfo))
  const open = openRoutes(base, document)

  // Any page may call the API: browsers add no credentials, so a page needs a key.
  open.use('/v1/*', cors({ origin: '*', exposeHeaders: READABLE, maxAge: 600 }))
  for (const routes of features.flatMap(({ open: unkeyed = [] }) => unkeyed)) open.route('/', routes)

  // G7: the routes above are open; every route below needs a key.
  open.use('/v1/scopes/:scope/ws', ticketed(redeemTicket))
  open.use('/v1/scopes/:scope/stream', ticketed(redeemTicket))
  for (const path of ['/v1/*', '/health/*', '/metrics']) open.use(path, authenticated(keySource), rateLimited)

  // Before the platform's: some have a name where those have an id.
  for (const routes of features.flatMap((feature) => feature.routes?.(() => ({ fetch: app.fetch, operations })) ?? []))
    open.route('/', routes)
  const app = platformRoutes(open)
  addAgents(app, agents)
  app.onError(handleError)
  app.notFound(notFoundIn(app))
  return app
}

/** Adds the routes of the agents and what the descriptions of routes refer to. */
function addAgents(app: OpenAPIHono<AuthEnv>, agents: AgentRegistry): void {
  const { openAPIRegistry: registry } = app
  for (const { routes } of agents.agents) if (routes) app.route('/', routes)
  registry.registerComponent('securitySchemes', 'bearer', bearer)
  for (const [name, schema] of Object.entries(eventShapes(agents))) registry.registerComponent('schemas', name, schema)
}

const MOST_PATHS = 500
const LONGEST_PATH = 200

/** A router that remembers what paths lead to: a search costs more than the middleware does. */
export class KnownPaths<Handler> implements Router<Handler> {
  readonly name = 'known paths'
  readonly #router = new TrieRouter<Handler>()
  readonly #found = new Map<string, Result<Handler>>()

  add(method: string, path: string, handler: Handler): void {
    this.#found.clear()
    this.#router.add(method, path, handler)
  }

  match(method: string, path: string): Result<Handler> {
    const key = `${method} ${path}`
    const known = this.#found.get(key)
    if (known) return known
    const found = this.#router.match(method, path)
    if (this.#found.size >= MOST_PATHS) this.#found.clear()
    if (path.length <= LONGEST_PATH) this.#found.set(key, found)
    return found
  }
}
