import { tool, type Tool } from 'ai'
import type { JsonFields } from '../../base/json.ts'
import { sendHttp, type HttpToolDefinition, type HttpToolOptions } from '../../tools/http-request.ts'
import { slotsIn } from '../../base/slots.ts'
import { textSlots } from '../../tools/slot-text.ts'
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
    inputSchema: definition.input ?? textSlots(definition).strip(),
    execute: (input: JsonFields, { abortSignal: signal, idempotence_key }: ReflexToolOptions) =>
      sendHttp(definition, options, { input, signal, idempotence_key }),
  })
}
