import { describe, expect, test } from 'vitest'
import { hashJson } from '../../../src/base/json.ts'
import { call } from '../../support/http.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { freshScope, note, stubOf } from '../../support/scopes.ts'

const replayed = async (scope: string, trace_id: string) =>
  (await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: { mode: 'pinned' } })).body
const exported = (scope: string, trace_id: string) => call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)

async function accept(scope: string, text: string) {
  const event = note(scope, text)
  await stubOf(scope).accept([event], 'http')
  await stubOf(scope).outcomes([event.id], 5000)
  return event.meta.trace_id
}
async function withReflex(code: string, reference: object = {}, fields: object = {}) {
  const scope = freshScope()
  const { id } = await createVersion({ code, ...fields })
  await stubOf(scope).configure({ reflexes: [{ id, ...reference }] }, 'a test')
  return { scope, id }
}
async function replayFile({ sha256: _sha256, ...content }: Record<string, unknown>) {
  return call('/v1/replay', { json: { ...content, sha256: await hashJson(content) } })
}
const same = { equivalent: true, divergences: [], unknown: [] }

describe('a pinned replay', () => {
  test('passes and ignores events like the filters did', async () => {
    const scope = freshScope()
    expect(await replayed(scope, await accept(scope, 'fine'))).toMatchObject({ ...same, compared: 1 })
    expect(await replayed(scope, await accept(scope, 'noise'))).toMatchObject({ ...same, compared: 1 })
  })

  test('fires a reflex like the scope did', async () => {
    const { scope } = await withReflex(replying('hello'))
    expect(await replayed(scope, await accept(scope, 'hi'))).toMatchObject({ ...same, compared: 2 })
  })

  test('holds a reflex back by its cooldown, and passes where its action was refused', async () => {
    const { scope } = await withReflex(replying('hello'), { cooldown_s: 600 })
    await accept(scope, 'first')
    expect(await replayed(scope, await accept(scope, 'second'))).toMatchObject({ ...same, compared: 2 })
    const refused = await withReflex(`function reflex() { return { action_type: 'call_tool', tool: 'nothing', args: {} } }`)
    expect(await replayed(refused.scope, await accept(refused.scope, 'x'))).toMatchObject({ ...same, compared: 2 })
  })

  test('reports a decision that differs, by its span and path', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    const fired = body.entries.find(({ kind }: { kind: string }) => kind === 'reflex-fired')
    fired.action.content = 'goodbye'
    expect((await replayFile(body)).body).toMatchObject({
      equivalent: false,
      divergences: [{ span_id: fired.span_id, kind: 'reflex', path: '/action/content', recorded: 'goodbye', replayed: 'hello' }],
    })
  })
})

describe('an exported trace', () => {
  test('is a self-contained file that replays by itself', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const { status, text, body } = await exported(scope, await accept(scope, 'hi'))
    expect(status).toBe(200)
    expect(Object.values(body.programs)).toMatchObject([{ id, code: replying('hello') }])
    const answer = await call('/v1/replay', { body: text })
    expect(answer.body).toMatchObject({ ...same, compared: 2 })
  })

  test.each([
    ['a changed byte', (text: string) => text.replace('"hello"', '"hullo"'), 'was changed'],
    ['an unknown schema', (text: string) => text.replace('"schema":1', '"schema":99'), 'schema version 99'],
    ['a missing field', (text: string) => text.replace('"entries":', '"entrees":'), 'not complete'],
  ])('with %s is rejected', async (_flaw, change, detail) => {
    const { scope } = await withReflex(replying('hello'))
    const { text } = await exported(scope, await accept(scope, 'hi'))
    const answer = await call('/v1/replay', { body: change(text) })
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } })
  })

  test('whose code does not match its hash is rejected: live scopes share compiled programs by hash', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    for (const program of Object.values(body.programs)) (program as { code: string }).code = replying('evil')
    expect(await replayFile(body)).toMatchObject({ status: 400, body: { detail: expect.stringContaining('does not match its hash') } })
  })

  test('that is cut off is rejected', async () => {
    const scope = freshScope()
    const { text } = await exported(scope, await accept(scope, 'hi'))
    expect(await call('/v1/replay', { body: text.slice(0, -100) })).toMatchObject({ status: 400 })
  })

  test('is not found where the scope has no such trace', async () => {
    expect(await exported(freshScope(), 'a'.repeat(32))).toMatchObject({ status: 404 })
  })
})
