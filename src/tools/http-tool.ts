import { jsonSchema } from 'ai'
import { z } from 'zod'
import { parseOf } from '../base/json-schema.ts'
import { defineTool, type ToolDefinition, undeclaredGlobal } from './define-tool.ts'
import type { HttpToolSetting } from '../contract/settings/outside-tools.ts'
import { isJsonFields, type JsonFields } from '../base/json.ts'
import { HTTP_TIMEOUT_MS, sendHttp } from './http-request.ts'
import { fillKeySlots, textSlots } from './slot-text.ts'
import { argumentsRefusal, secretHosts, secretOf } from './tool-secrets.ts'

type Allowed = { allowed_hosts: readonly string[]; effect_timeout_ms?: number }

/** A scope's HTTP tool as the effect lane runs it. */
export function httpToolOf(setting: HttpToolSetting, { allowed_hosts, effect_timeout_ms = HTTP_TIMEOUT_MS }: Allowed): ToolDefinition {
  const { description, method, idempotence_key: key, repeatable = false, plans_only = false, undoes, destinations, untrusted } = setting
  return defineTool({
    description,
    ...inputOf(setting),
    repeatable,
    plans_only,
    ...(undoes && { undoes }),
    ...(destinations && { destinations }),
    ...(untrusted !== undefined && { untrusted }),
    sends: { ...queryOf(setting.url), ...(isJsonFields(setting.body) && setting.body) },
    reads: repeatable || method === 'GET',
    // The lane's own limit, so that a timeout counts as an effect that may have happened.
    timeout_ms: setting.timeout_ms ?? Math.min(HTTP_TIMEOUT_MS, effect_timeout_ms),
    ...(key === undefined ? {} : { idempotence_key: (input: JsonFields) => keyOf(key, input) }),
    secret_refusal: (env, names) => argumentsRefusal(env, setting, names),
    execute: (input, { env, scope, fetch, signal, idempotence_key, secrets }) => {
      const secret = (name: string) => secretOf(env, name, scope)
      const secret_hosts = (name: string) => secretHosts(env, name)
      return sendHttp(setting, { allowed_hosts, secret, secret_hosts, fetch }, { input, signal, idempotence_key, secrets })
    },
  })
}

/** The fields of an address after its `?`, with their slots. */
const queryOf = (url: string): Record<string, string> =>
  Object.fromEntries(
    (url.split('?')[1] ?? '').split('&').map((pair) => {
      const at = pair.indexOf('=')
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )

/** The input by its schema, else each slot is a text. Other fields need the schema's leave. */
function inputOf(setting: HttpToolSetting): Pick<ToolDefinition<JsonFields>, 'input' | 'shown_input'> {
  if (setting.input === undefined) return { input: textSlots(setting) }
  const schema = { additionalProperties: false, ...setting.input }
  const parse = parseOf(schema)
  const input = z.unknown().transform((value, context) => {
    const parsed = parse(value)
    // The schema is one of an object.
    if (parsed.ok) return parsed.value as JsonFields
    for (const issue of parsed.issues) context.addIssue({ ...issue, code: 'custom' })
    return z.NEVER
  })
  const validate = (value: unknown) => {
    const { success, data, error } = input.safeParse(value)
    return success ? { success, value: data } : { success, error }
  }
  return { input, shown_input: jsonSchema(schema, { validate }) }
}

function keyOf(template: string, input: JsonFields): string {
  const key = fillKeySlots(template, input)
  const refusal = undeclaredGlobal(template, key)
  if (refusal !== null) throw new TypeError(refusal)
  return key
}
