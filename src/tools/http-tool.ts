import { z } from 'zod'
import { defineTool, type ToolDefinition } from './define-tool.ts'
import type { HttpToolSetting } from '../contract/settings/outside-tools.ts'
import type { JsonFields } from '../base/json.ts'
import { HTTP_TIMEOUT_MS, sendHttp } from './http-request.ts'
import { fillKeySlots, textSlots } from './slot-text.ts'
import { undeclaredGlobal } from './tool-keys.ts'
import { argumentsRefusal, secretHosts, secretOf } from './tool-secrets.ts'

/** A scope's HTTP tool as the effect lane runs it. */
export function httpToolOf(setting: HttpToolSetting, { allowed_hosts }: { allowed_hosts: readonly string[] }): ToolDefinition {
  const { description, idempotence_key: key, repeatable = false, plans_only = false, undoes } = setting
  return defineTool<JsonFields>({
    description,
    input: inputOf(setting),
    repeatable,
    plans_only,
    ...(undoes && { undoes }),
    // The lane's own limit, so that a timeout counts as an effect that may have happened.
    timeout_ms: setting.timeout_ms ?? HTTP_TIMEOUT_MS,
    ...(key === undefined ? {} : { idempotence_key: (input: JsonFields) => keyOf(key, input) }),
    secret_refusal: (env, names) => argumentsRefusal(env, setting, names),
    execute: (input, { env, scope, fetch, signal, idempotence_key, secrets }) => {
      const secret = (name: string) => secretOf(env, name, scope)
      const secret_hosts = (name: string) => secretHosts(env, name)
      return sendHttp(setting, { allowed_hosts, secret, secret_hosts, fetch }, { input, signal, idempotence_key, secrets })
    },
  })
}

/** The input by its schema, else each slot is a text. Other fields need the schema's leave. */
function inputOf(setting: HttpToolSetting): z.ZodType<JsonFields> {
  if (setting.input === undefined) return textSlots(setting)
  return z.fromJSONSchema({ additionalProperties: false, ...setting.input }) as z.ZodType<JsonFields>
}

function keyOf(template: string, input: JsonFields): string {
  const key = fillKeySlots(template, input)
  const refusal = undeclaredGlobal(template, key)
  if (refusal !== null) throw new TypeError(refusal)
  return key
}
