import { describe, expect, test } from 'vitest'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { besides, learnReflexes, type ReflexLearnOptions } from '../../../src/features/learning/reflexes/learn.ts'
import type { LearnedReflex } from '../../../src/features/learning/reflexes/write.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { partsOf, withWeights } from '../../../src/reflexes/weights.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { seededRandom } from '../../support/random.ts'
import { call, episode, history, reply } from './histories.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const NOUNS = ['parcel', 'card', 'account', 'invoice', 'refund', 'password', 'address', 'order']
const ASIDES = ['please', 'hello', 'thanks', 'again', 'today', 'still', 'urgent', 'maybe', 'sorry', 'anyway']

/** Sentences of which several words together tell the decision, so that rules take too few. */
function spoken(index: number): { intent: number; line: string } {
  const random = seededRandom(index + 1)
  const intent = Math.floor(random() * 4)
  const words = Array.from({ length: 9 }, (_, place) => {
    const own = random() < 0.93
    const noun = NOUNS[(own ? intent * 2 : Math.floor(random() * 8)) + (own && random() < 0.5 ? 1 : 0)] ?? ''
    return place % 2 === 0 ? noun : (ASIDES[Math.floor(random() * 10)] ?? '')
  })
  return { intent, line: words.join(' ') }
}
const desk = (index: number): [{ type: string; line: string }, EpisodeAct[]] => {
  const { intent, line } = spoken(index)
  return [{ type: 'mail', line }, intent === 3 ? [] : call(`tool${intent}`, { by: 'desk' })]
}
const TAUGHT = 1500
const taught = history(TAUGHT, desk)

async function run({ code }: LearnedReflex, event: Episode) {
  const checked = await checkReflex(code)
  expect(checked).toMatchObject({ ok: true })
  return runReflex(sandbox, { code, hash: checked.ok ? checked.hash : '' }, { ...sampleContext, ...event.saw })
}

const tableOf = (episodes: Episode[], options?: ReflexLearnOptions): LearnedReflex => {
  const { reflexes } = learnReflexes(episodes, options)
  expect(reflexes.map(({ by }) => by)).toEqual(['table'])
  return reflexes[0] as LearnedReflex
}

/** A fifth of the events asks for a tool by its amount. The others are sentences. */
const shop = (index: number): [{ type: string; line?: string; amount?: number }, EpisodeAct[]] => {
  const { intent, line } = spoken(index)
  const amount = Math.floor(seededRandom(index + 9)() * 1000)
  if (index % 5 === 0) return [{ type: 'order', amount }, call(amount < 500 ? 'refund' : 'escalate', { by: 'desk' })]
  return [{ type: 'mail', line }, intent < 2 ? [] : reply(intent === 2 ? 'We are open.' : 'We are closed.')]
}

describe('a table of points', () => {
  const table = tableOf(taught, { agreement: 0.95 })

  test('counts no comparison for an act of which rules beside it take a part', () => {
    const [refunds, , table] = learnReflexes(history(TAUGHT, shop)).reflexes
    const written = (...reflexes: object[]) => ({ reflexes: reflexes as never, refused: [], exceptions: [] })
    const both = besides(written({ ...table, names: ['label', 'nothing'] }), written({ ...refunds, names: ['label'] }))
    expect(both.reflexes.map(({ by, names }) => [by, names])).toEqual([
      ['rules', ['label']],
      ['table', ['nothing']],
    ])
  })

  test('leaves to rules what it is not sure of, and they predict', () => {
    const { reflexes, refused, judged } = learnReflexes(history(TAUGHT, shop))
    expect(reflexes.map(({ by, names }) => [by, ...names])).toEqual([
      ['rules', 'escalate'],
      ['rules', 'refund'],
      ['table', 'nothing', 'reply'],
    ])
    expect(refused).toEqual([])
    const agreed = judged.map(({ decision, held_out }) => [decision.split(' ')[1] ?? '', held_out.agreed] as const)
    expect(agreed.filter(([name]) => name === 'refund' || name === 'escalate').every(([, n]) => n > 20)).toBe(true)
  })

  test('takes all decisions of a scope in one reflex, or leaves the event to the slow path', async () => {
    expect(table.decisions).toHaveLength(4)
    const outcomes = { right: 0, wrong: 0, left: 0 }
    for (let index = TAUGHT; index < TAUGHT + 120; index += 1) {
      const [fields, acts] = desk(index)
      const { action, error } = await run(table, episode(index, fields, []))
      expect(error).toBeNull()
      const decided = action === null ? null : action.action_type === 'call_tool' ? action.tool : ''
      if (decided === null) outcomes.left += 1
      else outcomes[decided === (acts[0]?.name ?? '') ? 'right' : 'wrong'] += 1
    }
    expect(outcomes.right).toBeGreaterThan(60)
    expect(outcomes.wrong).toBeLessThanOrEqual(outcomes.right * 0.04)
  })

  test('takes less, the more of its decisions have to agree', () => {
    const shares = [0.95, 0.99].map((agreement) => {
      const { judged } = learnReflexes(taught, { agreement })
      return judged.reduce((sum, { held_out }) => sum + held_out.covered, 0)
    })
    expect(shares[1]).toBeLessThan(shares[0] ?? 0)
  })

  test('is the same for the same decisions, byte for byte', () => {
    expect(tableOf(taught, { agreement: 0.95 }).code).toBe(table.code)
  })

  test.each([
    ['words that nobody wrote before', { type: 'mail', line: 'zebra quartz violin' }],
    ['another type of event', { type: 'call', line: 'parcel card parcel card parcel' }],
    ['a text that is not one', { type: 'mail', line: 17 }],
    ['no text', { type: 'mail' }],
    ['numbers where none were seen', { type: 'mail', line: 'parcel card parcel card parcel card 900' }],
  ])('leaves %s to the slow path', async (_, fields) => {
    expect(await run(table, episode(9000, fields, []))).toMatchObject({ action: null, reason: 'null' })
  })

  test('with weights of another form abstains', async () => {
    const parts = partsOf(table.code)
    const weights = parts.ok ? (parts.weights ?? '') : ''
    for (const other of [weights.slice(0, -1), `x${weights.slice(1)}`, 'RXS', `${weights}a`]) {
      const code = withWeights(parts.code, other)
      expect(await run({ ...table, code }, episode(9000, desk(3)[0], []))).toMatchObject({ action: null, reason: 'null' })
    }
  })

  test('does not take a decision that one sender taught, unless that sender is trusted', () => {
    const carried = history(TAUGHT, (index) => [...desk(index), spoken(index).intent === 1 ? 'user:mallory' : `user:${index}`])
    expect(tableOf(carried).decisions.join()).not.toContain('tool1')
    expect(tableOf(carried, { trusted: new Set(['user:mallory']) }).decisions.join()).toContain('tool1')
  })

  test('learns to abstain from decisions that cannot be learned', async () => {
    const odd = history(TAUGHT, (index) => {
      const [fields, acts] = desk(index)
      return index % 4 === 1
        ? [{ ...fields, line: `lawyer court ${fields.line}` }, call(`odd${index}`, { token: `t${index}` })]
        : [fields, acts]
    })
    const { reflexes } = learnReflexes(odd)
    for (let index = 2000; index < 2050; index += 1) {
      const [fields] = desk(index)
      const { action } = await run(reflexes[0] as LearnedReflex, episode(index, { ...fields, line: `lawyer court ${fields.line}` }, []))
      expect(action).toBeNull()
    }
    expect(reflexes.map(({ by }) => by)).toEqual(['table'])
  })
})

const topic = (own: number): string => `${'abcdefgh'[own % 8]}${'klmnopqr'[own >> 3]}ort`

test('a table is judged for more decisions than rules are grown for', () => {
  const many = history(1080, (index) => [
    { type: 'mail', line: `about ${topic((index * 7) % 27)} ${ASIDES[index % 10]}, ${topic((index * 7) % 27)}` },
    call(`tool${(index * 7) % 27}`, {}),
  ])
  expect(tableOf(many).decisions).toHaveLength(27)
})

describe('a table of numbers and values', () => {
  const LANDS = ['de', 'fr', 'it', 'es']
  const order = (index: number): [{ type: string } & Record<string, string | number | boolean>, EpisodeAct[]] => {
    const random = seededRandom(index + 7)
    const fields = {
      type: 'order',
      amount: Math.round(random() * 1000),
      weight: Math.round(random() * 100) / 10,
      age: Math.floor(random() * 90),
      land: LANDS[Math.floor(random() * 4)] ?? 'de',
      express: random() < 0.5,
    }
    const isHeld = fields.amount > 700 || (fields.land === 'es' && fields.age < 30) || fields.weight * 60 > fields.amount + 300
    return [fields, isHeld ? call('hold', { why: 'risk' }) : []]
  }

  test('asks for thresholds, values and what they are together', async () => {
    const table = tableOf(history(1600, order))
    const outcomes = { right: 0, wrong: 0, left: 0 }
    for (let index = 5000; index < 5150; index += 1) {
      const [fields, acts] = order(index)
      const { action } = await run(table, episode(index, fields, []))
      if (action === null) outcomes.left += 1
      else outcomes[(action.action_type === 'call_tool') === acts.length > 0 ? 'right' : 'wrong'] += 1
    }
    expect(outcomes.right).toBeGreaterThan(110)
    expect(outcomes.wrong).toBeLessThanOrEqual(3)
    const [usual] = order(5001)
    for (const odd of [{ amount: 90_000 }, { amount: '20' }, { amount: [20] }, { land: 'xx' }, { weight: 'light' }, { age: null }])
      expect(await run(table, episode(9000, { ...usual, ...odd }, []))).toMatchObject({ action: null, reason: 'null' })
  })
})
