import { createHash } from 'node:crypto'
import type { Agent } from '../agents/define-agent.ts'
import type { KeyOf } from '../reflexes/agreement.ts'

/** Names a tool call as the scope's effect lane does: by the tool's own key, and by the arguments as its schema has parsed them. */
export const toolKeys =
  ({ tools }: Pick<Agent, 'tools'>, scope: string): KeyOf =>
  (name, args) => {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    const parsed = tool?.input.safeParse(args)
    if (!tool || !parsed?.success) return null
    const arguments_hash = createHash('sha256')
      .update(JSON.stringify(parsed.data) ?? 'undefined')
      .digest('hex')
    return { idempotence_key: tool.idempotence_key?.(parsed.data, scope) ?? null, arguments_hash }
  }
