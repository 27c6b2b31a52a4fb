import { env } from 'cloudflare:workers'
import { generateText } from 'ai'
import { describe, expect, test } from 'vitest'
import type { Settings } from '../../../../src/contract/settings/settings.ts'
import { setReflexState } from '../../../../src/artifacts/kinds.ts'
import { isAudited, shareFor } from '../../../../src/evidence/draw.ts'
import { shapeOf } from '../../../../src/evidence/shape.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { certificateOf, certify } from '../../../support/certificates.ts'
import { type Place, live } from '../../../support/crash-at-write.ts'
import { call } from '../../../support/http.ts'
import { calls, did, notes, write } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, evict, freshScope, inObject, note, send, sendAndSettle, stubOf, textOf, until } from '../../../support/scopes.ts'
import { skill } from '../../../support/two-step-skill.ts'
import { ask, behaviours, effectGates, looks, providers } from '../../../support/test-agents.ts'

type Learning = Partial<Settings['learning']>
const IGNORES = `return { action_type: 'ignore', reason: 'noise' }`

/** A scope in which a reflex acts by proof, and each of its decisions is audited. */
async function audited(
  body: string,
  { risk = 'inside' as const, ...learning }: Learning & { risk?: 'inside' | 'outside' | 'final' } = {},
  scope = freshScope(),
) {
  const version = await write(body, { scope })
  const settings = { reflexes: [{ id: version.id }], learning: { mode: 'auto' as const, audit_share: 1, ...learning } }
  expect(await stubOf(scope).configure(settings, 'ops', 'key-of-ops')).toMatchObject({ ok: true })
  await certify(scope, version, { risk, ...(risk === 'final' && { person: 'ops' }) })
  return { scope, version }
}

/** An event that no draw audits. At a share of 0 that is still one in twenty that reach outside. */
function undrawn(scope: string, text: string, { hash }: { hash: string }, place = 0) {
  const salt = `${env.REFLEX_ADMIN_KEY} ${hash}`
  const ids = Array.from({ length: 100 }, (_, index) => `event-${index}`)
  return note(scope, text, { id: ids.filter((id) => !isAudited(id, { share: shareFor('outside', 0), salt }))[place] })
}

const audits = (scope: string) => entriesOf(stubOf(scope), 'reflex-audited')
const jobsOf = (scope: string) => inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec('SELECT kind FROM jobs').toArray())
/** Audits whose first attempt is over. */
const auditAttempts = (scope: string) =>
  inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec(`SELECT 1 FROM jobs WHERE kind = 'audit' AND due_at > 0`).toArray().length)
const untilAudited = (scope: string, count: number) =>
  until(async () => (await audits(scope)).length === count && (await jobsOf(scope)).length === 0, `${count} audits ended`)

test.each([
  ['auto', ['shapes_changed']],
  ['off', []],
] as const)('events with other fields than those of its proof send a reflex back to shadow mode: learning %s', async (mode, changes) => {
  const scope = freshScope()
  const version = await write(IGNORES, { scope })
  await stubOf(scope).configure({ reflexes: [{ id: version.id }], learning: { mode, audit_share: 0 } }, 'ops', 'key-of-ops')
  await certify(scope, version, { shape: shapeOf(note(scope, 'known')) })
  behaviours.set(scope, async () => null)
  await sendAndSettle(stubOf(scope), ...notes(scope, 100))
  expect((await certificateOf(scope, version)).shapes.unseen).toEqual([])
  const other = Array.from({ length: 40 }, (_, index) => note(scope, `other ${index}`, { severity: { level: index } }))
  for (const event of other) await sendAndSettle(stubOf(scope), event)
  expect((await entriesOf(stubOf(scope), 'certificate-changed')).map(({ change }) => change)).toEqual(changes)
  expect((await certificateOf(scope, version)).strata).toMatchObject([{ state: changes.length > 0 ? 'open' : 'proven' }])
  const runs = async () => (await call(`/v1/learn/runs?scope=${encodeURIComponent(scope)}`)).body.items
  await until(async () => (await runs()).length === changes.length, 'it is learned again')
  expect((await runs()).every(({ started_by }: { started_by: string }) => started_by === 'drift')).toBe(true)
})

test('a reflex that would decide otherwise with a number a little higher is audited sooner', async () => {
  const { scope } = await audited(`return context.event.severity.level < 50 ? { action_type: 'ignore', reason: 'low' } : null`)
  behaviours.set(scope, async () => null)
  const reads = (from: number, levels: readonly number[]) =>
    levels.map((level, at) => note(scope, 'read', { id: `read-${from + at}`, severity: { level } }))
  const taught = Array.from({ length: 40 }, (_, at) => at + 9)
  for (const event of reads(0, taught)) await sendAndSettle(stubOf(scope), event)
  await untilAudited(scope, 40)
  await stubOf(scope).configure({ learning: { audit_share: 0.001 } }, 'ops')
  const occasions = async (from: number, level: number, together = 1) => {
    const before = (await audits(scope)).length
    const events = reads(
      from,
      Array.from({ length: 60 }, () => level),
    )
    for (let at = 0; at < events.length; at += together) await sendAndSettle(stubOf(scope), ...events.slice(at, at + together))
    await until(async () => (await jobsOf(scope)).length === 0, 'all audits ended')
    return (await audits(scope)).slice(before).map(({ occasion }) => occasion)
  }
  expect(await occasions(1000, 20)).not.toContain('edge')
  expect(await occasions(2000, 48)).toContain('edge')
  // A second run of the reflex is for one act of a batch.
  expect((await occasions(3000, 48, 60)).filter((occasion) => occasion === 'edge').length).toBeLessThan(2)
})

test('once an audit of one act disagrees, the next of each other act of the reflex is audited', async () => {
  const body = `return context.event.text === 'odd' ? { action_type: 'reply', content: 'odd' } : ${IGNORES.replace('return ', '')}`
  const { scope, version } = await audited(body, { audit_share: 0.001 })
  const certificate = await certificateOf(scope, version)
  const strata = ['nothing', 'reply'].map((act) => ({ ...certificate.strata.find((one) => one.act !== '*'), act }))
  const both = JSON.stringify({ ...certificate, least: { ...certificate.least, agreement: 0.99 }, strata })
  await inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec('UPDATE certificates SET certificate = ?', both))
  await evict(stubOf(scope))
  behaviours.set(scope, async () => null)
  const salt = `${env.REFLEX_ADMIN_KEY} ${version.hash}`
  const ids = Array.from({ length: 60 }, (_, index) => `event-${index}`).filter((id) => !isAudited(id, { share: 0.5, salt }))
  const after = async (text: string, id?: string) => {
    const before = (await audits(scope)).length
    await sendAndSettle(stubOf(scope), note(scope, text, id === undefined ? {} : { id }))
    await until(async () => (await jobsOf(scope)).length === 0, 'all audits ended')
    return (await audits(scope)).slice(before).map(({ agreed, occasion }) => ({ agreed, occasion }))
  }
  for (let index = 0; index < 12; index += 1) await after('even')
  expect(await after('even', ids[0])).toEqual([])
  expect(await after('odd')).toEqual([{ agreed: false, occasion: 'first' }])
  expect(await after('even', ids[1])).toEqual([{ agreed: true, occasion: 'first' }])
  expect(await after('even', ids[2])).toEqual([])
})

describe('an audit of a proven reflex', () => {
  test('agrees that it ignored an event, if the slow path did something for others alone', async () => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    behaviours.set(scope, async ({ events }, deps) => {
      const ordered = events.find((event) => textOf(event).includes('refund'))
      if (ordered) await deps.call('act_once', { text: textOf(ordered) })
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'refund A-1001'))
    await sendAndSettle(stubOf(scope), note(scope, 'humming'))
    await untilAudited(scope, 1)
    expect(await audits(scope)).toMatchObject([{ agreed: true, decided: { acts: [{ tool: 'act_once' }] } }])
  })

  test.each([
    ['agrees that it ignored an event, if the slow path says nothing without one that waited beside it', 'when?', true],
    ['disagrees if the slow path says something without the one that waited beside it, too', 'humming', false],
  ])('%s', async (_, asks, agreed) => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    const gate = Promise.withResolvers<void>()
    let turns = 0
    behaviours.set(scope, async ({ events }, deps) => {
      turns += 1
      if (turns === 1) await gate.promise
      if (events.some((event) => textOf(event) === asks)) deps.reply('We open at nine.')
      return { done: true }
    })
    await send(stubOf(scope), note(scope, 'when?'))
    await send(stubOf(scope), note(scope, 'humming'))
    await untilAudited(scope, 1)
    gate.resolve()
    expect(await audits(scope)).toMatchObject([{ agreed }])
    const asked = (await entriesOf(stubOf(scope), 'dry-turn-ended')).filter(({ why }) => why === 'audit')
    expect(asked.map(({ saw, acts }) => [saw.seqs, acts.length])).toEqual([
      [[[1, 2]], 1],
      [[[2, 2]], agreed ? 0 : 1],
    ])
  })

  test('keeps the first answer on an ignored event while the second one waits, and reports the usage of both', async () => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    const gate = Promise.withResolvers<void>()
    const prompts = { beside: `beside ${scope}`, apart: `apart ${scope}` }
    let turns = 0
    behaviours.set(scope, async ({ events }, deps) => {
      turns += 1
      if (turns === 1) await gate.promise
      const is_beside = events.some((event) => textOf(event) === 'when?')
      await ask(deps, is_beside ? prompts.beside : prompts.apart)
      if (is_beside) deps.reply('We open at nine.')
      return null
    })
    providers.set(prompts.apart, () => Object.assign(new Error('busy'), { name: 'AI_APICallError', statusCode: 503 }))
    await send(stubOf(scope), note(scope, 'when?'))
    await send(stubOf(scope), note(scope, 'humming'))
    await until(async () => (await stubOf(scope).state()).waiting_for_model !== null, 'the model is away')
    const asked = () => entriesOf(stubOf(scope), 'dry-turn-ended')
    expect(await asked()).toMatchObject([{ saw: { seqs: [[1, 2]] }, usage: { model_calls: 1 } }])
    providers.delete(prompts.apart)
    await stubOf(scope).configure({ retry: { backoff_ms: 100 } }, 'someone')
    await inObject(stubOf(scope), ({ storage: { sql } }) => void sql.exec('UPDATE jobs SET due_at = 0'))
    await until(async () => (await stubOf(scope).poke(), (await audits(scope)).length === 1), 'the audit ended')
    gate.resolve()
    expect(await audits(scope)).toMatchObject([{ agreed: true, usage: { model_calls: 2 } }])
    const [first, second, ...more] = await asked()
    expect(more).toEqual([])
    expect(second).toMatchObject({ saw: { seqs: [[2, 2]] }, event_ids: first?.event_ids, parent_id: first?.span_id })
    expect(second?.span_id).not.toBe(first?.span_id)
  })

  test('asks only the second question again after a death within it', async () => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    const gate = Promise.withResolvers<void>()
    let [turns, apart] = [0, 0]
    behaviours.set(scope, async ({ events }, deps) => {
      turns += 1
      if (turns === 1) await gate.promise
      if (events.some((event) => textOf(event) === 'when?')) deps.reply('We open at nine.')
      else if ((apart += 1) === 1) await gate.promise
      return null
    })
    await send(stubOf(scope), note(scope, 'when?'))
    await send(stubOf(scope), note(scope, 'humming'))
    await until(async () => apart === 1, 'it is asked again')
    expect(await entriesOf(stubOf(scope), 'dry-turn-ended')).toHaveLength(1)
    await crash(scope)
    await until(async () => (await stubOf(scope).poke(), (await audits(scope)).length === 1), 'the audit ended')
    gate.resolve()
    expect(await audits(scope)).toMatchObject([{ agreed: true }])
    const asked = await entriesOf(stubOf(scope), 'dry-turn-ended')
    expect(asked.map(({ saw }) => saw.seqs)).toEqual([[[1, 2]], [[2, 2]]])
    expect(apart).toBe(2)
  })

  test('disagrees if the slow path does for it what an event before it had asked for', async () => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    behaviours.set(scope, async ({ events }, deps) => {
      const ordered = events.find((event) => textOf(event).includes('order'))
      if (ordered && events.some((event) => textOf(event) === 'humming')) await deps.call('act_once', { text: textOf(ordered) })
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'shall I order A-1001?'))
    await sendAndSettle(stubOf(scope), note(scope, 'humming'))
    await untilAudited(scope, 1)
    expect(await audits(scope)).toMatchObject([{ agreed: false, decided: { acts: [{ tool: 'act_once' }] } }])
  })

  test('disagrees if the slow path speaks of events that it had kept in mind', async () => {
    const { scope } = await audited(`if (context.event.text !== 'humming') return null; ${IGNORES}`)
    behaviours.set(scope, async ({ events }, deps) => {
      if (events.length > 1) deps.reply('That is too much.')
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'when?'))
    await sendAndSettle(stubOf(scope), note(scope, 'humming'))
    await untilAudited(scope, 1)
    expect(await audits(scope)).toMatchObject([{ agreed: false }])
    expect((await entriesOf(stubOf(scope), 'dry-turn-ended')).map(({ why }) => why)).toEqual(['audit', 'asked-again'])
  })

  test('repeats its decision by the slow path, which does nothing, and counts that they agree', async () => {
    const { scope, version } = await audited(calls('act_once'), { risk: 'outside' })
    behaviours.set(scope, async (context, deps) => ({ did: await deps.call('act_once', { text: textOf(context.events.at(-1) as never) }) }))
    const event = note(scope, 'n0')
    await sendAndSettle(stubOf(scope), event)
    await untilAudited(scope, 1)
    expect(did(scope)).toEqual(['n0'])
    expect(await audits(scope)).toMatchObject([
      {
        trace_id: event.meta.trace_id,
        reflex_id: version.id,
        judged_by: 'audit',
        by: null,
        own: { action_type: 'call_tool', args: { text: 'n0' } },
        decided: { by: 'turn', acts: [{ act: 'call_tool', tool: 'act_once' }] },
        agreed: true,
        usage: { model_calls: 0 },
      },
    ])
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ state: 'proven', audits: { audits: 1, disagreed: 0 } }])
    expect((await stubOf(scope).state()).counters).toMatchObject({ turns: 0, reflex_actions: 1 })
  })

  test('of a sequence waits for its end, since the slow path needs what it returned', async () => {
    const acts = [
      `{ action_type: 'call_tool', tool: 'act', args: { text: context.event.text } }`,
      `{ action_type: 'call_tool', tool: 'act', args: { text: '' }, uses: [{ at: '/args/text', output: 0, path: '/did' }] }`,
    ]
    const { scope } = await audited(`return { action_type: 'sequence', acts: [${acts.join()}] }`, { risk: 'final' })
    behaviours.set(scope, async (_, deps) => {
      const { did: text = 'nothing' } = (await deps.call('act', { text: 'n0' })) as { did?: string }
      await deps.call('act', { text })
      return null
    })
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    await send(stubOf(scope), note(scope, 'n0'))
    await until(async () => did(scope).length === 1, 'the first act has begun')
    await until(async () => (await auditAttempts(scope)) > 0, 'the audit has found it at work')
    gate.resolve()
    await untilAudited(scope, 1)
    expect(await audits(scope)).toMatchObject([{ agreed: true }])
  })

  test('of a sequence shows the slow path what its look-up returned, and not what its later act has changed', async () => {
    const looked = `{ action_type: 'call_tool', tool: 'look', args: { text: 'n0' } }`
    const acted = looked.replace('look', 'act')
    const { scope, version } = await audited(
      `return { action_type: 'sequence', acts: [${looked}, ${acted}] }`,
      { risk: 'final' },
      freshScope('look'),
    )
    const seen: unknown[] = []
    behaviours.set(scope, async (_, deps) => {
      seen.push(await deps.call('look', { text: 'n0' }))
      await deps.call('act', { text: 'n0' })
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'n0'))
    await untilAudited(scope, 1)
    expect(seen).toEqual([{ times: 0 }])
    expect(await audits(scope)).toMatchObject([{ agreed: true, version: version.version }])
  })

  test('of a sequence shows the slow path that its look-up failed, also if it would not fail any more', async () => {
    const call = (tool: string, text: string) => `{ action_type: 'call_tool', tool: '${tool}', args: { text: '${text}' } }`
    const branch = `{ when: [{ output: 0, path: '/@failed', one_of: ['404'] }], acts: [${call('act', 'made')}] }`
    const { scope } = await audited(
      `return { action_type: 'sequence', acts: [${call('look', 'gone once')}], branches: [${branch}] }`,
      { risk: 'final' },
      freshScope('look'),
    )
    behaviours.set(scope, async (_, deps) => {
      const found = await deps.call('look', { text: 'gone once' }).catch(() => null)
      await deps.call('act', { text: found ? 'found' : 'made' })
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'n0'))
    await untilAudited(scope, 1)
    expect([did(scope), looks.get(scope)]).toEqual([['made'], 1])
    expect(await audits(scope)).toMatchObject([{ agreed: true }])
  })

  test('catches a slow path that changes its mind within 200 audits, and has it learned again', async () => {
    const { scope, version } = await audited(IGNORES)
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), ...notes(scope, 150))
    await untilAudited(scope, 150)
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ state: 'proven', audits: { audits: 150, disagreed: 0 } }])
    behaviours.set(scope, async (_, deps) => (deps.reply('I do care now'), null))
    const changed = Array.from({ length: 200 }, (_, index) => note(scope, `later ${index}`))
    await sendAndSettle(stubOf(scope), ...changed)
    await until(async () => (await entriesOf(stubOf(scope), 'certificate-changed')).length > 0, 'the alarm')
    await until(async () => (await jobsOf(scope)).length === 0, 'the other audits are dropped')
    const after = (await audits(scope)).slice(150)
    expect(after.every(({ agreed }) => agreed === false)).toBe(true)
    expect(after.length).toBeLessThan(20)
    expect(await entriesOf(stubOf(scope), 'certificate-changed')).toMatchObject([{ change: 'drifted', event_type: 'test.note' }])
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ state: 'open', drifts: 1 }])
  })

  test('is waited for after twenty acts that reach outside, however many events come at once', async () => {
    const { scope, version } = await audited(calls('act_once'), { risk: 'outside', audit_share: 0 })
    await setReflexState(env.DB, { ...version, state: 'active', reason: 'proven', by_proof: true, now: Date.now() })
    await stubOf(scope).configure({ reflexes: [{ id: version.id }] }, 'ops', 'key-of-ops')
    const answers = Promise.withResolvers<null>()
    behaviours.set(scope, () => answers.promise)
    const events = Array.from({ length: 60 }, (_, index) => note(scope, `burst ${index}`, { id: `burst-${index}` }))
    await send(stubOf(scope), ...events)
    await until(async () => did(scope).length >= 20, 'the first acts are done')
    const lacks = (await entriesOf(stubOf(scope), 'reflex-passed')).map(({ error }) => error)
    expect(lacks).toEqual(Array(40).fill('20 of its acts wait for the answer to an audit'))
    // The slow path would have done nothing.
    answers.resolve(null)
    await until(async () => (await jobsOf(scope)).length === 0 && (await stubOf(scope).state()).inbox.pending === 0, 'all ended')
    expect(did(scope)).toHaveLength(20)
    expect((await audits(scope)).every(({ agreed }) => agreed === false)).toBe(true)
  })

  test('sees the notes and the context as they were before the reflex acted', async () => {
    const { scope } = await audited(`return { action_type: 'set_scratch', key: 'last', value: context.event.text, consume: true }`)
    const saw: unknown[] = []
    behaviours.set(scope, async (context) => {
      saw.push({ texts: context.events.map(textOf), scratch: { ...context.scratch } })
      context.scratch['last'] = textOf(context.events.at(-1) as never)
      return null
    })
    await sendAndSettle(stubOf(scope), ...notes(scope, 2))
    await untilAudited(scope, 2)
    expect(saw).toEqual([
      { texts: ['n0'], scratch: {} },
      { texts: ['n1'], scratch: { last: 'n0' } },
    ])
    expect((await audits(scope)).map(({ agreed }) => agreed)).toEqual([true, true])
    expect((await stubOf(scope).context(10)).scratch).toEqual({ last: 'n1' })
  })

  test('is drawn by a hash of the event, in the share of the setting', async () => {
    const { scope } = await audited(IGNORES, { audit_share: 0.1 })
    const events = Array.from({ length: 400 }, (_, index) => note(scope, 'n', { id: `drawn-${index}` }))
    await sendAndSettle(stubOf(scope), ...events)
    await until(async () => (await jobsOf(scope)).length === 0, 'all ended')
    const count = (await audits(scope)).length
    expect(count).toBeGreaterThan(15)
    expect(count).toBeLessThan(75)
  })

  test('is not made of a reflex without a proof, or of an action that cannot be compared', async () => {
    const { scope } = await audited(`return { action_type: 'escalate', reason: 'urgent' }`)
    const { id } = await write(IGNORES)
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    await sendAndSettle(stubOf(scope), note(scope, 'b'))
    expect(await audits(scope)).toEqual([])
  })

  test('is not made of a version that a person activated where the scope does not learn', async () => {
    const { scope } = await audited(IGNORES, { mode: 'off' })
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    await until(async () => (await jobsOf(scope)).length === 0, 'all ended')
    expect(await audits(scope)).toEqual([])
    await stubOf(scope).configure({ learning: { mode: 'auto' } }, 'ops')
    await sendAndSettle(stubOf(scope), note(scope, 'b'))
    await untilAudited(scope, 1)
  })

  test('waits for the model, and ends once it answers', async () => {
    const { scope } = await audited(IGNORES)
    const prompt = `audit ${scope}`
    behaviours.set(scope, async (_, deps) => (await ask(deps, prompt), null))
    providers.set(prompt, () => Object.assign(new Error('busy'), { name: 'AI_APICallError', statusCode: 503 }))
    await sendAndSettle(stubOf(scope), note(scope, 'a'))
    await until(async () => (await stubOf(scope).state()).waiting_for_model !== null, 'the model is away')
    expect(await audits(scope)).toEqual([])
    providers.delete(prompt)
    await stubOf(scope).configure({ retry: { backoff_ms: 100 } }, 'someone')
    await inObject(stubOf(scope), ({ storage: { sql } }) => void sql.exec('UPDATE jobs SET due_at = 0'))
    await until(async () => (await stubOf(scope).poke(), (await audits(scope)).length === 1), 'the audit ended')
    expect(await audits(scope)).toMatchObject([{ agreed: true, usage: { model_calls: 1 } }])
    expect((await stubOf(scope).state()).waiting_for_model).toBeNull()
  })

  test('of a slow path that fails or cannot be asked counts neither way', async () => {
    const { scope, version } = await audited(IGNORES)
    behaviours.set(scope, async (context, deps) => {
      if (textOf(context.events.at(-1) as never) === 'n0') throw new Error('it broke')
      return deps.env.SCOPE
    })
    await sendAndSettle(stubOf(scope), ...notes(scope, 2))
    await untilAudited(scope, 2)
    expect(await audits(scope)).toMatchObject([
      { agreed: null, decided: null },
      { agreed: null, decided: null },
    ])
    expect((await entriesOf(stubOf(scope), 'dry-turn-ended')).map(({ status }) => status)).toEqual(['failed', 'unanswerable'])
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ audits: { audits: 0 } }])
  })

  test('survives a death at each of its writes: it is asked again, and counted once', async () => {
    const scenario = async (place: Place | null) => {
      const { scope, version } = await audited(IGNORES)
      behaviours.set(scope, async () => null)
      const life = await live(scope, place)
      await send(stubOf(scope), note(scope, 'a', { id: 'the-event' })).catch(() => {})
      await until(async () => !place || life.buried || (await audits(scope).catch(() => [])).length === 1, 'it died or ended')
      life.over = true
      // A sender without an answer sends again.
      await until(() => send(stubOf(scope), note(scope, 'a', { id: 'the-event' })).catch(() => null), 'it is accepted')
      await until(async () => (await stubOf(scope).poke(), (await audits(scope).catch(() => [])).length > 0), 'the audit ended')
      expect(await audits(scope)).toMatchObject([{ agreed: true }])
      expect(await jobsOf(scope)).toEqual([])
      expect((await certificateOf(scope, version)).strata).toMatchObject([{ audits: { audits: 1, disagreed: 0 } }])
      return life.writes
    }
    const writes = await scenario(null)
    expect(writes).toBeGreaterThanOrEqual(2)
    for (let at = 1; at <= writes; at += 1) for (const side of ['before', 'after'] as const) await scenario({ at, side })
  })
})

describe('what people say', () => {
  test('about a reply of a proven reflex counts as an audit, by the first verdict on each event', async () => {
    const { scope, version } = await audited(`return { action_type: 'reply', content: 'at ten' }`, { audit_share: 0 })
    const event = note(scope, 'when?')
    await sendAndSettle(stubOf(scope), event)
    const address = `/v1/scopes/${encodeURIComponent(scope)}/events/${event.id}/feedback`
    const json = { right: false, reply: 'at nine', reason: 'we moved' }
    const decided = { by: 'reflex', reflex_id: version.id, version: 1 }
    expect(await call(address, { json })).toMatchObject({ status: 200, body: { decided, counted: true } })
    expect(await call(address, { json })).toMatchObject({ status: 200, body: { counted: false } })
    expect(await audits(scope)).toMatchObject([
      { judged_by: 'feedback', by: expect.any(String), own: { content: 'at ten' }, decided: null, agreed: false, reason: 'we moved' },
    ])
    const said = await entriesOf(stubOf(scope), 'decision-judged')
    expect(said).toMatchObject([{ right: false, reply: 'at nine', decided, trace_id: event.meta.trace_id }, { right: false }])
    expect(await entriesOf(stubOf(scope), 'reflex-overruled')).toMatchObject([{ reflex_id: version.id, turn_id: null }])
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ audits: { audits: 1, disagreed: 1 } }])
    expect(await call(address, { json: { right: true } })).toMatchObject({ body: { counted: false } })
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ audits: { audits: 1, disagreed: 1 } }])
  })

  test('about a decision of an earlier version does not count against the one that acts now', async () => {
    const { scope, version } = await audited(`return { action_type: 'reply', content: 'at ten' }`, { audit_share: 0 })
    const events = notes(scope, 3)
    await sendAndSettle(stubOf(scope), ...events)
    const { id } = version
    const later = await write(`return { action_type: 'reply', content: 'at nine' }`, { id, scope })
    await certify(scope, later)
    await stubOf(scope).reflexesChanged([id])
    for (const event of events) {
      const address = `/v1/scopes/${encodeURIComponent(scope)}/events/${event.id}/feedback`
      expect(await call(address, { json: { right: false } })).toMatchObject({
        body: { decided: { reflex_id: id, version: 1 }, counted: false },
      })
    }
    expect(await entriesOf(stubOf(scope), 'reflex-overruled')).toEqual([])
    expect(await entriesOf(stubOf(scope), 'reflex-moved')).toEqual([])
    expect(await audits(scope)).toEqual([])
    expect((await certificateOf(scope, later)).strata).toMatchObject([{ state: 'proven', audits: { audits: 0 } }])
    const counted = (await stubOf(scope).metrics()).reflexes.map(({ metrics }) => metrics.overruled)
    expect(counted.every((count) => count === 0)).toBe(true)
    expect(await sendAndSettle(stubOf(scope), note(scope, 'when?'))).toMatchObject([{ outcome: { by: 'reflex', version: 2 } }])
  })

  test('about a turn is logged for what is learned; there is nothing to say about other events', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => (deps.reply('at ten'), 'replied'))
    const [event, ignored] = [note(scope, 'when?'), note(scope, 'noise')]
    await sendAndSettle(stubOf(scope), event, ignored)
    const judge = (id: string, json: object = { right: false }) =>
      call(`/v1/scopes/${encodeURIComponent(scope)}/events/${id}/feedback`, { json })
    expect(await judge(event.id)).toMatchObject({ status: 200, body: { decided: { by: 'turn' }, counted: false } })
    const [ended] = await entriesOf(stubOf(scope), 'turn-ended')
    expect(await entriesOf(stubOf(scope), 'decision-judged')).toMatchObject([{ decided: { by: 'turn' }, log_seq: ended?.seq }])
    expect(await judge(ignored.id)).toMatchObject({ status: 409 })
    expect(await judge('never-sent')).toMatchObject({ status: 404 })
    expect(await judge(event.id, { right: true, reply: 'x' })).toMatchObject({ status: 400 })
  })
})

describe('a version that was promoted by proof', () => {
  test('goes back to shadow mode at an alarm, and acts again once it is proven again', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const version = await write(IGNORES, { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id: version.id }], learning: { mode: 'auto', audit_share: 1 } }, 'ops')
    const needed = agreementsNeeded(0.95)
    behaviours.set(scope, async () => null)
    await sendAndSettle(stub, ...notes(scope, needed))
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    behaviours.set(scope, async (_, deps) => (deps.reply('I do care now'), null))
    await sendAndSettle(stub, ...Array.from({ length: 20 }, (_, index) => note(scope, `later ${index}`)))
    await until(async () => (await entriesOf(stub, 'certificate-changed')).some(({ change }) => change === 'drifted'), 'the alarm')
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'turn' } }])
    const isAsked = async () => !(await jobsOf(scope)).some(({ kind }) => kind === 'dispute')
    await until(isAsked, 'what disagreed has been asked again')
    behaviours.set(scope, async () => null)
    // The last comparison disagreed.
    await sendAndSettle(stub, ...Array.from({ length: 2 * needed }, (_, index) => note(scope, `again ${index}`)))
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    const changes = (await entriesOf(stub, 'certificate-changed')).map(({ change }) => change)
    expect(changes).toEqual(['issued', 'proven', 'drifted', 'proven'])
  })

  test('loses its certificate if an audit shows that the instructions of the slow path changed', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const version = await write(IGNORES, { state: 'shadow', scope })
    await stub.configure({ reflexes: [{ id: version.id }], learning: { mode: 'auto', audit_share: 1 } }, 'ops')
    let instructions = 'You are kind.'
    behaviours.set(scope, async (_, deps) => {
      await generateText({ model: deps.model, instructions, prompt: 'hello', abortSignal: deps.signal })
      return null
    })
    await sendAndSettle(stub, ...notes(scope, agreementsNeeded(0.95)))
    await sendAndSettle(stub, note(scope, 'a'))
    await untilAudited(scope, 1)
    expect((await entriesOf(stub, 'certificate-changed')).map(({ change }) => change)).toEqual(['issued', 'proven'])
    instructions = 'You are strict: never ignore anybody.'
    const changed = until(async () => (await entriesOf(stub, 'certificate-changed')).some(({ change }) => change === 'lapsed'), 'it lapsed')
    for (let index = 0; index < 20; index += 1) await sendAndSettle(stub, note(scope, `later ${index}`))
    await changed
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('has a run that it asks for and a person rejects counted against it', async () => {
    const skill_id = await skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })
    const { scope, version } = await audited(
      `return { action_type: 'run_skill', skill_id: ${JSON.stringify(skill_id)}, inputs: { what: 'x' } }`,
      {
        risk: 'outside',
        audit_share: 0,
      },
    )
    await stubOf(scope).configure({ goal_labels: ['twice'] }, 'ops')
    await sendAndSettle(stubOf(scope), undrawn(scope, 'a', version))
    const [asked] = await until(async () => {
      const found = await entriesOf(stubOf(scope), 'approval-requested')
      return found.length > 0 && found
    }, 'a person is asked')
    await call(`/v1/approvals/${String(asked?.['approval_id'])}/reject`, { json: { reason: 'not on Fridays' } })
    await until(async () => (await audits(scope)).length > 0, 'it is counted')
    expect(await audits(scope)).toMatchObject([{ judged_by: 'rejected', by: 'admin', agreed: false, reason: 'not on Fridays' }])
  })

  test('has what a later call undoes counted against it', async () => {
    const { scope, version } = await audited(calls('act_global'), { risk: 'outside', audit_share: 0 })
    await sendAndSettle(stubOf(scope), undrawn(scope, 'a', version))
    behaviours.set(scope, async () => null)
    expect(await stubOf(scope).callTool({ tool: 'undo_global', input: { text: 'a' }, key: crypto.randomUUID() }, 'ops')).toMatchObject({
      ok: true,
    })
    expect(await audits(scope)).toMatchObject([
      { judged_by: 'overruled', agreed: false, own: { tool: 'act_global' }, reason: expect.stringContaining('ops called') },
    ])
    expect((await certificateOf(scope, version)).strata).toMatchObject([{ audits: { audits: 1, disagreed: 1 } }])
  })

  test('has only what its branch did counted against it, once a later call undoes it', async () => {
    const acts = (text: string) => `[{ action_type: 'call_tool', tool: 'act_global', args: { text: '${text}' } }]`
    const branch = (when: string, text: string) => `{ when: [${when}], acts: ${acts(text)} }`
    const first = `[{ action_type: 'call_tool', tool: 'act', args: { text: 'look' } }]`
    const branches = [branch(`{ output: 0, path: '/did', one_of: ['look'] }`, 'taken'), branch('', 'not taken')].join(', ')
    const body = `return { action_type: 'sequence', acts: ${first}, branches: [${branches}] }`
    const { scope, version } = await audited(body, { risk: 'outside', audit_share: 0 })
    const stub = stubOf(scope)
    behaviours.set(scope, async () => null)
    const event = undrawn(scope, 'a', version)
    await sendAndSettle(stub, event)
    await stub.callTool({ tool: 'undo_global', input: { text: 'not taken' }, key: crypto.randomUUID() }, 'ops')
    expect(await entriesOf(stub, 'reflex-overruled')).toEqual([])
    await stub.callTool({ tool: 'undo_global', input: { text: 'taken' }, key: crypto.randomUUID() }, 'ops')
    expect(await entriesOf(stub, 'reflex-overruled')).toMatchObject([{ reflex_id: version.id, event_ids: [event.id] }])
  })

  test.each([
    // The chain has the earlier version only beside one that acts by proof.
    [{ later_by_proof: true }, { audited: [1, 1], moved: [{ version: 1, to: 'shadow' }], counted: [[1, 2]] }],
    [{ later_by_proof: false }, { audited: [], moved: [], counted: [[1, 0]] }],
  ])('has nothing counted against it that an earlier version did and a later call undoes: %j', async ({ later_by_proof }, then) => {
    const { scope, version } = await audited(calls('act_global'), { risk: 'outside', audit_share: 0 })
    const stub = stubOf(scope)
    behaviours.set(scope, async () => null)
    for (const [place, text] of ['a', 'b'].entries()) await sendAndSettle(stub, undrawn(scope, text, version, place))
    const { id } = version
    const later = await write(`'later'\n${calls('act_global')}`, { id, scope })
    if (later_by_proof) await setReflexState(env.DB, { ...later, state: 'active', reason: 'proven', by_proof: true, now: Date.now() })
    await certify(scope, later, { risk: 'outside' })
    await stub.reflexesChanged([id])
    for (const text of ['a', 'b']) await stub.callTool({ tool: 'undo_global', input: { text }, key: text }, 'ops')
    expect(await entriesOf(stub, 'reflex-overruled')).toMatchObject([{ version: 1 }, { version: 1 }])
    expect((await audits(scope)).map((one) => one.version)).toEqual(then.audited)
    expect(await entriesOf(stub, 'reflex-moved')).toMatchObject(then.moved)
    expect((await certificateOf(scope, later)).strata).toMatchObject([{ audits: { audits: 0 } }])
    expect((await stub.metrics()).reflexes.map((one) => [one.version, one.metrics.overruled])).toEqual(then.counted)
  })
})
