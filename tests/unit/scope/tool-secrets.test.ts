import { expect, test } from 'vitest'
import type { Env } from '../../../src/env.ts'
import { defaultSettings, type Settings } from '../../../src/contract/settings/settings.ts'
import { DeclaredTools } from '../../../src/engine/effects/declared-tools.ts'
import { patchRefusal, secretHosts, secretOf, secretsNamedIn, useRefusal } from '../../../src/tools/tool-secrets.ts'
import { part } from '../agents/agent-fixtures.ts'

const secret_headers = { authorization: 'REFLEX_TOOL_A' }
const http = { name: 'http.a', description: 'a', method: 'POST' as const, url: 'https://a.example/x', secret_headers }
const mcp = { name: 'a', url: 'https://a.example/mcp', secret_headers }

test.each([
  [undefined, []],
  ['', []],
  [' , ', []],
  ['a.example, *.b.example ,c.example:8443', ['a.example', '*.b.example', 'c.example:8443']],
  [
    ['a.example', ' *.b.example'],
    ['a.example', '*.b.example'],
  ],
  [{ host: 'a.example' }, []],
])('the variable %j names the hosts %j', (variable, hosts) => {
  expect(secretHosts(part<Env>({ REFLEX_TOOL_A: 'x', REFLEX_TOOL_A_HOSTS: variable }), 'REFLEX_TOOL_A')).toEqual(hosts)
})

test('only secrets for tools count, and neither their hosts nor values that are not strings', () => {
  const env = part<Env>({ REFLEX_ADMIN_KEY: 'x', REFLEX_TOOL_A_HOSTS: 'a.example', REFLEX_TOOL_B: 5 })
  expect(secretOf(env, 'REFLEX_TOOL_B', 's')).toBeUndefined()
  expect(secretOf(env, 'REFLEX_ADMIN_KEY', 's')).toBeUndefined()
  expect(secretOf(env, 'REFLEX_TOOL_A_HOSTS', 's')).toBeUndefined()
})

test.each(['http.a', 'mcp.a.look'])('%s of older settings is not available once the deployment no longer names its host', (name) => {
  const settings: Settings = { ...defaultSettings, allowed_hosts: ['a.example'], http_tools: [http], mcp_servers: [mcp] }
  const find = (bindings: object) =>
    new DeclaredTools({ scope: 's', env: part<Env>(bindings), settings: () => settings, fetch, now: () => 0 }).find(name)
  expect(find({ REFLEX_TOOL_A: 'x', REFLEX_TOOL_A_HOSTS: 'a.example' })).toMatchObject({ ok: true })
  expect(find({ REFLEX_TOOL_A: 'x', REFLEX_TOOL_A_HOSTS: 'b.example' })).toEqual({
    ok: false,
    detail: expect.stringMatching(/^tool .* is not available: the secret REFLEX_TOOL_A is not sent there: the host a.example is not among/),
  })
  expect(find({ REFLEX_TOOL_A: 'x' })).toEqual({ ok: false, detail: expect.stringContaining('in the variable REFLEX_TOOL_A_HOSTS') })
})

test('a patch that does not declare a tool again is not rejected for it', () => {
  expect(patchRefusal(part<Env>({}), { when: 'true', http_tools: null })).toBeNull()
  expect(patchRefusal(part<Env>({}), { mcp_servers: [mcp] })).toMatch(/^mcp_servers: a: the secret REFLEX_TOOL_A is sent nowhere/)
})

test('a secret is used in the scopes that the deployment lists, and without a list where a key of all scopes says so', () => {
  const env = part<Env>({ REFLEX_TOOL_A: 'x', REFLEX_TOOL_A_SCOPES: 'shop/*, desk', REFLEX_WEBHOOK_B: 'y' })
  expect(['shop/1', 'desk', 'desk/1'].map((scope) => secretOf(env, 'REFLEX_TOOL_A', scope))).toEqual(['x', 'x', undefined])
  expect(secretOf(env, 'REFLEX_TOOL_A_SCOPES', 'desk')).toBeUndefined()
  expect(secretOf(env, 'REFLEX_WEBHOOK_B', 'any')).toBe('y')
  const asked = (name: string, scope: string, ...scopes: string[]) => useRefusal(env, name, { scope, key: { scopes } })
  expect(asked('REFLEX_TOOL_A', 'shop/1', 'shop/*')).toBeNull()
  expect(asked('REFLEX_TOOL_A', 'other', '*')).toContain('is not for the scope other')
  expect(asked('REFLEX_WEBHOOK_B', 'shop/1', 'shop/*')).toContain('REFLEX_WEBHOOK_B_SCOPES')
  expect(asked('REFLEX_WEBHOOK_B', 'shop/1', '*')).toBeNull()
})

test('the secrets of settings are found wherever they name them', () => {
  const settings = { http_tools: [http], blackboard: { ctx: { key: { secret: 'REFLEX_TOOL_C' } } }, instructions: 'use REFLEX_TOOL_D' }
  expect(secretsNamedIn(settings).toSorted()).toEqual(['REFLEX_TOOL_A', 'REFLEX_TOOL_C'])
})
