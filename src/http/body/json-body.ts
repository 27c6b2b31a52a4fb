import { createMiddleware } from 'hono/factory'
import type { Env } from '../../env.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { checkJson } from '../../base/check-json.ts'
import { parseJson } from '../../base/parse-json.ts'
import { Problem } from '../../contract/problem.ts'
import { deploymentHider, deploymentSecrets, secretHider } from '../../base/secrets.ts'
import { readBody } from './read-body.ts'
import { invalid } from '../problems/refusals.ts'

const JSON_TYPE = /^application\/json *(;|$)/i

/**
 * Reads a JSON body whole and within its limit, before the route's schema judges it. Hono's own validator takes a body of another type for `{}`, has
 * no limit, and does not say where the JSON breaks off. What no schema should have to judge, such as nesting without an end, stops here.
 */
const body = ({ optional = false, hides = false }: { optional?: boolean; hides?: boolean }) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const type = c.req.header('Content-Type')
    const sent = await readBody(c.req.raw)
    const text = hides ? deploymentHider(c.env).text(sent) : sent
    const absent = optional && text.trim() === ''
    if (!absent) check(type, text)
    refuseSecrets(c.env, text)
    // Where Hono's validator looks first: it keeps promises there, whatever the type says. Without a Content-Type it takes `{}` by itself.
    const cache: { text?: unknown } = c.req.bodyCache
    cache.text = Promise.resolve(absent && type !== undefined ? '{}' : text)
    await next()
  })

export const jsonBody = body({})
/** A body that may be left out: it is `{}` then. */
export const optionalJsonBody = body({ optional: true })
/** What a machine reports, such as an error's text: secrets are taken out of it, where other bodies are refused. */
export const reportBody = body({ hides: true })

function check(type: string | undefined, text: string): void {
  if (!JSON_TYPE.test(type ?? '')) {
    throw new Problem({
      status: 415,
      type: 'urn:reflex:problem:unsupported-media-type',
      title: 'Unsupported media type',
      detail: 'Send the body as JSON, with Content-Type: application/json.',
      headers: { Accept: 'application/json' },
    })
  }
  const parsed = parseJson(text)
  if (!parsed.ok) throw malformed(text.trim() === '' ? 'The body is empty.' : `The body is not JSON: ${parsed.message}.`)
  const json = checkJson(parsed.value)
  if (!json.ok) throw invalid(`The body is not valid: ${`${json.error.path} ${json.error.message}`.trim()}.`, [json.error])
}

/** What people send is kept and shown: settings, code, manifests, reasons. Events are hidden in, not refused: nobody may see to what stands in them. */
function refuseSecrets(env: Env, text: string): void {
  if (!deploymentHider(env).finds(text)) return
  const named = deploymentSecrets(env).find(({ value }) => secretHider([value]).finds(text))
  throw invalid(
    `The body holds the value of the deployment's secret ${named?.name ?? ''}, which is never stored or shown. ` +
      'Name the secret instead: in secret_headers of a tool, or as {"secret": "REFLEX_TOOL_…"} on the blackboard.',
    [],
  )
}

const malformed = (detail: string): Problem =>
  new Problem({ status: 400, type: 'urn:reflex:problem:malformed-body', title: 'Malformed body', detail })
