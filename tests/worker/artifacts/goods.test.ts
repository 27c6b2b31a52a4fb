import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { reflexes } from '../../../src/artifacts/kinds.ts'
import type { Deal } from '../../../src/features/market/contract/deal.ts'
import { deliver } from '../../../src/features/market/goods/deliver.ts'
import { readFeed } from '../../../src/store/artifacts/feed.ts'
import { readSkillFeed } from '../../../src/features/control-plane/store/skill-feed.ts'
import { lapsedGoods, sealVersion } from '../../../src/features/market/store/ownership.ts'
import { call, keyFor } from '../../support/http.ts'
import { createVersion, freshId } from '../../support/reflexes.ts'
import { freshScope } from '../../support/scopes.ts'
import { putVersion } from '../../support/skills.ts'

const PASSED = '2026-01-01T00:00:00.000Z'

/** A sealed version of the agent of a scope, and a deal about it. */
async function sold({ kind, buyer, ...fields }: { kind: Deal['kind']; buyer: string } & Partial<Deal['delivery'] & object>) {
  const seller = freshScope('seller')
  const version = await createVersion({ owner: `scope:${seller}`, owner_id: `scope:${seller}`, scopes: [seller], sharing: 'org' })
  await sealVersion(env.DB, { kind: 'reflex', id: version.id, version: '1' })
  const artifact = `reflex:${version.id}@1`
  const copy = kind === 'copy' ? `reflex:${freshId()}@1` : artifact
  const scopes = kind === 'licence' ? [buyer.slice('scope:'.length)] : null
  const delivery = { kind, artifact: copy, scopes, expires_at: null, fires: null, used: {}, lapsed: [], in_use: true, ...fields }
  const deal: Deal = {
    deal_id: crypto.randomUUID(),
    listing_id: 'l',
    artifact,
    hash: version.hash,
    kind,
    scopes,
    terms: {},
    price: 10,
    seller: `scope:${seller}`,
    buyer,
    status: 'accepted',
    offered_at: PASSED,
    expires_at: PASSED,
    paid: 0,
    held: 10,
    history: [],
    delivery,
  }
  const delivered = (changes: object = {}) => deliver(env, { deal: { ...deal, delivery: { ...delivery, ...changes } } }, 1)
  return { version, seller, deal, deliver: delivered }
}

const seenIn = async (scope: string, id: string, version?: number) => {
  const { changes } = await readFeed(env.DB, { kind: 'reflex', scope, references: [{ id, version }] }, 0)
  return changes.flatMap(({ artifact }) => artifact ?? [])
}

describe('a sealed version', () => {
  test('is given to scopes of its owner and to no other, even if their chain names it', async () => {
    const { version, seller } = await sold({ kind: 'licence', buyer: 'scope:nobody' })
    expect(await seenIn(seller, version.id)).toMatchObject([{ id: version.id, sealed: true }])
    expect(await seenIn(freshScope(), version.id, 1)).toEqual([])
  })

  test('shows its code to keys that cover the scope of its owner, and to admins', async () => {
    const { version, seller } = await sold({ kind: 'licence', buyer: 'scope:nobody' })
    const [own, other] = [await keyFor(['viewer'], [seller]), await keyFor(['operator'], ['other/*'])]
    const path = `/v1/reflexes/${version.id}@1`
    expect(await call(path, { key: own })).toMatchObject({ status: 200, body: { code: version.code, sealed: true } })
    expect(await call(path, { key: other })).toMatchObject({ status: 200, body: { code: null, sealed: true } })
    expect(await call(path)).toMatchObject({ body: { code: version.code } })
  })

  test.each(['copy', 'run', 'evaluate'])('is refused to others who %s it', async (act) => {
    const { version } = await sold({ kind: 'licence', buyer: 'scope:nobody' })
    const key = await keyFor(['operator'], ['other/*'])
    const json = { copy: { id: freshId() }, run: { context: {} }, evaluate: { scope: 'other/x', window: '1h' } }[act] ?? {}
    const answer = await call(`/v1/reflexes/${version.id}@1/${act}`, { method: 'POST', key, json })
    expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining('is for sale') } })
  })
})

describe('a licence', () => {
  test('gives the version to the scopes that it names, until it ends', async () => {
    const scope = freshScope()
    const { version, deal, deliver: delivered } = await sold({ kind: 'licence', buyer: `scope:${scope}`, fires: 3 })
    await delivered()
    expect(await seenIn(scope, version.id)).toMatchObject([
      { id: version.id, licences: [{ deal_id: deal.deal_id, expires_at: null, fires: 3, metered: false }] },
    ])
    expect(await seenIn(`${scope}-other`, version.id)).toEqual([])
    await delivered({ in_use: false })
    await delivered()
    expect(await seenIn(scope, version.id)).toEqual([])
  })

  test('lets scopes read the version again when it begins and ends, and not when its use is counted', async () => {
    const scope = freshScope()
    const { version, deliver: delivered } = await sold({ kind: 'licence', buyer: `scope:${scope}` })
    const of = { kind: 'reflex', scope, references: [{ id: version.id }] } as const
    const { revision } = await readFeed(env.DB, of, 0)
    await delivered()
    const begun = await readFeed(env.DB, of, revision)
    expect(begun).toMatchObject({ whole: true })
    await delivered({ used: { [scope]: 2 } })
    expect((await readFeed(env.DB, of, begun.revision)).revision).toBe(begun.revision)
  })

  test('of a version that is retired is found by the sweep', async () => {
    const { version, deliver: delivered } = await sold({ kind: 'licence', buyer: `scope:${freshScope()}` })
    await delivered()
    expect(await lapsedGoods(env.DB, 1000)).not.toContainEqual(
      expect.objectContaining({ hash: version.hash, artifact: `reflex:${version.id}@1` }),
    )
    await reflexes.setState(env.DB, { id: version.id, version: 1, state: 'retired', reason: null, now: 2 })
    expect(await lapsedGoods(env.DB, 1000)).toContainEqual({ artifact: `reflex:${version.id}@1`, hash: version.hash, state: 'retired' })
  })
})

test('a copy is registered for its buyer once, sealed, with its origin', async () => {
  const buyer = freshScope()
  const { version, deal, deliver: delivered } = await sold({ kind: 'copy', buyer: `scope:${buyer}` })
  await delivered()
  await delivered()
  const id = deal.delivery?.artifact.slice('reflex:'.length, -'@1'.length) ?? ''
  const origin = { id: version.id, version: 1, hash: version.hash }
  expect(await reflexes.find(env.DB, id)).toMatchObject({
    version: 1,
    owner_id: `scope:${buyer}`,
    code: version.code,
    state: 'shadow',
    sealed: true,
    provenance: { origin },
  })
})

test('ownership that D1 has under another owner is not taken for delivered', async () => {
  const { version, deliver: sell } = await sold({ kind: 'ownership', buyer: `scope:${freshScope('buyer')}` })
  await env.DB.prepare('UPDATE artifacts SET owner_id = ? WHERE id = ?').bind('somebody', version.id).run()
  await expect(sell()).rejects.toThrow('does not belong to')
})

test('ownership that its seller has bought back is not delivered a second time', async () => {
  const buyer = `scope:${freshScope('buyer')}`
  const { version, seller, deal, deliver: sell } = await sold({ kind: 'ownership', buyer })
  await sell()
  await deliver(env, { deal: { ...deal, deal_id: crypto.randomUUID(), seller: buyer, buyer: deal.seller } }, 2)
  await sell()
  expect(await reflexes.find(env.DB, version.id)).toMatchObject({ owner_id: `scope:${seller}` })
})

test('ownership changes once: the scopes of the seller lose it, and the buyer may sell it', async () => {
  const [buyer, third] = [freshScope(), freshScope()]
  const { version, seller, deal, deliver: delivered } = await sold({ kind: 'ownership', buyer: `scope:${buyer}` })
  await delivered()
  expect(await reflexes.find(env.DB, version.id)).toMatchObject({ owner: `scope:${buyer}`, owner_id: `scope:${buyer}`, scopes: [buyer] })
  expect(await seenIn(buyer, version.id)).toHaveLength(1)
  expect(await seenIn(seller, version.id)).toEqual([])
  await deliver(env, { deal: { ...deal, deal_id: 'second', seller: `scope:${buyer}`, buyer: `scope:${third}` } }, 2)
  await delivered()
  expect(await reflexes.find(env.DB, version.id)).toMatchObject({ owner_id: `scope:${third}` })
})

describe('a skill for sale', () => {
  const owned = (scope: string) => ({ owner: `scope:${scope}`, owner_id: `scope:${scope}`, scopes: [scope] })

  test('with the content of an older one under another id is not sold as new', async () => {
    const [author, other] = [freshScope('author'), freshScope('other')]
    for (const scope of [author, other])
      await env.DB.prepare('INSERT INTO scopes (scope, agent, open, updated_at) VALUES (?, ?, 0, 0)').bind(scope, 'test-agent').run()
    const description = `Deploys ${freshId()}`
    const first = await putVersion({ changes: { description }, ...owned(author), now: 1 })
    const second = await putVersion({ changes: { description }, ...owned(other), now: 2 })
    const list = ({ id, version }: typeof first, scope: string) =>
      call('/v1/market/listings', { json: { artifact: `skill:${id}@${version}`, kind: 'copy', price: 5, seller: `scope:${scope}` } })
    expect(await list(second, other)).toMatchObject({
      status: 409,
      body: { type: 'urn:reflex:problem:sold-as-new', detail: expect.stringContaining(`skill:${first.id}@${first.version}`) },
    })
    expect(await list(first, author)).toMatchObject({ status: 201 })
  })

  test('is given to its owner by the feed of skills, and to other keys without its manifest', async () => {
    const project = freshId('project')
    const { id, version } = await putVersion({ changes: { 'compat.project': project }, state: 'active' })
    await sealVersion(env.DB, { kind: 'skill', id, version })
    const of = { key_scopes: ['*'], project, since: 0 }
    const sent = async (key_id: string) => (await readSkillFeed(env.DB, { ...of, key_id })).items.filter((one) => one.id === id)
    expect(await sent('key-of-alice')).toMatchObject([{ version, manifest: { id } }])
    expect(await sent('key-of-bob')).toMatchObject([{ version, manifest: null }])
  })
})
