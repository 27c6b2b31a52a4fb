import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { FoundListing } from '../../../src/features/market/contract/listing.ts'
import type { ActionCall } from '../../../src/contract/action.ts'
import type { ReflexRecording, ReflexVersion } from '../../../src/contract/reflex.ts'
import { emptyMetrics } from '../../../src/reflexes/metrics.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { tellCertificates } from '../../../src/store/artifacts/certificates.ts'
import { tellReflexMetrics } from '../../../src/store/artifacts/reflex-metrics.ts'
import { provenCertificate } from '../../support/certificates.ts'
import { call, callWith, keyFor, problem } from '../../support/http.ts'
import { buildListing, listed } from '../../support/market.ts'
import { byAgent, createVersion, freshId, replying } from '../../support/reflexes.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import { twoSteps } from '../../support/two-step-skill.ts'
import { freshScope, stubOf, until } from '../../support/scopes.ts'

/** 100 events that it saw while it acted: it fired on 80, which saved 80 model calls and $0.40. */
const acted = (changes: object = {}) => ({
  ...emptyMetrics(),
  runs: 100,
  fired: 80,
  acted: 80,
  model_calls_saved: 80,
  cost_saved_usd: 0.4,
  ...changes,
})

const tell = ({ id: reflex_id, version }: ReflexVersion, scope: string, changes: object = {}) =>
  tellReflexMetrics(env.DB, { scope, seq: 1, now: 1 }, [{ reflex_id, version, metrics: acted(changes) }])

async function search(query: Record<string, string | number>, key?: string): Promise<FoundListing[]> {
  const { status, body, text } = await call(
    `/v1/market/listings?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString()}`,
    key === undefined ? {} : { key },
  )
  if (status !== 200) throw new Error(text)
  return body.items as FoundListing[]
}
const idsOf = (found: readonly FoundListing[]) => found.map(({ listing_id }) => listing_id)

describe('a search of listings', () => {
  test('shows the figures that the platform measured, with the reasons of their rank', async () => {
    const seller = freshScope('seller')
    const version = await createVersion(byAgent(seller))
    const { listing_id } = await listed(version)
    await tell(version, seller, { failed: 4 })
    await tell(version, 'market/buyer', { overruled: 8 })
    await tellCertificates(env.DB, 'market/buyer', [provenCertificate(version, { event_type: 'order.new' })], 1)
    const [found] = await search({ q: version.id })
    expect(found).toMatchObject({
      listing_id,
      figures: {
        scopes: 2,
        other_scopes: 1,
        fires: 160,
        failures: 4,
        overruled: 8,
        event_types: ['order.new'],
        agreement: { share: 1, state: 'proven' },
        model_calls_saved_per_1000: 800,
        usd_saved_per_1000: 4,
      },
    })
    const { score, because } = found!.rank
    expect(because.reduce((sum, { points }) => sum + points, 0)).toBeCloseTo(score, 5)
    expect(because.map(({ reason }) => reason)).toEqual(
      expect.arrayContaining([
        'It saves 800 model calls and $4.00 per 1,000 events.',
        'It acted 160 times, in 2 scopes.',
        '1 of its scopes do not belong to its owner.',
        '2.5 % of its actions failed.',
        '5 % of its actions were overruled.',
      ]),
    )
  })

  test('shows what an answer with the listing alone shows', async () => {
    const scope = freshScope('seller')
    const version = await createVersion({ ...byAgent(scope), code: replying(scope) })
    const asked = { artifact: `reflex:${version.id}@${version.version}`, kind: 'licence', price: 5, seller: `scope:${scope}` }
    const { status, body } = await call('/v1/market/listings', { json: asked })
    expect(status).toBe(201)
    await tell(version, scope, { failed: 4 })
    const alone = await call(`/v1/market/listings/${String(body.listing_id)}`)
    expect(alone.body).toMatchObject({ state: 'open', figures: { fires: 80, failures: 4, scopes: 1, usd_saved_per_1000: 4 } })
    await until(async () => (await search({ q: version.id })).length === 1, 'D1 has the listing')
    const [{ measured_at, ...found } = { measured_at: '' }] = await search({ q: version.id })
    expect(alone.body).toEqual({ ...found, measured_at: expect.any(String) })
    expect(measured_at >= alone.body.measured_at).toBe(true)
  })

  test('takes comparisons in shadow mode where no certificate is in force, for fewer points', async () => {
    const [version, lapsed] = [await createVersion(), await createVersion()]
    const shadow = { runs: 50, fired: 50, agreed: 50, disagreed: 0, undecided: 0 }
    for (const one of [version, lapsed])
      await tell(one, 'market/shadow', { runs: 50, fired: 50, acted: 0, model_calls_saved: 0, cost_saved_usd: 0, shadow })
    await tellCertificates(env.DB, 'market/shadow', [{ ...provenCertificate(lapsed), lapsed: { at: 1, reason: 'a new model' } }], 1)
    await listed(version)
    await listed(lapsed)
    const [compared] = await search({ q: version.id })
    expect(compared!.figures).toMatchObject({
      fires: 0,
      agreement: { share: 1, compared: 50, state: 'compared' },
      model_calls_saved_per_1000: null,
    })
    expect(compared!.figures.agreement!.lower_bound).toBeCloseTo(0.9418, 3)
    expect(compared!.rank.score).toBeCloseTo(18.8, 1)
    expect((await search({ q: lapsed.id }))[0]).toMatchObject({ figures: { agreement: { state: 'lapsed' } }, rank: { score: 0 } })
  })

  test('shows nothing that a seller claims: without figures a listing has no points', async () => {
    const version = await createVersion()
    await listed(version, { description: 'It saves 1,000,000 model calls and is certified.', event_types: ['order.new'] })
    expect((await search({ q: version.id }))[0]?.rank).toEqual({
      score: 0,
      because: [{ points: 0, reason: 'Nothing has been measured yet.' }],
    })
  })

  test('finds by words, kind, event type, tool and price', async () => {
    const mark = freshId('mark')
    const one = await listed(await createVersion(), {
      description: `${mark} Escalates REFUNDS`,
      event_types: ['order.new'],
      tools: ['notify'],
      price: 5,
    })
    const other = await listed(await createVersion(), {
      description: `${mark} Ignores noise`,
      kind: 'copy',
      event_types: ['order.new.eu'],
      price: 50,
    })
    const found = async (query: Record<string, string | number>) => idsOf(await search({ sort: 'price', ...query }))
    expect(await found({ q: mark })).toEqual([one.listing_id, other.listing_id])
    expect(await found({ q: `refunds ${mark}` })).toEqual([one.listing_id])
    expect(await found({ q: mark, kind: 'copy' })).toEqual([other.listing_id])
    expect(await found({ q: mark, type: 'order.new' })).toEqual([one.listing_id])
    expect(await found({ q: mark, tool: 'notify' })).toEqual([one.listing_id])
    expect(await found({ q: mark, max_price: 49 })).toEqual([one.listing_id])
    expect(await found({ q: `${mark} absent` })).toEqual([])
    expect(await found({ artifact: other.artifact })).toEqual([other.listing_id])
  })

  test('shows open listings alone, as of the newest copy', async () => {
    const version = await createVersion()
    const found = async () => idsOf(await search({ q: version.id }))
    await listed(version, { state: 'closed' }, 2)
    expect(await found()).toEqual([])
    await listed(version, { state: 'open' }, 1)
    expect(await found()).toEqual([])
    const { listing_id } = await listed(version, { state: 'open', expires_at: new Date(Date.now() + 60_000).toISOString() }, 3)
    expect(await found()).toEqual([listing_id])
    await listed(version, { expires_at: new Date(Date.now() - 1).toISOString() }, 4)
    expect(await found()).toEqual([])
  })

  test('is paged in each order without gaps, equal places included', async () => {
    const mark = freshId('page')
    const all: string[] = []
    for (const price of [3, 3, 1, 2, 3]) {
      const version = await createVersion()
      if (price === 2) await tell(version, 'market/page')
      all.push((await listed(version, { price, description: mark, created_at: new Date(price * 1000).toISOString() })).listing_id)
    }
    for (const sort of ['rank', 'price', 'newest', 'agreement', 'saved', 'fires']) {
      const seen: string[] = []
      let cursor: string | null = ''
      while (cursor !== null) {
        const { body } = await call(
          `/v1/market/listings?q=${mark}&sort=${sort}&limit=2${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
        )
        seen.push(...idsOf(body.items as FoundListing[]))
        cursor = body.next_cursor as string | null
      }
      expect(seen.toSorted()).toEqual(all.toSorted())
    }
    for (const sort of ['rank', 'saved', 'fires']) expect(idsOf(await search({ q: mark, sort }))[0]).toBe(all[3])
  })

  test('refuses what it does not know', async () => {
    for (const query of ['sort=luck', 'max_price=0', 'max_price=1.5', 'kind=loan', 'cursor=x', 'seller=alice', 'artifact=x', 'limit=101'])
      expect(await call(`/v1/market/listings?${query}`)).toMatchObject(problem(400, 'invalid-request'))
  })
})

describe('a trial', () => {
  const code =
    'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "a secret" } : null }'
  const recording = (seq: number, content: string, said: string): string =>
    JSON.stringify({
      seq,
      event_id: `e${seq}`,
      at: 'now',
      source: 'recorded',
      context: { ...sampleContext, event: { content } },
      decision: { by: 'turn', acts: [{ act: 'reply', content: said }] } satisfies ReflexRecording['decision'],
    })
  const recordings = [
    recording(1, 'hello', 'a secret'),
    recording(2, 'hello', 'bye'),
    recording(3, 'other', 'x'),
    recording(4, 'other', 'y'),
  ]
  const SCOPE = {
    getByName: () => ({
      identify: (calls: ActionCall[]) => stubOf('test/x').identify(calls),
      recordings: async () => ({ recordings, next: null }),
      state: async () => ({ counters: { turns: 10, model_calls: 20, cost_usd: 1 } }),
    }),
  }
  const now = () => new Date(Date.now() - 60_000).toISOString()

  async function trying(fields: Parameters<typeof buildListing>[1] = {}, paid: object = { ok: true, transfer: null }) {
    const version = await createVersion({ code })
    const listing = buildListing(version, fields)
    const payments: unknown[] = []
    const LEDGER = {
      getByName: () => ({
        listing: async (id: string) => (id === listing.listing_id ? listing : null),
        payTrial: async (...of: unknown[]) => {
          payments.push(of)
          return paid
        },
      }),
    }
    const attempt = (json: object = {}, key?: string) =>
      callWith({ SCOPE, LEDGER }, `/v1/market/listings/${listing.listing_id}/try`, {
        json: { scope: 'team-a/x', since: now(), ...json },
        ...(key !== undefined && { key }),
      })
    return { attempt, payments, listing, version }
  }

  test('evaluates it on the recordings of the buyer, without code and without arguments', async () => {
    const { attempt, payments, listing } = await trying({ terms: { trial_fee: 2 } })
    const { status, body, text } = await attempt({ id: 't1' })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        trial_id: 't1',
        fee: 2,
        fires: 2,
        agreement: { agreed: 1, disagreed: 1 },
        missed: 2,
        disagreements: [{ event_id: 'e2', action_type: 'reply', decided: [{ act: 'reply', content: 'bye' }] }],
        would_save: { model_calls: 2, usd: 0.1, per_1000_events_usd: 25 },
      },
    })
    expect(text).not.toContain('secret')
    expect(payments).toEqual([[listing.listing_id, { buyer: 'scope:team-a/x', id: 't1' }]])
  })

  test('with a repeated id is answered as before: it pays once, and shows nothing new', async () => {
    const { attempt, payments } = await trying()
    const since = now()
    const first = await attempt({ id: 'same', since })
    expect(await attempt({ id: 'same', since })).toMatchObject({ status: 200, body: first.body })
    expect(payments).toHaveLength(1)
    expect(await attempt({ id: 'same', since: new Date(Date.now() - 120_000).toISOString() })).toMatchObject(problem(409, 'other_content'))
  })

  test('is refused beyond the limit, without money, and if the goods changed', async () => {
    const rows = async () => (await env.DB.prepare('SELECT count(*) AS n FROM trials').first<{ n: number }>())?.n
    const before = await rows()
    const refused = async (reason: string) => (await trying({}, { ok: false, reason, detail: 'No.' })).attempt()
    expect(await refused('limit')).toMatchObject(problem(429, 'too-many-requests'))
    expect(await refused('insufficient_funds')).toMatchObject(problem(409, 'insufficient_funds'))
    expect(await rows()).toBe(before)
    const changed = await trying({ hash: 'another' })
    expect(await changed.attempt()).toMatchObject(problem(409, 'goods_changed'))
    const closed = await trying({ state: 'closed' })
    expect(await closed.attempt()).toMatchObject(problem(409, 'not_open'))
    expect([...changed.payments, ...closed.payments]).toEqual([])
  })

  test('takes a key that covers the scope, and an operator where it costs', async () => {
    const viewer = await keyFor(['viewer'], ['team-a/*'])
    const [free, costly] = [await trying(), await trying({ terms: { trial_fee: 1 } })]
    expect((await free.attempt({}, viewer)).status).toBe(200)
    expect(await free.attempt({ scope: 'team-b/x' }, viewer)).toMatchObject(problem(403, 'forbidden'))
    expect(await costly.attempt({}, viewer)).toMatchObject(problem(403, 'forbidden'))
    expect((await costly.attempt({}, await keyFor(['operator'], ['team-a/*']))).status).toBe(200)
  })

  test('of a skill says at which stage its gate would have refused, and agrees with what was done', async () => {
    const [id, what] = [freshId('skill').replaceAll('-', '.'), { content: 'twice, please', what: 'it' }]
    const word = 'a secret argument'
    const steps = [{ tool: 'act', args: { text: `${word} {{what}}` }, timeout_ms: 5000 }]
    const plan = { ...twoSteps('').plan, steps, compensation: [] }
    expect((await call('/v1/skills', { json: twoSteps(id, { plan }) })).status).toBe(201)
    const { hash } = (await call(`/v1/skills/${id}@1.0.0`)).body
    const listing = buildListing({ id, version: 1, hash }, { artifact: `skill:${id}@1.0.0`, listing_id: id })
    const seen = (seq: number, event: object, acts: object[]) =>
      JSON.stringify({
        seq,
        event_id: `e${seq}`,
        at: new Date().toISOString(),
        source: 'recorded',
        context: { ...sampleContext, event },
        decision: { by: 'turn', acts },
      })
    const done = { act: 'call_tool', tool: 'act', idempotence_key: null, arguments_hash: 'x' }
    const recorded = [
      seen(1, what, [done]),
      seen(2, what, [{ act: 'run_skill', skill_id: id, inputs_hash: 'x' }]),
      seen(3, what, []),
      seen(4, { content: 'twice' }, [done]),
      seen(5, { content: 'once', what: 'it' }, []),
    ]
    const settings = { ...defaultSettings, blackboard: { policy: { roles: ['agent'] } } }
    const bindings = {
      SCOPE: {
        getByName: () => ({
          chain: async () => ({ turn: { tools: ['act'] } }),
          recordings: async () => ({ recordings: recorded, next: null }),
          state: async () => ({ settings, counters: { turns: 10, model_calls: 20, cost_usd: 1 } }),
        }),
      },
      LEDGER: { getByName: () => ({ listing: async () => listing, payTrial: async () => ({ ok: true, transfer: null }) }) },
    }
    const json = { scope: 'team-a/x', since: now(), id: 't1' }
    const { status, body, text } = await callWith(bindings, `/v1/market/listings/${id}/try`, { json })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        fires: 3,
        stages: { applied: 3, clarify: 1, score: 1, preconditions: 0, policy: 0 },
        agreement: { agreed: 2, disagreed: 1, rate: 2 / 3 },
        missed: 1,
        disagreements: [{ event_id: 'e3', action_type: 'run_skill', decided: [] }],
        would_save: { model_calls: 4 },
      },
    })
    for (const hidden of [word, '{{what}}']) expect(text).not.toContain(hidden)
  })

  test('covers at most the last 30 days', async () => {
    const { attempt } = await trying()
    for (const since of ['2020-01-01T00:00:00Z', new Date(Date.now() + 60_000).toISOString(), 'yesterday'])
      expect(await attempt({ since })).toMatchObject(problem(400, 'invalid-request'))
  })
})

describe('with the ledger', () => {
  test('a listing is found once it is made, tried five times an hour, and gone once it is closed', async () => {
    const seller = freshScope('seller')
    const version = await createVersion({ ...byAgent(seller), code: replying(seller) })
    const json = { artifact: `reflex:${version.id}@1`, kind: 'licence', price: 10, seller: `scope:${seller}`, terms: { days: 1 } }
    const { status, body } = await call('/v1/market/listings', { json })
    expect(status).toBe(201)
    const path = `/v1/market/listings/${body.listing_id}`
    const found = async () => idsOf(await search({ q: version.id }))
    await until(async () => (await found()).length === 1, 'it is found')
    expect(await found()).toEqual([body.listing_id])
    const scope = freshScope('buyer')
    const attempt = (id: string) => call(`${path}/try`, { json: { scope, since: new Date(Date.now() - 1000).toISOString(), id } })
    for (let trial = 1; trial <= 5; trial += 1)
      expect(await attempt(`t${trial}`)).toMatchObject({ status: 200, body: { fires: 0, would_save: null } })
    expect(await attempt('t6')).toMatchObject(problem(429, 'too-many-requests'))
    expect((await call(path, { method: 'DELETE' })).status).toBe(200)
    await until(async () => (await found()).length === 0, 'it is gone')
    expect(await found()).toEqual([])
  })
})
