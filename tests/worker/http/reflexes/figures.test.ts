import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { ActionCall } from '../../../../src/contract/action.ts'
import type { ReflexRecording } from '../../../../src/contract/reflex.ts'
import { countRun, emptyMetrics } from '../../../../src/reflexes/metrics.ts'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { tellReflexMetrics } from '../../../../src/store/artifacts/reflex-metrics.ts'
import { call, callWith, keyFor, problem, scopePath } from '../../../support/http.ts'
import { registered, replying } from '../../../support/reflexes.ts'
import { stubOf } from '../../../support/scopes.ts'

const ran = (runs: number) => {
  const metrics = emptyMetrics()
  for (let run = 0; run < runs; run += 1) countRun(metrics, { reason: 'fired', fuel: 1000, duration_us: 50 })
  return metrics
}
type Row = { scope: string; version: number; runs: number }
const shortly = ({ scope, version, runs }: Row) => `${scope}@${version}: ${runs}`

describe('the metrics of a reflex', () => {
  test('are summed by version and in all, for the scopes that the key covers', async () => {
    const id = await registered()
    const tell = (scope: string, version: number, runs: number) =>
      tellReflexMetrics(env.DB, { scope, seq: 1, now: 1 }, [{ reflex_id: id, version, metrics: ran(runs) }])
    await tell('team-a/x', 1, 2)
    await tell('team-a/y', 1, 3)
    await tell('team-a/x', 2, 5)
    await tell('team-b/z', 1, 100)
    const metrics = async (ref: string, key?: string) => (await call(`/v1/reflexes/${ref}/metrics`, key === undefined ? {} : { key })).body
    const all = await metrics(id)
    expect(all).toMatchObject({
      id,
      versions: [
        { version: 2, runs: 5 },
        { version: 1, runs: 105 },
      ],
      total: { runs: 110, fired: 110, agreement: null },
    })
    expect(all.total).toMatchObject({ fuel: { max: 1000 }, duration_us: { p50: 50, p90: 50, p99: 50, max: 50 } })
    expect(JSON.stringify(all)).not.toContain('buckets')
    expect(all.scopes).toHaveLength(4)
    const mine = await metrics(id, await keyFor(['viewer'], ['team-a/*']))
    expect(mine.scopes.map(shortly).sort()).toEqual(['team-a/x@1: 2', 'team-a/x@2: 5', 'team-a/y@1: 3'])
    expect(mine).toMatchObject({
      versions: [
        { version: 2, runs: 5 },
        { version: 1, runs: 5 },
      ],
      total: { runs: 10 },
    })
    expect((await metrics(`${id}@1`)).versions).toMatchObject([{ version: 1, runs: 105 }])
  })

  test('are nothing where it never ran', async () => {
    const { status, body } = await call(`/v1/reflexes/${await registered()}/metrics`)
    expect({ status, body }).toMatchObject({ status: 200, body: { versions: [], scopes: [], total: { runs: 0, fuel: { max: 0 } } } })
  })

  test('are reported by a scope with its counters', async () => {
    const told = { counters: { events: 7 }, reflexes: [{ reflex_id: 'r', version: 3, metrics: ran(2) }] }
    const SCOPE = { getByName: () => ({ metrics: async () => told }) }
    const { status, body } = await callWith({ SCOPE }, scopePath('team-a/x', '/metrics'))
    expect(status).toBe(200)
    expect(body).toMatchObject({ counters: { events: 7 }, reflexes: [{ reflex_id: 'r', version: 3, runs: 2, fuel: { max: 1000 } }] })
  })
})

type Request = { since: number; after: number; limit: number }

describe('an evaluation', () => {
  const recording = (seq: number, content: string, decision: ReflexRecording['decision'] = null): string =>
    JSON.stringify({ seq, event_id: `e${seq}`, at: 'now', source: 'recorded', context: { ...sampleContext, event: { content } }, decision })
  const decided = (content: string): ReflexRecording['decision'] => ({ by: 'turn', acts: [{ act: 'reply', content }] })
  const scopeWith = (pages: string[][], asked: Request[] = []) => ({
    getByName: () => ({
      identify: (calls: ActionCall[]) => stubOf('test/x').identify(calls),
      recordings: async (request: Request) => {
        asked.push(request)
        return { recordings: pages[request.after] ?? [], next: request.after + 1 < pages.length ? request.after + 1 : null }
      },
    }),
  })
  const code = 'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "hi" } : null }'
  const evaluate = (id: string, SCOPE: object, json: object = {}) =>
    callWith({ SCOPE }, `/v1/reflexes/${id}/evaluate`, { json: { scope: 'test/x', window: '10m', ...json } })

  test('compares its decisions on recorded contexts with the actual ones', async () => {
    const asked: Request[] = []
    const pages = [[recording(1, 'hello', decided('Hi')), recording(2, 'hello', decided('bye'))], [recording(3, 'other', decided('x'))]]
    const { status, body } = await evaluate(await registered({ code }), scopeWith(pages, asked))
    expect(status).toBe(200)
    expect(body).toMatchObject({
      contexts: { recorded: 3, rebuilt: 0, undecided: 0 },
      fires: 2,
      passes: { null: 1 },
      agreement: { agreed: 1, disagreed: 1, not_compared: 0, rate: 0.5 },
      missed: 1,
      disagreements: [{ event_id: 'e2', action: { content: 'hi' }, decided: [{ act: 'reply', content: 'bye' }] }],
      truncated: false,
    })
    expect(asked.map(({ after }) => after)).toEqual([0, 1])
    expect(Date.now() - (asked[0]?.since ?? 0)).toBeGreaterThanOrEqual(600_000)
    expect(Date.now() - (asked[0]?.since ?? 0)).toBeLessThan(660_000)
  })

  test("compares a tool's calls as the scope would name them", async () => {
    const calling = 'function reflex(context) { return { action_type: "call_tool", tool: context.event.content, args: { text: "a" } } }'
    const id = await registered({ code: calling })
    const called = (tool: string, idempotence_key: string | null, arguments_hash: string): ReflexRecording['decision'] => ({
      by: 'turn',
      acts: [{ act: 'call_tool', tool, idempotence_key, arguments_hash }],
    })
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('{"text":"a"}')))
    const hash = Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('')
    const agreed = [recording(1, 'act', called('act', null, hash)), recording(2, 'act_once', called('act_once', 'once:a', 'another'))]
    const disagreed = [recording(3, 'act', called('act', null, 'another')), recording(4, 'toString', called('toString', null, hash))]
    const { body } = await evaluate(id, scopeWith([[...agreed, ...disagreed]]))
    expect(body).toMatchObject({ agreement: { agreed: 2, disagreed: 2, not_compared: 0 } })
    expect(body.disagreements.map(({ event_id }: { event_id: string }) => event_id)).toEqual(['e3', 'e4'])
  })

  test('stops at 5,000 contexts, and says so', async () => {
    const page = Array.from({ length: 200 }, (_, index) => recording(index, 'other'))
    const id = await registered({ code })
    const pages = (count: number) => Array.from({ length: count }, () => page)
    expect((await evaluate(id, scopeWith(pages(25)))).body).toMatchObject({ contexts: { recorded: 5000 }, truncated: false })
    expect((await evaluate(id, scopeWith(pages(26)))).body).toMatchObject({ contexts: { recorded: 5000 }, truncated: true })
  })

  test.each<unknown>([{ last_s: 0 }, { last_s: 2_592_001 }, { last_s: '60' }, '31d', '0m', '10', 'ten minutes', '1w', 60, null])(
    'is refused for the window %j',
    async (window) => {
      const answer = await evaluate(await registered(), scopeWith([]), { window })
      expect(answer).toMatchObject(problem(400, 'invalid-request'))
      expect(answer.body.errors[0].path).toMatch(/^window(?:\.last_s)?$/)
    },
  )

  test.each<unknown>([{ last_s: 60 }, { last_s: 2_592_000 }, '30d', '720h', '45s'])('takes the window %j', async (window) => {
    expect(await evaluate(await registered(), scopeWith([[]]), { window })).toMatchObject({
      status: 200,
      body: { contexts: { recorded: 0 } },
    })
  })

  test('needs a key that covers the scope', async () => {
    const key = await keyFor(['viewer'], ['team-a/*'])
    const id = await registered({ code: replying('x') })
    const answer = await call(`/v1/reflexes/${id}/evaluate`, { key, json: { scope: 'team-b/x', window: '1h' } })
    expect(answer).toMatchObject(problem(403, 'forbidden'))
  })
})
