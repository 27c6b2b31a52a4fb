import { expect, test } from 'vitest'
import { seedsOf } from '../../../support/property.ts'
import { seededRandom } from '../../../support/random.ts'
import { crash, freshScope, hurry, inObject, logOf, note, stubOf, textOf, until, type Note } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'

const LIVES = 6
const ROUNDS = 25

/** A trigger that ends after some steps of promises, of the loop, or of a call. */
const behaviourOf = (random: () => number): Parameters<typeof behaviours.set>[1] => {
  return async (context, deps) => {
    const steps = Math.floor(random() * 4) * Math.floor(random() * 60)
    for (let step = 0; step < steps; step += 1) await Promise.resolve()
    if (random() < 0.15) await scheduler.wait(0)
    const text = textOf(context.events.at(-1)!)
    if (random() < 0.15) await deps.call('act_once', { text })
    if (random() < 0.1) deps.done('act_once', { text })
    if (random() < 0.1) deps.reply(`heard ${text}`)
    if (random() < 0.1) throw new Error('not this time')
    return random() < 0.5 ? null : { text }
  }
}

/** Some events, by a way on which a sender gets a receipt; what was refused is sent again. */
async function sendSome(scope: string, random: () => number, events: Note[]): Promise<void> {
  const ways = [
    () => stubOf(scope).accept(events, 'http'),
    () => stubOf(scope).accept(events, 'queue', true),
    async () => {
      const alone = await Promise.all(events.map((event) => stubOf(scope).accept([event], 'queue', true)))
      return alone.every(({ ok }) => ok) ? alone[0]! : null
    },
  ]
  const way = ways[Math.floor(random() * ways.length)]!
  await until(async () => (await way().catch(() => null))?.ok, 'the events are accepted')
}

async function live(scope: string, random: () => number): Promise<Note[]> {
  behaviours.set(scope, behaviourOf(random))
  await stubOf(scope).configure({ retry: { max_attempts: 20, backoff_ms: 1 } }, 'test')
  const sent: Note[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const texts = ['', '', ' noise'].slice(0, 1 + Math.floor(random() * 3))
    const events = texts.map((more, index) => note(scope, `${round}-${index}${more}`))
    const sending = sendSome(scope, random, random() < 0.2 ? [...events, ...sent.slice(-1)] : events)
    if (random() < 0.2) await crash(scope)
    await sending
    sent.push(...events)
  }
  behaviours.set(scope, async () => null)
  await until(async () => {
    await hurry(stubOf(scope))
    const { pending, processing } = (await stubOf(scope).state()).inbox
    return pending + processing === 0
  }, 'each event has ended')
  return sent
}

test.each(seedsOf(1_187_420_963))('each accepted event has one outcome, whenever its turn ends: seed %i', async (seed) => {
  const random = seededRandom(seed)
  for (let one = 0; one < LIVES; one += 1) {
    const scope = freshScope()
    const sent = await live(scope, random)
    const log = await logOf(stubOf(scope))
    expect(log.map(({ seq }) => seq)).toEqual(log.map((_, index) => index + 1))
    const ids = (kind: string) => log.flatMap((entry) => (entry.kind === kind ? entry.event_ids : [])).toSorted()
    const all = sent.map(({ id }) => id).toSorted()
    expect(ids('event-accepted')).toEqual(all)
    expect(ids('event-ended')).toEqual(all)
    const stored = await inObject(stubOf(scope), async ({ storage }) =>
      storage.sql.exec<{ id: string; status: string }>('SELECT id, status FROM events ORDER BY seq').toArray(),
    )
    expect(stored.map(({ id }) => id).toSorted()).toEqual(all)
    expect(stored.filter(({ status }) => status !== 'completed' && status !== 'ignored')).toEqual([])
  }
})

test.each(seedsOf(2_041_337_801))('each delivery is answered with the outcomes of its own events: seed %i', async (seed) => {
  const random = seededRandom(seed)
  const scope = freshScope()
  behaviours.set(scope, async ({ events }) => {
    const steps = Math.floor(random() * 40)
    for (let step = 0; step < steps; step += 1) await Promise.resolve()
    return random() < 0.5 ? null : { text: textOf(events.at(-1)!) }
  })
  let told = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const deliveries = Array.from({ length: 2 + Math.floor(random() * 3) }, (_, nth) =>
      ['', ' noise'].slice(0, 1 + Math.floor(random() * 2)).map((more) => note(scope, `${round}-${nth}${more}`)),
    )
    const answers = await Promise.all(deliveries.map((events) => stubOf(scope).accept(events, 'queue', true)))
    for (const [nth, answer] of answers.entries()) {
      const text = answer.ok ? answer.outcomes : undefined
      const { outcomes } = JSON.parse(text ?? '{"outcomes":[]}') as { outcomes: { id: string; payload: Note }[] }
      told += outcomes.length
      const own = deliveries[nth]!.map((event) => `${event.id} ${textOf(event)}`)
      expect(own).toEqual(expect.arrayContaining(outcomes.map(({ id, payload }) => `${id} ${textOf(payload)}`)))
    }
  }
  expect(told).toBeGreaterThan(ROUNDS)
})
