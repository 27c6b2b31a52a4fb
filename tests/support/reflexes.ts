import { env } from 'cloudflare:workers'
import { agentOwner, type ReflexState, type ReflexVersion } from '../../src/protocol/reflex.ts'
import { hashCode } from '../../src/reflexes/hash-code.ts'
import { createReflexVersion } from '../../src/store/change-reflexes.ts'

let count = 0
export const freshReflex = (): string => `reflex-${(count += 1)}-${crypto.randomUUID().slice(0, 8)}`

/** `body` is the inside of `function reflex(context)`. Written by the agent of `scope` where that is given, else by an operator. */
export async function register(
  body: string,
  {
    id = freshReflex(),
    state = 'active',
    scope = null,
    scopes = ['*'],
  }: { id?: string; state?: ReflexState; scope?: string | null; scopes?: string[] } = {},
): Promise<ReflexVersion> {
  const code = `function reflex(context) {\n${body}\n}\n`
  const created = await createReflexVersion(env.DB, {
    id,
    code,
    hash: await hashCode(code),
    description: '',
    owner: scope === null ? 'ops' : agentOwner(scope),
    scopes: scope === null ? scopes : [scope],
    state,
    provenance: { by: scope === null ? 'ops' : 'test-agent', scope, template: null, origin: null },
    now: Date.now(),
  })
  if (!created.ok) throw new Error(created.detail)
  return created.version
}

export const calls = (tool: string, text = 'context.event.text'): string =>
  `return { action_type: 'call_tool', tool: ${JSON.stringify(tool)}, args: { text: ${text} } }`
