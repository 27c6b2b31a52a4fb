import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { httpToolOf } from '../../../../src/tools/http-tool.ts'
import { hashOf } from '../../../../src/engine/effects/effect-journal.ts'
import { call, scopePath } from '../../../support/http.ts'
import { crash, entriesOf, freshScope, note, runAlarm, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours, effectGates, effects } from '../../../support/test-agents.ts'
import { propose, skill, twoSteps } from '../../../support/two-step-skill.ts'

const ran = (scope: string) => effects.filter((effect) => effect.scope === scope)
const holder = (scope: string) => ({ scope, kind: 'effect', owner: 'a turn that died', phase: 'call', place: 0 }) as const
const patience = { wait_ms: 0, keep_ms: 86_400_000 }

/** A text of its own, with the object of its key. */
function freshKey() {
  const text = crypto.randomUUID()
  const hash = hashOf({ kind: 'effect', tool: 'act_global' }, `global:${text}`)
  return { text, key: env.GLOBAL_KEYS.getByName(hash), inKey: inObjectOf(hash) }
}

const inObjectOf =
  (hash: string) =>
  <Result>(work: (state: DurableObjectState) => Result): Promise<Result> =>
    runInDurableObject(env.GLOBAL_KEYS.getByName(hash) as never, (_, state: DurableObjectState) => work(state))

/** During the work, the object of the key cannot read its storage. */
async function withoutStorage(inKey: ReturnType<typeof inObjectOf>, work: () => Promise<void>) {
  const fail = () => {
    throw new Error('no storage')
  }
  await inKey(({ storage }) => Object.defineProperty(storage.kv, 'get', { value: fail, configurable: true }))
  await work()
  await inKey(({ storage }) => Reflect.deleteProperty(storage.kv, 'get'))
}

/** A gate at which the tool fails. */
function failure(): Promise<void> {
  const failed = Promise.reject(new Error('the tool failed'))
  failed.catch(() => {})
  return failed
}

/** A scope whose turns do the effect, and return its output or its error. */
function scopeThatDoes(text: string, tool = 'act_global') {
  const scope = freshScope()
  behaviours.set(scope, async (_, deps) => deps.call(tool, { text }).catch((error: Error) => error.message))
  const stub = stubOf(scope)
  const act = async () => (await sendAndSettle(stub, note(scope, 'go')))[0]?.outcome
  return { scope, stub, act }
}

describe('an effect under a deployment-wide key', () => {
  test('happens once if two scopes ask for it at the same time, and both get its output', async () => {
    const { text } = freshKey()
    const [first, second] = [scopeThatDoes(text), scopeThatDoes(text)]
    const gate = Promise.withResolvers<void>()
    effectGates.set(first.scope, gate.promise)
    const begun = first.act()
    await until(async () => ran(first.scope).length === 1, 'the effect runs')
    const waiting = second.act()
    await until(async () => (await second.stub.state()).turn, 'the other turn runs')
    gate.resolve()
    expect(await Promise.all([begun, waiting])).toMatchObject([{ result: { did: text } }, { result: { did: text } }])
    expect(ran(second.scope)).toEqual([])
    expect(await entriesOf(second.stub, 'effect-ended')).toMatchObject([{ status: 'reused', idempotence_key: `global:${text}` }])
  })

  test('fails as retryable, with nothing done, while other work holds the key for long', async () => {
    const { text, key } = freshKey()
    const owner = scopeThatDoes(text)
    effectGates.set(owner.scope, new Promise(() => {}))
    await send(owner.stub, note(owner.scope, 'go'))
    await until(async () => ran(owner.scope).length === 1, 'the effect runs')
    expect(await key.claim(holder(freshScope()), patience)).toEqual({ state: 'held' })
    await runAlarm(key)
    expect(await key.claim(holder(freshScope()), patience)).toEqual({ state: 'held' })
  })

  test('is done by another scope if its owner died before it began', async () => {
    const { text, key } = freshKey()
    expect(await key.claim(holder(freshScope()), patience)).toEqual({ state: 'granted' })
    const { scope, act } = scopeThatDoes(text)
    expect(await act()).toMatchObject({ result: { did: text } })
    expect(ran(scope)).toHaveLength(1)
  })

  test('runs again under the same key if its owner died while it ran', async () => {
    const { text } = freshKey()
    const [owner, other] = [scopeThatDoes(text), scopeThatDoes(text)]
    effectGates.set(owner.scope, new Promise(() => {}))
    await send(owner.stub, note(owner.scope, 'go'))
    await until(async () => ran(owner.scope).length === 1, 'the effect runs')
    behaviours.set(owner.scope, async () => null)
    await crash(owner.scope)
    expect(await other.act()).toMatchObject({ result: { did: text } })
    expect([...ran(owner.scope), ...ran(other.scope)].map(({ key }) => key)).toEqual([`global:${text}`, `global:${text}`])
  })

  test('is known from the journal of its owner if the report of its end was lost', async () => {
    const { text, inKey } = freshKey()
    const [owner, other] = [scopeThatDoes(text), scopeThatDoes(text)]
    await owner.act()
    const lose = ({ storage }: DurableObjectState) => storage.kv.put('row', { ...storage.kv.get<object>('row'), done: null })
    await until(() => inKey(({ storage }) => storage.kv.get<{ done: unknown }>('row')?.done), 'the report arrived')
    await inKey(lose)
    expect(await other.act()).toMatchObject({ result: { did: text } })
    expect(ran(other.scope)).toEqual([])
    await inKey(lose)
    expect(await owner.act()).toMatchObject({ result: { did: text } })
    expect(ran(owner.scope)).toHaveLength(1)
  })

  test('that failed leaves the key to others', async () => {
    const { text } = freshKey()
    const [owner, other] = [scopeThatDoes(text), scopeThatDoes(text)]
    effectGates.set(owner.scope, failure())
    expect(await owner.act()).toMatchObject({ result: 'the tool failed' })
    expect(await other.act()).toMatchObject({ result: { did: text } })
  })

  test('may happen again once any scope has undone it', async () => {
    const { text, key } = freshKey()
    const [owner, other] = [scopeThatDoes(text), scopeThatDoes(text, 'undo_global')]
    await owner.act()
    await other.act()
    await until(async () => (await other.stub.state()).outbox.waiting === 0, 'the release was sent')
    await owner.act()
    expect(ran(owner.scope)).toHaveLength(2)
    await key.release('an undo')
    await owner.act()
    await key.release('an undo')
    await owner.act()
    expect(ran(owner.scope)).toHaveLength(3)
  })

  test('does not happen again where the call that undoes it failed', async () => {
    const { text } = freshKey()
    const [owner, other] = [scopeThatDoes(text), scopeThatDoes(text, 'undo_global')]
    await owner.act()
    effectGates.set(other.scope, failure())
    expect(await other.act()).toMatchObject({ result: 'the tool failed' })
    await until(async () => (await other.stub.state()).outbox.waiting === 0, 'nothing waits to be sent')
    expect(await owner.act()).toMatchObject({ result: { did: text } })
    expect(ran(owner.scope)).toHaveLength(1)
  })

  test('is not attempted while the object of its key fails, and is afterwards', async () => {
    const { text, inKey } = freshKey()
    const { scope, act } = scopeThatDoes(text)
    await withoutStorage(inKey, async () => {
      expect(await act()).toMatchObject({ result: expect.stringMatching(/cannot be claimed: .*nothing was done/) })
    })
    expect(ran(scope)).toEqual([])
    expect(await act()).toMatchObject({ result: { did: text } })
  })

  test('is recognized until the promise of its scope ends, when its object is deleted', async () => {
    const { text, key, inKey } = freshKey()
    const { scope, act } = scopeThatDoes(text)
    await act()
    const expires_at = await until(
      () => inKey(({ storage }) => storage.kv.get<{ done: { expires_at: number } | null }>('row')?.done?.expires_at),
      'the report arrived',
    )
    expect(expires_at / 86_400_000).toBeCloseTo(Date.now() / 86_400_000 + 400, 1)
    await inKey(({ storage }) => {
      const row = storage.kv.get<{ done: object }>('row')
      storage.kv.put('row', { ...row, done: { ...row?.done, expires_at: Date.now() - 1 } })
    })
    expect(await runAlarm(key)).toBe(true)
    expect(await inKey(({ storage }) => storage.kv.get('row'))).toBeUndefined()
    await act()
    expect(ran(scope)).toHaveLength(2)
  })

  test('is declared by the exact prefix alone: other keys stay keys of their scope', async () => {
    for (const text of ['global:x', 'Global:x']) {
      for (const { scope, act } of [scopeThatDoes(text, 'act_once'), scopeThatDoes(text, 'act_once')]) {
        await act()
        expect(ran(scope)).toHaveLength(1)
      }
    }
    const setting = {
      name: 'http.pay',
      description: 'Pays',
      method: 'POST',
      url: 'https://pay.example.com',
      idempotence_key: '{{order}}',
    } as const
    const key = httpToolOf(setting, { allowed_hosts: [] }).idempotence_key
    expect(key?.({ order: 'Global:1' }, 'any')).toBe('Global:1')
    expect(() => key?.({ order: 'global:1' }, 'any')).toThrow('a value must not turn an idempotency key into a deployment-wide one')
  })

  test('can be declared for an HTTP tool only by a key that covers all scopes', async () => {
    const scopes = ['test/*']
    const made = await call('/v1/keys', { json: { name: 'ops', roles: ['operator'], scopes } })
    const http_tools = [
      { name: 'http.pay', description: 'Pays', method: 'POST', url: 'https://pay.example.com', idempotence_key: 'global:{{order}}' },
    ]
    const change = (key?: string) => call(scopePath(freshScope()), { method: 'PATCH', json: { http_tools }, ...(key && { key }) })
    expect(await change(String(made.body.key))).toMatchObject({ status: 403, body: { detail: expect.stringContaining('http.pay') } })
    expect((await change()).status).toBe(200)
  })
})

describe('a plan under a deployment-wide key', () => {
  const once = (text: string) => ({ plan: { ...twoSteps('x').plan, idempotence_key: `global:${text}` } })

  test('runs once if two scopes propose it, at the same time or later, and both get its outputs', async () => {
    const id = await skill(once('{{what}}'))
    const [first, second, third] = [freshScope(), freshScope(), freshScope()]
    const gate = Promise.withResolvers<void>()
    effectGates.set(first, gate.promise)
    const begun = propose(first, id)
    await until(async () => ran(first).length === 1, 'the plan runs')
    const waiting = propose(second, id)
    await until(async () => (await entriesOf(stubOf(second), 'skill-decided')).length > 0, 'the second is proposed')
    gate.resolve()
    expect(await begun).toMatchObject({ status: 'ok', idempotent: false, outputs: { done: 'x' } })
    expect(await waiting).toMatchObject({ status: 'ok', idempotent: true, outputs: { done: 'x' } })
    expect(await propose(third, id)).toMatchObject({ status: 'ok', idempotent: true, outputs: { done: 'x' } })
    expect([...ran(second), ...ran(third)]).toEqual([])
  })

  test('does not run while its key cannot be claimed, and says why', async () => {
    const id = await skill(once('{{what}}'))
    const scope = freshScope()
    await withoutStorage(inObjectOf(hashOf({ kind: 'plan' }, `${id}:global:x`)), async () => {
      expect(await propose(scope, id)).toMatchObject({ status: 'failed', reason: expect.stringContaining('cannot be claimed'), steps: [] })
    })
    expect(ran(scope)).toEqual([])
    expect(await propose(scope, id)).toMatchObject({ status: 'ok', idempotent: false })
  })

  test('that failed may run in another scope', async () => {
    const id = await skill(once('{{what}}'))
    const [first, second] = [freshScope(), freshScope()]
    effectGates.set(first, failure())
    expect((await propose(first, id)).status).toBe('failed')
    expect(await propose(second, id)).toMatchObject({ status: 'ok', idempotent: false })
  })
})
