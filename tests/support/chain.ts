import type { ReflexState, ReflexVersion } from '../../src/protocol/reflex.ts'
import { hashCode } from '../../src/reflexes/hash-code.ts'
import { byAgent, createVersion, freshId } from './reflexes.ts'

type Written = { id?: string; state?: ReflexState; scope?: string; scopes?: string[] }

/** `body` is the inside of `function reflex(context)`. Written by the agent of `scope` where that is given, else by an operator. */
export async function write(
  body: string,
  { id = freshId(), state = 'active', scope, scopes = ['*'] }: Written = {},
): Promise<ReflexVersion> {
  const code = `function reflex(context) {\n${body}\n}\n`
  const owner = scope === undefined ? { owner: 'ops', scopes } : byAgent(scope)
  return createVersion({ id, code, hash: await hashCode(code), state, now: Date.now(), ...owner })
}

export const calls = (tool: string, text = 'context.event.text'): string =>
  `return { action_type: 'call_tool', tool: ${JSON.stringify(tool)}, args: { text: ${text} } }`
