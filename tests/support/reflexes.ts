import { env } from 'cloudflare:workers'
import type { ReflexVersion } from '../../src/contract/reflex.ts'
import { sha256 } from '../../src/base/json.ts'
import { registerReflex, type NewReflex } from '../../src/artifacts/kinds.ts'
import type { RegisterResult } from '../../src/artifacts/registry.ts'
import { call, type Answer } from './http.ts'

/** An id that no other test has. */
export const freshId = (kind = 'reflex'): string => `${kind}-${crypto.randomUUID().slice(0, 13)}`

export const replying = (content: string): string =>
  `function reflex(context) {\n  return { action_type: 'reply', content: '${content}' }\n}\n`

/** A valid body, with an id of its own. */
export const buildReflex = (fields: Record<string, unknown> = {}) => ({ id: freshId(), code: replying('hello'), ...fields })

export const register = (fields: Record<string, unknown> = {}, key?: string): Promise<Answer> =>
  call('/v1/reflexes', { json: buildReflex(fields), ...(key === undefined ? {} : { key }) })

export async function registered(fields: Record<string, unknown> = {}, key?: string): Promise<string> {
  const { status, body, text } = await register(fields, key)
  if (status !== 201) throw new Error(text)
  return String(body.id)
}

/** Straight into the store, as by the key `alice` of every scope. */
export async function create(fields: Partial<NewReflex> = {}): Promise<RegisterResult<ReflexVersion>> {
  const code = fields.code ?? replying('hello')
  return registerReflex(env.DB, {
    id: freshId(),
    code,
    hash: await sha256(code),
    description: '',
    owner: 'alice',
    owner_id: 'key-of-alice',
    scopes: ['*'],
    state: 'active',
    provenance: { by: 'alice', scope: null, template: null, origin: null },
    now: 1,
    ...fields,
  })
}

export async function createVersion(fields: Partial<NewReflex> = {}): Promise<ReflexVersion> {
  const created = await create(fields)
  if (!created.ok) throw new Error(created.detail)
  return created.version
}

/** As the agent of a scope writes them, or a run of learning. */
export const byAgent = (scope: string, run?: string): Partial<NewReflex> => ({
  owner: `scope:${scope}`,
  owner_id: `scope:${scope}`,
  scopes: [scope],
  provenance: { by: 'test-agent', scope, template: null, origin: null, ...(run !== undefined && { run }) },
})
