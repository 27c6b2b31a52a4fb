import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import type { ReflexState } from '../../../src/contract/reflex.ts'
import { sealVersion } from '../../../src/features/market/store/ownership.ts'
import { sha256 } from '../../../src/base/json.ts'
import { explaining } from '../../../src/features/learning/reflexes/explain.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { isolateSandbox } from '../../../src/reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { call, keyFor, scopePath } from '../../support/http.ts'
import { seededRandom } from '../../support/random.ts'
import { createVersion, freshId } from '../../support/reflexes.ts'
import { freshScope, note, sendAndSettle, stubOf } from '../../support/scopes.ts'
import { call as act, history } from '../../unit/learning/histories.ts'

const LANDS = ['de', 'fr', 'it', 'es']
/** Orders that are held or left alone: two of the conditions combine fields. */
function order(index: number): [{ type: string; [field: string]: string | number }, ReturnType<typeof act>] {
  const random = seededRandom(index + 7)
  const amount = Math.round(random() * 1000)
  const weight = Math.round(random() * 100) / 10
  const age = Math.floor(random() * 90)
  const land = LANDS[Math.floor(random() * 4)] ?? 'de'
  const isHeld = amount > 700 || (land === 'es' && age < 30) || weight * 60 > amount + 300
  return [{ type: 'test.note', text: 'an order', ...USUAL, amount, weight, age, land }, isHeld ? act('act', { text: 'clean up' }) : []]
}
/** Fields that the decisions of a history have. */
const USUAL = { connection_id: 'alice', content: 'hello' }

let learned: string | null = null
const tableCode = (): string => (learned ??= learnReflexes(history(1600, order)).reflexes.find(({ by }) => by === 'table')?.code ?? '')

function compiled(hash: string, code: string): void {
  for (let tries = 0; tries < 20; tries += 1) if (isolateSandbox().run({ hash, code }, sampleContext).reason !== 'limit') return
}

async function served(state: ReflexState) {
  const [scope, id] = [freshScope(), freshId()]
  const code = tableCode()
  // A loaded machine compiles slowly, which the clock of the sandbox ends.
  for (const one of [code, explaining(code)?.code ?? '']) compiled(one === code ? await sha256(code) : `why ${await sha256(code)}`, one)
  const provenance = { by: 'ops', scope: null, template: null, origin: null, run: 'run-1' }
  await createVersion({ id, code, hash: await sha256(code), state, owner: 'ops', owner_id: 'key-of-ops', scopes: ['*'], provenance })
  expect(await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')).toMatchObject({ ok: true })
  const why = async (fields: { amount: number; weight?: number; age?: number }, key?: string) => {
    const event = note(scope, 'an order', { ...USUAL, weight: 2, age: 50, land: 'de', ...fields })
    await sendAndSettle(stubOf(scope), event)
    return call(`${scopePath(scope)}/events/${event.id}/why`, key === undefined ? {} : { key })
  }
  return { scope, id, why }
}

test('says for an event why a table decided, why it did not, and what its numbers said', async () => {
  const { id, scope, why } = await served('active')
  const { status, body } = await why({ amount: 950 })
  expect(status).toBe(200)
  expect(body).toMatchObject({ scope, event_type: 'test.note', decided: `reflex ${id}@1`, context: 'recorded' })
  const [decided] = body.reflexes
  expect(decided).toMatchObject({ id, version: 1, verdict: 'acted', would: 'call act {"text":"clean up"}' })
  expect(decided.points.lead).toBeGreaterThanOrEqual(decided.points.needed)
  expect(decided.points.best.spoke[0]).toMatchObject({ says: expect.stringMatching(/^amount >= \d+/) })

  const outside = (await why({ amount: 90_000 })).body
  expect(outside.reflexes[0]).toMatchObject({
    verdict: 'left',
    would: null,
    reasons: [expect.stringMatching(/^amount is 90000; it was taught/)],
  })

  const [near] = (await why({ amount: 691, weight: 5, age: 28 })).body.reflexes
  expect(near).toMatchObject({ verdict: 'left', would: null, reasons: [expect.stringMatching(/^The lead is too small: .* needs \d+\.$/)] })
  expect(near.points.lead).toBeLessThan(near.points.needed)
}, 300_000)

test('says before the proof what it would have done, and to others than its readers nothing of other scopes', async () => {
  const { scope, why } = await served('shadow')
  const { body } = await why({ amount: 950 })
  expect(body.reflexes).toMatchObject([
    {
      verdict: 'held',
      would: 'call act {"text":"clean up"}',
      reasons: ['It did not act: its newest version is in shadow mode.', expect.any(String)],
    },
  ])
  expect(body.reflexes[0].judged).toMatchObject([{ how: 'compared', agreed: false }])
  expect(body.reflexes[0].disagreed).toMatchObject({ event_id: body.event_id })
  const other = await keyFor(['viewer'], ['elsewhere/*'])
  expect((await why({ amount: 950 }, other)).status).toBe(403)
  expect((await call(`${scopePath(scope)}/events/none/why`)).status).toBe(404)
}, 300_000)

test('says nothing of what hidden code looks at or would do to a key that may not read it', async () => {
  const { scope, id, why } = await served('shadow')
  await sealVersion(env.DB, { kind: 'reflex', id, version: '1' })
  const key = await keyFor(['viewer'], [scope])
  for (const amount of [950, 90_000, 691]) {
    const { status, body, text } = await why({ amount, weight: 5, age: 28 }, key)
    expect(status).toBe(200)
    expect(body.reflexes).toMatchObject([{ id, would: null, points: null, reasons: expect.arrayContaining([HIDDEN]) }])
    for (const word of ['clean up', 'amount', 'weight', 'lead', 'taught']) expect(text).not.toContain(word)
  }
  // Its owner reads on.
  expect((await why({ amount: 950 })).text).toContain('clean up')
}, 300_000)

const HIDDEN = 'Its code is hidden from this key, so that it says no more.'
