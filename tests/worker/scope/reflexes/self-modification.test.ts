import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { AgentDeps } from '../../../../src/agent/define-agent.ts'
import { reflexToolNames } from '../../../../src/engine/reflexes/guidance.ts'
import { reflexes } from '../../../../src/artifacts/kinds.ts'
import { calls, write } from '../../../support/reflex-chain.ts'
import { freshId } from '../../../support/reflexes.ts'
import { emptyView } from '../../../../src/features/market/scope/in-scope.ts'
import { entriesOf, freshScope, inObject, note, sendAndSettle, stubOf } from '../../../support/scopes.ts'
import { behaviours, effects } from '../../../support/test-agents.ts'

const tools = ['act', 'act_once', ...reflexToolNames]
const code = (body: string) => `function reflex(context) {\n${body}\n}\n`

/** A scope whose agent may change itself, and what a turn of it answers. */
async function selfModifying() {
  const scope = freshScope()
  const stub = stubOf(scope)
  await stub.configure({ tools }, 'ops')
  const turn = async (work: (deps: AgentDeps) => Promise<unknown>): Promise<unknown> => {
    behaviours.set(scope, async (_, deps) => ({ answer: await work(deps) }))
    const [record] = await sendAndSettle(stub, note(scope, 'think'))
    behaviours.set(scope, async () => null)
    if (record?.outcome?.by !== 'turn') throw new Error(JSON.stringify(record))
    return (record.outcome.result as { answer: unknown }).answer
  }
  return { scope, stub, turn }
}

describe('an agent that may change itself', () => {
  test('writes a reflex that only watches, owns it, and names it in its chain', async () => {
    const { scope, stub, turn } = await selfModifying()
    const id = freshId()
    const written = await turn((deps) => deps.call('write_reflex', { id, code: code(calls('act')), description: 'acts' }))
    expect(written).toMatchObject({ written: true, id, version: 1, state: 'shadow' })
    expect(await turn((deps) => deps.call('update_agent_config', { reflexes: [{ id }] }))).toMatchObject({ changed: true, absent: [] })
    expect(await reflexes.find(env.DB, id)).toMatchObject({
      owner: `scope:${scope}`,
      scopes: [scope],
      provenance: { scope, by: 'test-agent', origin: null },
    })
    await sendAndSettle(stub, note(scope, 'a'))
    expect(effects.filter((effect) => effect.scope === scope)).toEqual([])
    const fired = await entriesOf(stub, 'reflex-fired')
    expect(fired).toMatchObject([{ reflex_id: id, state: 'shadow', context: { owned_artifacts: [id] } }])
    expect(await turn((deps) => deps.call('list_reflexes', {}))).toMatchObject({ chain: [{ id, acts: null, watches: [1] }], owned: [id] })
    const market = (revision: number, sold: string[], owned: string[]) => stub.marketChanged({ ...emptyView, revision, sold, owned }, [])
    await market(1, [`reflex:${id}`], ['skill:deploy', 'reflex:bought'])
    expect(await turn((deps) => deps.call('list_reflexes', {}))).toMatchObject({ owned: ['bought'] })
    await market(2, [], [`reflex:${id}`])
    expect(await turn((deps) => deps.call('list_reflexes', {}))).toMatchObject({ owned: [id] })
  })

  test('switches its chain as document 2 has it, and takes it away with null', async () => {
    const { stub, turn } = await selfModifying()
    const id = freshId()
    await turn((deps) => deps.call('write_reflex', { id, code: code('return null') }))
    expect(await turn((deps) => deps.call('update_agent_config', { reflex_artifact_id: id }))).toMatchObject({
      changed: true,
      reflexes: [{ id }],
    })
    expect(await turn((deps) => deps.call('update_agent_config', { reflex_artifact_id: null }))).toMatchObject({
      changed: true,
      reflexes: [],
    })
    expect((await stub.state()).settings.reflexes).toEqual([])
  })

  test('adds and removes only what it owns', async () => {
    const { scope, stub, turn } = await selfModifying()
    const [{ id: first }, { id: last }] = [
      await write("if (context.event.text === 'bad') throw 1; return null"),
      await write('return null'),
    ]
    const [one, other] = [freshId(), freshId()]
    for (const id of [one, other]) await turn((deps) => deps.call('write_reflex', { id, code: code('return null') }))
    await stub.configure({ reflexes: [{ id: first, cooldown_s: 1 }, { id: one }, { id: last }] }, 'ops', 'someone')
    const chainAfter = async (...ids: string[]) => {
      await turn((deps) => deps.call('update_agent_config', { reflexes: ids.map((id) => ({ id })) }))
      return (await stub.state()).settings.reflexes
    }
    const theirs = [{ id: first, cooldown_s: 1 }, { id: last }]
    expect(await chainAfter(other, one, first)).toEqual([theirs[0], { id: other }, theirs[1], { id: one }])
    await sendAndSettle(stub, ...'abcde'.split('').map(() => note(scope, 'bad')))
    expect(await chainAfter()).toEqual(theirs)
    expect((await stub.chain()).reflexes[0]?.absent).toContain('ended in an error')
    const { id: foreign } = await write('return null')
    const refused = await turn((deps) => deps.call('update_agent_config', { reflexes: [{ id: foreign }] }))
    expect(refused).toMatchObject({ changed: false, reason: expect.stringContaining('is not yours') })
  })

  test.each([
    ['does not parse', 'function reflex(context) {', { line: 1 }],
    ['is TypeScript', 'function reflex(context: object) { return null }', { message: expect.stringContaining('TypeScript') }],
    ['takes no argument', 'function reflex() { return null }', { message: expect.stringContaining('exactly one parameter') }],
    ['has no entry', 'const x = 1', { message: expect.stringContaining('there is no function reflex') }],
  ])('gets the error of code that %s', async (_, source, error) => {
    const { turn } = await selfModifying()
    expect(await turn((deps) => deps.call('write_reflex', { id: freshId(), code: source }))).toMatchObject({
      written: false,
      errors: [error],
    })
  })

  test("may read and copy another's reflex, which records where it comes from, but neither change nor retire it", async () => {
    const { turn } = await selfModifying()
    const theirs = await write('return null')
    expect(await turn((deps) => deps.call('read_reflex', { id: theirs.id }))).toMatchObject({
      found: true,
      code: theirs.code,
      owner: 'ops',
    })
    const mine = freshId()
    const copied_from = { id: theirs.id }
    expect(await turn((deps) => deps.call('write_reflex', { id: mine, code: theirs.code, copied_from }))).toMatchObject({ written: true })
    expect(await reflexes.find(env.DB, mine)).toMatchObject({ provenance: { origin: { id: theirs.id, version: 1, hash: theirs.hash } } })
    expect(await turn((deps) => deps.call('write_reflex', { id: theirs.id, code: code('return 1') }))).toMatchObject({ written: false })
    expect(await turn((deps) => deps.call('retire_reflex', { id: theirs.id, reason: 'no' }))).toMatchObject({ retired: false })
    expect(await reflexes.find(env.DB, theirs.id)).toMatchObject({ version: 1, state: 'active' })
  })

  test('tests code on the events of its scope, and retires its own reflexes', async () => {
    const { scope, stub, turn } = await selfModifying()
    behaviours.set(scope, async () => null)
    await sendAndSettle(stub, note(scope, 'one'))
    expect(await turn((deps) => deps.call('test_reflex', { code: code(calls('act')), events: 5 }))).toMatchObject({
      ok: true,
      runs: [{ action: { args: { text: 'one' } }, reason: 'fired', decided: [] }, { action: { args: { text: 'think' } } }],
    })
    const id = freshId()
    await turn((deps) => deps.call('write_reflex', { id, code: code('return null') }))
    expect(await turn((deps) => deps.call('retire_reflex', { id, reason: 'wrong' }))).toMatchObject({ retired: true, versions: [1] })
    expect(await reflexes.find(env.DB, id)).toMatchObject({ state: 'retired', state_reason: 'wrong' })
  })

  test('that only looks is asked again after a crash: nobody has to decide whether that happened', async () => {
    const { scope, turn, stub } = await selfModifying()
    await turn((deps) => deps.call('list_reflexes', {}))
    const kept = await inObject(stub, (state) => state.storage.sql.exec('SELECT tool FROM effects').toArray())
    expect(kept).toEqual([])
    expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([{ tool: 'list_reflexes', status: 'ok' }])
  })

  test('overrules a reflex: twice, and it acts no more', async () => {
    const { scope, stub, turn } = await selfModifying()
    const { id } = await write(`if (context.event.text === 'think') return null; ${calls('act_once')}`)
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    await sendAndSettle(stub, note(scope, 'a'), note(scope, 'b'))
    expect(await turn((deps) => deps.call('overrule_reflex', { id, reason: 'a was right as it was' }))).toEqual({ noted: true })
    expect(await turn((deps) => deps.call('overrule_reflex', { id, reason: 'b too' }))).toEqual({ noted: true })
    expect(await entriesOf(stub, 'reflex-overruled')).toHaveLength(2)
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject([{ reflex_id: id, to: 'shadow', reason: '2 of 2 actions were overruled' }])
  })

  test('is refused all of this where its tools do not name it', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => ({
      tools: Object.keys(deps.tools),
      answer: await deps.call('write_reflex', {}).catch(String),
    }))
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'think'))
    expect(record).toMatchObject({
      outcome: {
        result: {
          tools: ['act', 'act_once', 'act_global', 'undo_global', 'act_deaf', 'act_quickly'],
          answer: expect.stringContaining('not allowed'),
        },
      },
    })
  })

  test('may let a reflex write a reflex, and change the chain, by the same tools', async () => {
    const { scope, stub } = await selfModifying()
    behaviours.set(scope, async () => null)
    const child = freshId()
    const { id } = await write(`
      if (context.event.text === 'write') return { action_type: 'write_artifact', artifact_id: ${JSON.stringify(child)}, artifact_type: 'reflex', content: 'function reflex(context) { return null }' }
      if (context.event.text === 'switch') return { action_type: 'invoke_artifact', artifact_id: 'genesis_store', method: 'update_agent_config', args: [{ reflex_artifact_id: ${JSON.stringify(child)} }] }
      return null`)
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    expect(await sendAndSettle(stub, note(scope, 'write'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(await reflexes.find(env.DB, child)).toMatchObject({ owner: `scope:${scope}`, state: 'shadow' })
    expect(await sendAndSettle(stub, note(scope, 'switch'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect((await stub.state()).settings.reflexes).toEqual([{ id }, { id: child }])
  })
})
