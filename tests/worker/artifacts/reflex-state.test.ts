import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { setReflexState } from '../../../src/artifacts/kinds.ts'
import type { ReflexVersion } from '../../../src/contract/reflex.ts'
import { openCertificate, proceed } from '../../../src/evidence/certificate.ts'
import { tellCertificates } from '../../../src/store/artifacts/certificates.ts'
import { setUses } from '../../../src/store/artifacts/feed.ts'
import { call, callWith, keyFor, problem } from '../../support/http.ts'
import { buildReflex, byAgent, createVersion, freshId, registered, replying } from '../../support/reflexes.ts'
import { freshScope } from '../../support/scopes.ts'

const changeTo = (state: string, ref: string, { key, ...more }: { key?: string; reason?: string; force?: boolean } = {}) =>
  call(`/v1/reflexes/${ref}/state`, { json: { state, ...more }, ...(key === undefined ? {} : { key }) })
const stateOf = async (ref: string) => (await call(`/v1/reflexes/${ref}`)).body.state
const teacher = { by: 'model', agent_version: '1', model: 'm', prompt_hash: '', tools_hash: '', settings_revision: 0 } as const
/** The certificate that a scope reports of a version in shadow mode. */
const show = ({ id, version, hash }: ReflexVersion, scope: string, agreed: number, { disagreed = 0, at = Date.now() } = {}) => {
  const opened = openCertificate(
    { kind: 'reflex', id, version: String(version), hash },
    { teacher, at, least: { agreement: 0.95, support: 0 } },
  )
  const seen = { kind: 'compared', event_type: 'note', risk: 'inside', act: 'reply', agreed: true, seq: 1, at, teacher } as const
  const { certificate } = proceed(opened, seen)
  const strata = certificate.strata.map((stratum) => ({ ...stratum, n: agreed + disagreed, k: agreed }))
  return tellCertificates(env.DB, scope, [{ ...certificate, strata }], 1)
}

describe("a version's state", () => {
  test('changes with a reason, and only its own', async () => {
    const id = await registered()
    await call('/v1/reflexes', { json: buildReflex({ id, code: replying('two') }) })
    const answer = await changeTo('retired', `${id}@1`, { reason: 'it is old' })
    expect(answer).toMatchObject({ status: 200, body: { id, version: 1, state: 'retired', state_reason: 'it is old' } })
    expect(answer.text).not.toContain('function')
    expect(await stateOf(`${id}@2`)).toBe('active')
  })

  test('is that of the newest version, where none is named', async () => {
    const id = await registered()
    await call('/v1/reflexes', { json: buildReflex({ id, code: replying('two') }) })
    expect(await changeTo('shadow', id)).toMatchObject({ status: 200, body: { version: 2, state_reason: null } })
    expect(await stateOf(`${id}@1`)).toBe('active')
  })

  test.each([{ state: 'asleep' }, {}, { state: 'draft', reason: '' }, { state: 'draft', force: 'yes' }, { state: 'draft', by: 'me' }])(
    'is not changed by %j',
    async (json) => {
      expect(await call(`/v1/reflexes/${await registered()}/state`, { json })).toMatchObject(problem(400, 'invalid-request'))
    },
  )

  test('is changed by its owner and by admins, and by nobody else', async () => {
    const [alice, bob] = [await keyFor(['operator'], ['team-a/*'], 'alice'), await keyFor(['operator'], ['*'], 'bob')]
    const id = await registered({}, alice)
    const refused = await changeTo('retired', id, { key: bob })
    expect(refused).toMatchObject(problem(403))
    expect(refused.body.detail).toContain('Copy it')
    expect(await changeTo('retired', id, { key: await keyFor(['admin'], ['team-b/*']) })).toMatchObject(problem(404))
    expect(await stateOf(id)).toBe('active')
    expect(await changeTo('draft', id, { key: alice })).toMatchObject({ status: 200 })
    expect(await changeTo('active', id, { key: await keyFor(['admin'], ['team-a/*']) })).toMatchObject({ status: 200 })
  })
})

describe('what acts', () => {
  const acts = async (id: string) => (await call(`/v1/reflexes/${id}`)).body.acts
  const three = async () => {
    const id = await registered()
    for (const text of ['two', 'three']) await call('/v1/reflexes', { json: buildReflex({ id, code: replying(text) }) })
    return id
  }

  test('is the newest active version, which a change of state says, also one that changes nothing', async () => {
    const id = await three()
    expect(await changeTo('retired', `${id}@3`)).toMatchObject({ status: 200, body: { changed: true, acts: 2 } })
    expect(await changeTo('active', `${id}@1`)).toMatchObject({ status: 200, body: { version: 1, changed: false, acts: 2 } })
    expect(await acts(id)).toBe(2)
  })

  test('is listed with each reflex, also where the listed version does not act', async () => {
    const [earlier, newest, off] = await Promise.all([three(), three(), three()])
    await changeTo('retired', `${earlier}@3`)
    await call(`/v1/reflexes/${off}/off`, { json: {} })
    const listed = async (query: string) => {
      const items: { id: string; version: number; acts: number | null }[] = (await call(`/v1/reflexes?limit=1000${query}`)).body.items
      return [earlier, newest, off].map((id) => {
        const found = items.find((one) => one.id === id)
        return found && [found.version, found.acts]
      })
    }
    expect(await listed('')).toEqual([
      [3, 2],
      [3, 3],
      [3, null],
    ])
    expect(await listed('&state=active')).toEqual([[2, 2], [3, 3], undefined])
    expect(await listed('&state=retired')).toEqual([[3, 2], undefined, undefined])
  })

  test('ends when the reflex is switched off, shadow mode included, and nothing changes twice', async () => {
    const id = await three()
    await changeTo('shadow', `${id}@3`)
    const off = () => call(`/v1/reflexes/${id}/off`, { json: { reason: 'it greets twice' } })
    expect(await off()).toMatchObject({
      status: 200,
      body: { id, acts: null, changed: [{ version: 3, from: 'shadow', to: 'draft' }, { version: 2 }, { version: 1 }] },
    })
    expect(await off()).toMatchObject({ status: 200, body: { acts: null, changed: [] } })
    const { versions } = (await call(`/v1/reflexes/${id}`)).body
    expect(versions[0]).toMatchObject({ state: 'draft', state_reason: expect.stringContaining('switched it off: it greets twice') })
  })

  test('is the earlier version after a rollback, once for each version that it names', async () => {
    const id = await three()
    const back = (from?: number) => call(`/v1/reflexes/${id}/rollback`, { json: from === undefined ? {} : { from } })
    expect(await back(3)).toMatchObject({ status: 200, body: { acts: 2, changed: [{ version: 3, from: 'active', to: 'draft' }] } })
    expect(await back(3)).toMatchObject({ status: 200, body: { acts: 2, changed: [] } })
    await changeTo('draft', `${id}@1`)
    expect(await back()).toMatchObject({
      body: {
        acts: 1,
        changed: [
          { version: 1, to: 'active' },
          { version: 2, to: 'draft' },
        ],
      },
    })
    expect(await back()).toMatchObject(problem(409, 'no-earlier-version'))
  })

  test('is changed by its owner and admins only', async () => {
    const id = await registered({}, await keyFor(['operator'], ['team-a/*'], 'alice'))
    for (const how of ['off', 'rollback'])
      expect(await call(`/v1/reflexes/${id}/${how}`, { json: {}, key: await keyFor(['operator'], ['*'], 'bob') })).toMatchObject(
        problem(403),
      )
    expect(await acts(id)).toBe(1)
  })

  test('is listed for each scope that the key covers', async () => {
    const id = await three()
    const [one, other] = [freshScope('team-a'), freshScope('team-b')]
    for (const scope of [one, other])
      await call(`/v1/scopes/${encodeURIComponent(scope)}`, {
        method: 'PATCH',
        json: { reflexes: [{ id, ...(scope === other && { version: 1 }) }] },
      })
    const listed = async (key?: string) => (await call(`/v1/reflexes/${id}/scopes`, key === undefined ? {} : { key })).body.items
    expect(await listed()).toEqual([
      { scope: one, acts: 3, watches: null, reason: null },
      { scope: other, acts: 1, watches: null, reason: null },
    ])
    await call(`/v1/reflexes/${id}/off`, { json: {} })
    expect(await listed()).toMatchObject([{ acts: null, reason: expect.stringContaining(id) }, { acts: null }])
    expect(await listed(await keyFor(['viewer'], ['team-b/*']))).toMatchObject([{ scope: other }])
  })

  test('of a version by proof is nothing once no certificate lets it act, in the list and in its head', async () => {
    const version = await createVersion({ ...byAgent(freshScope()), scopes: ['own/*'], state: 'shadow' })
    const { id } = version
    await setReflexState(env.DB, { id, version: 1, state: 'active', reason: 'proven', by_proof: true, now: Date.now() })
    await show(version, 'own/a', 10)
    const reason = '10 of 10 decisions for reply on note agreed: at least 60 more must agree'
    expect((await call(`/v1/reflexes/${id}`)).body).toMatchObject({ state: 'active', idle: { since: null, reason } })
    expect((await call(`/v1/reflexes?q=${id}`)).body.items).toMatchObject([{ id, idle: { reason } }])
  })

  test('is not a version that an agent just wrote: the answer says what it needs', async () => {
    const { body } = await call('/v1/reflexes', { json: { ...buildReflex({}), state: 'shadow' } })
    expect(body.next).toContain(`POST /v1/reflexes/${body.id}@1/state {"state": "active"}`)
    expect((await call('/v1/reflexes', { json: buildReflex({}) })).body.next).toBeNull()
  })
})

describe('a reflex that an agent wrote', () => {
  test('is changed by who operates its scope', async () => {
    const scope = freshScope('team-a')
    const { id } = await createVersion({ ...byAgent(scope), state: 'shadow' })
    expect(await changeTo('retired', id, { key: await keyFor(['operator'], ['team-b/*']) })).toMatchObject(problem(404))
    expect(await changeTo('retired', id, { key: await keyFor(['operator'], ['team-a/*']) })).toMatchObject({ status: 200 })
  })

  test('acts once it has shown itself in shadow, in all scopes of its owner together', async () => {
    const version = await createVersion({ ...byAgent(freshScope()), scopes: ['own/*'], state: 'shadow' })
    await show(version, 'own/a', 40)
    await show({ ...version, version: 2 }, 'own/a', 100)
    await show(version, 'foreign', 100)
    const refused = await changeTo('active', version.id)
    expect(refused).toMatchObject(problem(409, 'not-proven'))
    expect(refused.body.detail).toContain('40 of 40 decisions for reply on note agreed: at least 30 more must agree')
    expect(await stateOf(version.id)).toBe('shadow')
    await show(version, 'own/b', 32)
    expect(await changeTo('active', version.id)).toMatchObject({ status: 200, body: { state: 'active' } })
  })

  test('does not act by certificates that have expired', async () => {
    const version = await createVersion({ ...byAgent(freshScope()), scopes: ['own/*'], state: 'shadow' })
    await show(version, 'own/a', 100, { at: Date.now() - 91 * 86_400_000 })
    expect(await changeTo('active', version.id)).toMatchObject(problem(409, 'not-proven'))
  })

  test('does not act while it disagrees, unless that is forced', async () => {
    const version = await createVersion({ ...byAgent(freshScope()), scopes: ['own/*'], state: 'shadow' })
    await show(version, 'own/a', 90, { disagreed: 10 })
    const refused = await changeTo('active', version.id)
    expect(refused).toMatchObject(problem(409, 'not-proven'))
    expect(refused.body.detail).toContain('90 of 100 compared fires')
    expect(await changeTo('active', version.id, { force: true })).toMatchObject({ status: 200, body: { state: 'active' } })
    expect(await changeTo('active', version.id, { reason: 'still' })).toMatchObject({ status: 200 })
  })

  test('goes to any other state without proof', async () => {
    const { id } = await createVersion({ ...byAgent(freshScope()), state: 'draft' })
    for (const state of ['shadow', 'retired', 'draft']) expect(await changeTo(state, id)).toMatchObject({ status: 200 })
  })
})

describe('the scopes that use a reflex', () => {
  const told: string[] = []
  const SCOPE = {
    getByName: (scope: string) => ({
      async reflexesChanged(ids: string[]) {
        if (scope.startsWith('broken')) throw new Error('the scope is away')
        told.push(...ids.map((id) => `${scope} ${id}`))
      },
    }),
  }

  test('are notified of new versions and states, and an unreachable one does no harm', async () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const id = freshId()
    for (const scope of ['broken/x', 'a', 'b']) await setUses(env.DB, scope, [id])
    const json = buildReflex({ id })
    expect(await callWith({ SCOPE }, '/v1/reflexes', { json })).toMatchObject({ status: 201 })
    expect(told.splice(0)).toEqual([`a ${id}`, `b ${id}`])
    expect(warned.mock.calls.map(([text]) => String(text))).toEqual([expect.stringContaining('broken/x')])
    expect(await callWith({ SCOPE }, '/v1/reflexes', { json })).toMatchObject({ status: 200 })
    expect(told.splice(0)).toEqual([])
    expect(await callWith({ SCOPE }, `/v1/reflexes/${id}/state`, { json: { state: 'shadow' } })).toMatchObject({ status: 200 })
    expect(told.splice(0)).toEqual([`a ${id}`, `b ${id}`])
    warned.mockRestore()
  })
})
