import type { SentResponse } from '../../cli/lib/listen.ts'

/** The state of the cloud: registries, images, and apps with their running image. */
export type Stock = {
  subscription: string
  registries: Set<string>
  images: Set<string>
  apps: Map<string, string>
  before: Map<string, string>
  unhealthy: boolean
}
export type Request = { name: string; body: Record<string, unknown> }
export type Route = (request: Request) => SentResponse

const ok = (body: SentResponse['body']): SentResponse => ({ status: 200, body })
const missing = (what: string): SentResponse => ({ status: 404, body: { error: `there is no ${what}` } })

/** Routes by method and path; `:name` is the last part of the path. */
export function routesOver(stock: Stock): Readonly<Record<string, Route>> {
  const { registries, images, apps, before } = stock
  const imageOf = (body: Request['body']) => `${String(body['registry'])}.example/payments:${String(body['commit'])}`
  const app = (name: string, work: (image: string) => SentResponse): SentResponse => {
    const image = apps.get(name)
    return image === undefined ? missing(`app ${name}`) : work(image)
  }
  return {
    'GET /subscription': () => ok({ subscription: stock.subscription }),
    'GET /registries/:name': ({ name }) => ok({ registry: name, exists: registries.has(name) }),
    'PUT /registries/:name': ({ name }) => ok({ registry: name, created: registries.size < registries.add(name).size }),
    'DELETE /registries/:name': ({ name }) => ok({ registry: name, removed: registries.delete(name) }),
    'POST /images/build': ({ body }) => ok({ image: imageOf(body), cost_usd: 0.02 }),
    'POST /images/push': ({ body: { image } }) => ok({ image, pushed: images.size < images.add(String(image)).size }),
    'POST /images/remove': ({ body: { image } }) => ok({ image, removed: images.delete(String(image)) }),
    'POST /releases': ({ body }) => {
      images.add(imageOf(body))
      return ok({ image: imageOf(body), cost_usd: 0.001 })
    },
    'POST /withdrawals': ({ body }) => ok({ image: imageOf(body), removed: images.delete(imageOf(body)) }),
    'DELETE /empty-registries/:name': ({ name }) => {
      const is_empty = !Array.from(images).some((image) => image.startsWith(`${name}.`))
      return ok({ registry: name, removed: is_empty && registries.delete(name) })
    },
    'POST /rollbacks/:name': ({ name, body: { image } }) =>
      app(name, (running) => {
        if (running === image) apps.set(name, before.get(name) ?? running)
        return ok({ app: name, image: apps.get(name) ?? running })
      }),
    'GET /apps/:name': ({ name }) => app(name, (image) => ok({ app: name, image })),
    'PUT /apps/:name': ({ name, body: { image } }) =>
      app(name, () => {
        if (!images.has(String(image))) return missing(`image ${String(image)}`)
        before.set(name, apps.get(name) ?? '')
        apps.set(name, String(image))
        return ok({ app: name, image })
      }),
    'POST /apps/:name': ({ name }) => app(name, () => ok({ app: name, restarted: true })),
    'GET /healthz/:name': ({ name }) =>
      app(name, (image) => {
        if (stock.unhealthy) return { status: 500, body: { error: `${image} does not start` } }
        return ok({ healthy: true, image })
      }),
  }
}
