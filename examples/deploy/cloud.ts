import { routesOver, type Route, type Stock } from './cloud-routes.ts'
import { listen, type SentResponse, type ReceivedRequest } from '../../cli/lib/listen.ts'

export type Cloud = Stock & {
  /** The host as the setting `allowed_hosts` names it. */
  host: string
  url: string
  token: string
  /** Requests that changed something, in order. */
  changes: string[]
  stop: () => void
}

/**
 * A cloud in memory: a container registry, an image builder and an app service. It accepts only
 * requests with its token.
 */
export async function startCloud(token: string): Promise<Cloud> {
  const running = 'acmeregistry.example/payments:1a2b3c4'
  const stock: Stock = {
    subscription: 'acme-staging',
    registries: new Set(['acmeregistry']),
    images: new Set([running]),
    apps: new Map([
      ['payments-stg-webapp', running],
      ['orders-stg-webapp', running],
    ]),
    before: new Map(),
    unhealthy: false,
  }
  const routes = routesOver(stock)
  const changes: string[] = []
  const changed = onceByKey((asked) => {
    changes.push(`${asked.method} ${asked.url}`)
    return routed(routes, asked)
  })
  const { host, stop } = await listen((asked) => {
    if (asked.headers.authorization !== `Bearer ${token}`) return { status: 401, body: { error: 'this cloud wants its token' } }
    return asked.method === 'GET' ? routed(routes, asked) : changed(asked)
  })
  return Object.assign(stock, { host, url: `http://${host}`, token, changes, stop })
}

/** A repeated request with the same Idempotency-Key gets the first response and changes nothing. */
function onceByKey(answer: (asked: ReceivedRequest) => SentResponse): (asked: ReceivedRequest) => SentResponse {
  const given = new Map<string, SentResponse>()
  return (asked) => {
    const key = asked.headers['idempotency-key']
    if (typeof key !== 'string') return answer(asked)
    const known = given.get(key) ?? answer(asked)
    if (known.status === 200) given.set(key, known)
    return known
  }
}

function routed(routes: Readonly<Record<string, Route>>, { method, url, body }: ReceivedRequest): SentResponse {
  const [, collection = '', name = ''] = url.split('/')
  const route = routes[`${method} ${url}`] ?? routes[`${method} /${collection}/:name`]
  if (!route) return { status: 404, body: { error: `nothing is at ${url}` } }
  return route({ name: decodeURIComponent(name), body: body === '' ? {} : (JSON.parse(body) as SentResponse['body']) })
}
