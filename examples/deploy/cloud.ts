import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

type Fields = Record<string, unknown>
type Answer = { status: number; body: Fields }
type Request = { name: string; body: Fields }

export type Cloud = {
  /** `127.0.0.1:PORT`, as the setting `allowed_hosts` names it. */
  host: string
  url: string
  token: string
  subscription: string
  apps: Map<string, string>
  /** Requests that changed something, in order. */
  changes: string[]
  /** While it is set, what is deployed is not healthy. */
  unhealthy: boolean
  stop: () => void
}

const ok = (body: Fields): Answer => ({ status: 200, body })

/** A cloud that does nothing but remember: a container registry, a builder of images, an app service. It takes requests with its token alone. */
export async function startCloud(token: string): Promise<Cloud> {
  const registries = new Set(['acmeregistry'])
  const images = new Set(['acmeregistry.example/payments:1a2b3c4'])
  const answered = new Map<string, Answer>()
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const cloud: Cloud = {
    host,
    url: `http://${host}`,
    token,
    subscription: 'acme-staging',
    apps: new Map([['payments-stg-webapp', 'acmeregistry.example/payments:1a2b3c4']]),
    changes: [],
    unhealthy: false,
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }

  const routes: Record<string, (request: Request) => Answer> = {
    'GET /subscription': () => ok({ subscription: cloud.subscription }),
    'GET /registries/:name': ({ name }) => ok({ registry: name, exists: registries.has(name) }),
    'PUT /registries/:name': ({ name }) => ok({ registry: name, created: registries.size < registries.add(name).size }),
    'DELETE /registries/:name': ({ name }) => ok({ registry: name, removed: registries.delete(name) }),
    'POST /images/build': ({ body: { registry, commit } }) =>
      ok({ image: `${String(registry)}.example/payments:${String(commit)}`, cost_usd: 0.02 }),
    'POST /images/push': ({ body: { image } }) => ok({ image, pushed: images.size < images.add(String(image)).size }),
    'POST /images/remove': ({ body: { image } }) => ok({ image, removed: images.delete(String(image)) }),
    'GET /apps/:name': ({ name }) => app(name, (image) => ok({ app: name, image })),
    'PUT /apps/:name': ({ name, body: { image } }) =>
      app(name, () => {
        if (!images.has(String(image))) return { status: 404, body: { error: `there is no image ${String(image)}` } }
        cloud.apps.set(name, String(image))
        return ok({ app: name, image })
      }),
    'POST /apps/:name': ({ name }) => app(name, () => ok({ app: name, restarted: true })),
    'GET /healthz/:name': ({ name }) =>
      app(name, (image) => (cloud.unhealthy ? { status: 500, body: { error: `${image} does not start` } } : ok({ healthy: true, image }))),
  }

  const app = (name: string, work: (image: string) => Answer): Answer => {
    const image = cloud.apps.get(name)
    return image === undefined ? { status: 404, body: { error: `there is no app ${name}` } } : work(image)
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request
    const body = await text(request)
    const { status, body: answer } = headers.authorization === `Bearer ${token}` ? answerOnce(method, url, headers, body) : denied
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }

  /** A repeated request under the same Idempotency-Key gets the answer that it had, and changes nothing. */
  function answerOnce(method: string, url: string, headers: IncomingMessage['headers'], body: string): Answer {
    if (method === 'GET') return route(method, url, body)
    const key = headers['idempotency-key']
    const known = typeof key === 'string' ? answered.get(key) : undefined
    if (known) return known
    const answer = route(method, url, body)
    cloud.changes.push(`${method} ${url}`)
    if (typeof key === 'string' && answer.status === 200) answered.set(key, answer)
    return answer
  }

  function route(method: string, url: string, body: string): Answer {
    const [, collection = '', name = ''] = url.split('/')
    const handler = routes[`${method} ${url}`] ?? routes[`${method} /${collection}/:name`]
    const fields: Fields = body === '' ? {} : JSON.parse(body)
    return handler ? handler({ name: decodeURIComponent(name), body: fields }) : { status: 404, body: { error: `nothing is at ${url}` } }
  }

  return cloud
}

const denied: Answer = { status: 401, body: { error: 'this cloud wants its token' } }
