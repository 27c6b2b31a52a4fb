import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import type { ReflexReference, ReflexState, ReflexVersion } from '../../src/contract/reflex.ts'
import { sha256 } from '../../src/base/json.ts'
import { byAgent, createVersion, freshId } from './reflexes.ts'
import { call } from './http.ts'
import { freshScope, hurry, note, type Note, stubOf, until } from './scopes.ts'
import { effects } from './test-agents.ts'

type Written = {
  id?: string
  state?: ReflexState
  scope?: string
  scopes?: string[]
  run?: string
  sharing?: ReflexVersion['sharing']
  now?: number
}

/**
 * `body` is the inside of `function reflex(context)`. Its author is the agent of `scope`, if given,
 * or an operator. `run`: the run of learning that wrote it.
 */
export async function write(
  body: string,
  { id = freshId(), state = 'active', scope, scopes = ['*'], run, sharing, now = Date.now() }: Written = {},
): Promise<ReflexVersion> {
  const code = `function reflex(context) {\n${body}\n}\n`
  const owner = scope === undefined ? { owner: 'ops', owner_id: 'key-of-ops', scopes } : byAgent(scope, run)
  return createVersion({ id, code, hash: await sha256(code), state, sharing, now, ...owner })
}

export const calls = (tool: string, text = 'context.event.text'): string =>
  `return { action_type: 'call_tool', tool: ${JSON.stringify(tool)}, args: { text: ${text} } }`

/** A scope whose chain is one active reflex, set by its owner. */
export async function acting(body: string, reference: Partial<ReflexReference> = {}, scope = freshScope()) {
  const { id } = await write(body)
  const stub = stubOf(scope)
  expect(await stub.configure({ reflexes: [{ id, ...reference }] }, 'ops', 'key-of-ops')).toMatchObject({ ok: true })
  return { id, scope, stub }
}

/** The actual effects of a scope, in order. */
export const did = (scope: string): string[] => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)

/** Notes `n0`, `n1`, … */
export const notes = (scope: string, count: number): Note[] => Array.from({ length: count }, (_, index) => note(scope, `n${index}`))

/** D1 does not know any reflexes meanwhile. */
export async function whileAway(work: () => Promise<void>): Promise<void> {
  await env.DB.exec('ALTER TABLE artifact_versions RENAME TO away')
  try {
    await work()
  } finally {
    await env.DB.exec('ALTER TABLE away RENAME TO artifact_versions')
  }
}

/** The approval that a scope asked for, once D1 has it. */
export async function promotionAsked(scope: string): Promise<{ id: string } | undefined> {
  await hurry(stubOf(scope))
  const list = async () => (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)).body.items as { id: string }[]
  const [approval] = await until(async () => ((await list()).length > 0 ? await list() : null), 'D1 has the question')
  return approval
}
