import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, test } from 'vitest'
import { blocksOf } from '../../../../src/http/scopes/sse-blocks.ts'
import { adminKey, keyFor, problem, workerFetch } from '../../../support/http.ts'
import { ask, askModern } from '../../../support/mcp.ts'
import { entriesOf, freshScope, stubOf } from '../../../support/scopes.ts'
import { effectGates } from '../../../support/test-agents.ts'
import { skill, twoSteps } from '../../../support/two-step-skill.ts'

const nameOf = (id: string): string => id.replaceAll('.', '__')
const given = { what: 'x', reflex_why: 'do it twice' }
const _meta = { progressToken: 'p-1' }
type Progress = { progress: number; total?: number | undefined; message?: string | undefined }
type Called = { name: string; arguments: object; onprogress: (progress: Progress) => void }

const about = { name: 'test', version: '1' }
const at = (scope: string) => new URL(`https://reflex.test/v1/mcp?scope=${encodeURIComponent(scope)}`)
const requestInit = { headers: { authorization: `Bearer ${adminKey}` } }

/** A call by the official client of each generation of the protocol. */
const clients: Record<string, (scope: string, call: Called) => Promise<{ structuredContent?: unknown }>> = {
  '2025-11-25': async (scope, { onprogress, ...call }) => {
    const client = new Client(about)
    await client.connect(new StreamableHTTPClientTransport(at(scope), { requestInit, fetch: workerFetch }))
    return client.callTool({ ...call, arguments: { ...call.arguments } }, undefined, { onprogress }) as Promise<{
      structuredContent?: unknown
    }>
  },
  '2026-07-28': async (scope, { onprogress, ...call }) => {
    const client = new ModernClient(about, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
    await client.connect(new ModernTransport(at(scope), { requestInit, fetch: workerFetch }))
    return client.callTool({ ...call, arguments: { ...call.arguments } }, { onprogress })
  },
}

describe.each(Object.entries(clients))('a client of the version %s that wants progress', (_, callTool) => {
  test('hears of each step once, as it ends, before the result', async () => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const timed = (text: string, timeout_ms: number) => ({ tool: 'act', args: { text }, timeout_ms })
    const steps = [...plan.steps.slice(0, 1), timed('second', 20_000), timed('hang', 50)]
    const gate = Promise.withResolvers<void>()
    effectGates.set(`${scope} second`, gate.promise)
    const heard: { progress: Progress; applied: Promise<number> }[] = []
    const onprogress = (progress: Progress) =>
      void heard.push({
        progress,
        applied: entriesOf(stubOf(scope), 'skill-applied').then(({ length }) => {
          gate.resolve()
          return length
        }),
      })
    const result = await callTool(scope, { name: nameOf(await skill({ plan: { ...plan, steps } })), arguments: given, onprogress })
    expect(result.structuredContent).toMatchObject({ steps: [{ status: 'ok' }, { status: 'ok' }, { status: 'timeout' }] })
    expect(heard.map(({ progress }) => progress)).toMatchObject([
      { progress: 1, total: 3, message: 'act: ok' },
      { progress: 2, total: 3, message: 'act: ok' },
      { progress: 3, total: 3, message: 'act: timeout' },
    ])
    // The run was not at its end when the first step was heard of.
    expect(await heard[0]?.applied).toBe(0)
  })

  test('hears of the steps of its own run alone', async () => {
    const scope = freshScope()
    const name = nameOf(await skill())
    const calls = Array.from({ length: 3 }, async () => {
      const heard: number[] = []
      await callTool(scope, { name, arguments: given, onprogress: ({ progress }) => void heard.push(progress) })
      return heard
    })
    expect(await Promise.all(calls)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
  })
})

test('a stream that is followed no longer is left at once, though nothing comes of it', async () => {
  const { readable, writable } = new IdentityTransformStream()
  const stop = new AbortController()
  const blocks = blocksOf(new Response(readable), stop.signal)
  const next = blocks.next()
  stop.abort()
  expect(await next).toEqual({ done: true, value: undefined })
  // Its source hears of it.
  await expect(writable.getWriter().write(new Uint8Array(1))).rejects.toBeDefined()
})

describe.each([
  ['2025-11-25', ask],
  ['2026-07-28', askModern],
] as const)('in the version %s', (_, send) => {
  test('a call is answered by a stream only where it asks for progress, and there is some', async () => {
    const scope = freshScope()
    const name = nameOf(await skill())
    const typeOf = async (params: Record<string, unknown>) => (await send(scope, 'tools/call', { name, ...params })).type
    expect(await typeOf({ arguments: given })).toContain('application/json')
    expect(await typeOf({ arguments: given, _meta })).toContain('text/event-stream')
    expect(await typeOf({ arguments: { ...given, reflex_why: 'something else' }, _meta })).toContain('application/json')
    expect(await typeOf({ arguments: given, _meta: { ..._meta, 'reflex/dry_run': true } })).toContain('application/json')
  })

  test('a refused key gets the answer that it gets without a token', async () => {
    const scope = freshScope()
    const params = { name: nameOf(await skill()), arguments: given, _meta }
    expect(await send(scope, 'tools/call', params, { key: await keyFor(['viewer']) })).toMatchObject(problem(403))
    expect((await send(scope, 'tools/call', { ...params, name: 'no__such' })).type).toContain('application/json')
  })
})
