import { jsonSchema, tool, type Tool } from 'ai'
import type { JsonFields } from '../base/json.ts'
import { sendHttp, type HttpToolDefinition, type HttpToolOptions } from '../tools/http-request.ts'
import { slotsIn } from '../tools/slot-text.ts'
import type { ReflexToolOptions } from './tool-proxy.ts'

/** The tools by name. Throws if a definition has a slot in its host. */
export function httpTools(definitions: readonly HttpToolDefinition[], options: HttpToolOptions): Record<string, Tool> {
  return Object.fromEntries(definitions.map((definition) => [definition.name, httpTool(definition, options)]))
}

export function httpTool(definition: HttpToolDefinition, options: HttpToolOptions): Tool {
  const [origin = ''] = /^[a-z]+:\/\/[^/?#]*/i.exec(definition.url) ?? []
  if (origin === '' || slotsIn(origin).length > 0) throw new TypeError(`${definition.name}: the host in ${definition.url} must be fixed`)
  return tool({
    description: definition.description,
    inputSchema: definition.input ?? textSchema(definition),
    execute: (input: JsonFields, { abortSignal: signal, idempotence_key }: ReflexToolOptions) =>
      sendHttp(definition, options, { input, signal, idempotence_key }),
  })
}

function textSchema({ url, headers = {}, body = null }: HttpToolDefinition) {
  const names = [...new Set(slotsIn([url, ...Object.values(headers), body]))]
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  return jsonSchema<JsonFields>(
    { type: 'object', properties, required: names, additionalProperties: false },
    { validate: (value) => validated(value, names) },
  )
}

function validated(value: unknown, names: readonly string[]): { success: true; value: JsonFields } | { success: false; error: Error } {
  const fields = typeof value === 'object' && value !== null ? (value as JsonFields) : {}
  const wrong = names.find((name) => typeof fields[name] !== 'string')
  return wrong === undefined ? { success: true, value: fields } : { success: false, error: new Error(`${wrong} must be a text`) }
}
