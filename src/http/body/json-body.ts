import { createMiddleware } from 'hono/factory'
import type { Env } from '../../env.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { checkJson } from '../../base/check-json.ts'
import { parseJson } from '../../base/parse-json.ts'
import { deploymentHider, deploymentSecrets, secretHider } from '../../base/secrets.ts'
import { readBody, readFile } from './read-body.ts'
import { invalid, refusal } from '../problems/refusals.ts'

const JSON_TYPE = /^application\/json *(;|$)/i

/**
 * Reads and checks a JSON body before the route's schema. Hono's validator accepts other types as
 * `{}`, has no size limit, and does not locate errors.
 */
const body = ({ optional = false, hides = false }: { optional?: boolean; hides?: boolean }) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const type = c.req.header('Content-Type')
    const sent = await readBody(c.req.raw)
    const text = hides ? deploymentHider(c.env).text(sent) : sent
    const absent = optional && text.trim() === ''
    if (!absent) check(type, text)
    refuseSecrets(c.env, text)
    // Hono's validator reads this cache first, and assumes `{}` without a Content-Type.
    const cache: { text?: unknown } = c.req.bodyCache
    cache.text = Promise.resolve(absent && type !== undefined ? '{}' : text)
    await next()
  })

export const jsonBody = body({})
export const optionalJsonBody = body({ optional: true })
/** A report by a machine, such as an error text: secrets are masked instead of rejected. */
export const reportBody = body({ hides: true })

/** An exported file, which may be larger and compressed. It holds no secret of a deployment. */
export const fileBody = createMiddleware<AuthEnv>(async (c, next) => {
  const text = await readFile(c.req.raw)
  check(c.req.header('Content-Type'), text)
  const cache: { text?: unknown } = c.req.bodyCache
  cache.text = Promise.resolve(text)
  await next()
})

function check(type: string | undefined, text: string): void {
  if (!JSON_TYPE.test(type ?? '')) {
    const detail = 'Send the body as JSON, with Content-Type: application/json.'
    throw refusal('unsupported-media-type', detail, { headers: { Accept: 'application/json' } })
  }
  const parsed = parseJson(text)
  if (!parsed.ok) throw refusal('malformed-body', text.trim() === '' ? 'The body is empty.' : `The body is not JSON: ${parsed.message}.`)
  const json = checkJson(parsed.value)
  if (!json.ok) throw invalid(`The body is invalid: ${`${json.error.path} ${json.error.message}`.trim()}.`, [json.error])
}

/** Rejects secrets in what people send. Events are masked instead. */
function refuseSecrets(env: Env, text: string): void {
  if (!deploymentHider(env).finds(text)) return
  const named = deploymentSecrets(env).find(({ value }) => secretHider([value]).finds(text))
  const held = named ? `the value of the deployment's secret ${named.name}` : 'an API key'
  throw invalid(
    `The body holds ${held}, which is never stored or shown. ` +
      'Name the secret instead: in secret_headers of a tool, or as {"secret": "REFLEX_TOOL_…"} on the blackboard.',
    [],
  )
}
