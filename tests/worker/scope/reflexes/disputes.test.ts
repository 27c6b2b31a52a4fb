import { expect, test } from 'vitest'
import type { Settings } from '../../../../src/contract/settings/settings.ts'
import { signsOf } from '../../../../src/evidence/branches.ts'
import { certificateOf, certify } from '../../../support/certificates.ts'
import { did, write } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, evict, freshScope, inObject, note, sendAndSettle, stubOf, textOf, until } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

const CALLS = `return { action_type: 'call_tool', tool: 'act_once', args: { text: 'clean' } }`

/** A scope whose agent has written a reflex, and whose slow path gives these answers in turn. */
async function scopeOf(state: 'shadow' | 'active', says: readonly string[], learning: Partial<Settings['learning']> = {}) {
  const scope = freshScope()
  const version = await write(CALLS, { scope, state })
  const settings = { reflexes: [{ id: version.id }], learning: { mode: 'auto' as const, ...learning } }
  expect(await stubOf(scope).configure(settings, 'ops', 'key-of-ops')).toMatchObject({ ok: true })
  const answers = [...says]
  behaviours.set(scope, (_, deps) => deps.call('act_once', { text: answers.shift() ?? 'clean' }))
  return { scope, version }
}

const settled = (scope: string) =>
  until(
    async () => (await inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec('SELECT 1 FROM jobs').toArray())).length === 0,
    'nothing is asked any more',
  )
const askedAgain = async (scope: string) => (await entriesOf(stubOf(scope), 'dry-turn-ended')).filter(({ why }) => why === 'asked-again')
const actOf = async (...of: Parameters<typeof certificateOf>) => (await certificateOf(...of)).strata.find(({ act }) => act === 'act_once')

test('a slip of the slow path that it does not repeat twice counts as an agreement with a reflex in shadow mode', async () => {
  const { scope, version } = await scopeOf('shadow', ['burn'])
  await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  await settled(scope)
  expect(await actOf(scope, version)).toMatchObject({ n: 1, k: 1, state: 'open' })
  expect(await askedAgain(scope)).toHaveLength(2)
  expect((await entriesOf(stubOf(scope), 'certificate-changed')).map(({ change }) => change)).toEqual(['issued', 'retracted'])
})

test.each([
  ['at once', ['burn', 'burn'], 1],
  ['in one of two answers', ['burn', 'clean', 'burn'], 2],
])('a disagreement that the slow path repeats %s stands', async (_, says, asked) => {
  const { scope, version } = await scopeOf('shadow', says)
  await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  await settled(scope)
  expect(await actOf(scope, version)).toMatchObject({ n: 1, k: 0 })
  expect(await askedAgain(scope)).toHaveLength(asked)
})

test('once an act is refuted, its disagreements count no more, and nobody is asked again', async () => {
  const { scope, version } = await scopeOf('shadow', ['burn', 'burn', 'burn', 'burn', 'burn', 'clean', 'clean'])
  const disagree = async () => {
    await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
    await settled(scope)
  }
  await disagree()
  await disagree()
  const refuted = await actOf(scope, version)
  expect(refuted).toMatchObject({ state: 'refuted', n: 2, k: 0 })
  await disagree()
  expect(await askedAgain(scope)).toHaveLength(2)
  expect(await actOf(scope, version)).toEqual(refuted)
})

test('a version that slips alone refuted is proven and acts all the same once they are taken back', async () => {
  const { scope, version } = await scopeOf('shadow', [])
  const gate = Promise.withResolvers<void>()
  const slips = new Set(['first', 'second'])
  behaviours.set(scope, async (context, deps) => {
    const said = textOf(context.events.at(-1) as never)
    if (slips.delete(said)) return deps.call('act_once', { text: 'burn' })
    if (said === 'first' || said === 'second') await gate.promise
    return deps.call('act_once', { text: 'clean' })
  })
  for (const said of ['first', 'second']) await sendAndSettle(stubOf(scope), note(scope, said))
  expect(await actOf(scope, version)).toMatchObject({ state: 'refuted' })
  gate.resolve()
  await settled(scope)
  expect(await actOf(scope, version)).toMatchObject({ state: 'open', n: 2, k: 2 })
  const moves = (await entriesOf(stubOf(scope), 'reflex-moved')).map(({ reason }) => reason)
  expect(moves).toEqual(['0 of 2 compared fires in shadow agreed: too few to activate it', 'the slow path took back what refuted it'])
  for (let index = 0; index < 68; index += 1) await sendAndSettle(stubOf(scope), note(scope, `dusty ${index}`))
  const [{ outcome } = {}] = await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  expect(outcome).toMatchObject({ by: 'reflex' })
})

test('decisions that drifted are left to the slow path, which is asked about them once', async () => {
  const { scope, version } = await scopeOf('shadow', ['clean', 'burn'])
  await certify(scope, version, { risk: 'outside' })
  const signs = (text: string) => signsOf(note(scope, text), { action_type: 'call_tool', tool: 'act_once', args: { text: 'clean' } })
  const certificate = await certificateOf(scope, version)
  const strata = certificate.strata.map((one) => ({ ...one, left: signs('dusty').filter((sign) => !signs('plain').includes(sign)) }))
  const changed = JSON.stringify({ ...certificate, strata })
  await inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec('UPDATE certificates SET certificate = ?', changed))
  await evict(stubOf(scope))
  const by = async (text: string) => (await sendAndSettle(stubOf(scope), note(scope, text)))[0]?.outcome?.by
  // The first agreement lets it act.
  expect([await by('plain'), await by('dusty'), await by('plain')]).toEqual(['turn', 'turn', 'reflex'])
  // A publisher who puts more words before it does not hide it.
  const letters = 'abcdefgh'.split('')
  const padding = letters.flatMap((one) => letters.map((other) => `pad${one}${other}`)).join(' ')
  expect(await by(`${padding} dusty`)).toBe('turn')
  await settled(scope)
  expect((await entriesOf(stubOf(scope), 'reflex-compared')).map(({ agreed }) => agreed)).toEqual([true, false, true])
  expect(await askedAgain(scope)).toEqual([])
})

test('an audit that disagrees stops a reflex at once, and it acts again if the slow path does not repeat that twice', async () => {
  const { scope, version } = await scopeOf('active', ['burn'], { audit_share: 1 })
  await certify(scope, version, { risk: 'outside' })
  await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  await settled(scope)
  expect(await actOf(scope, version)).toMatchObject({ audits: { audits: 1, disagreed: 0, sum: 0 } })
  const [{ outcome } = {}] = await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  expect(outcome).toMatchObject({ by: 'reflex' })
})

test('an answer of the slow path that was asked again outlives the object', async () => {
  const { scope, version } = await scopeOf('shadow', ['burn'])
  const gate = Promise.withResolvers<void>()
  let turns = 0
  behaviours.set(scope, async (_, deps) => {
    turns += 1
    if (turns === 3) await gate.promise
    return deps.call('act_once', { text: turns === 1 ? 'burn' : 'clean' })
  })
  await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  await until(async () => turns === 3, 'it is asked for the second time')
  await crash(scope)
  gate.resolve()
  await until(async () => (await stubOf(scope).poke(), (await askedAgain(scope)).length === 2), 'it has answered twice')
  await settled(scope)
  expect(await actOf(scope, version)).toMatchObject({ n: 1, k: 1 })
  expect(turns).toBe(4)
  expect(did(scope)).toEqual(['burn'])
})

test('while nothing is learned, nobody is asked again', async () => {
  const { scope } = await scopeOf('shadow', ['burn'], { mode: 'off' })
  await sendAndSettle(stubOf(scope), note(scope, 'dusty'))
  await settled(scope)
  expect(await askedAgain(scope)).toEqual([])
})
