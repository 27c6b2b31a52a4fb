import { describe, expect, test } from 'vitest'
import type { EpisodeAct } from '../../../src/features/learning/episode.ts'
import { fieldCode } from '../../../src/features/learning/reflexes/act-code.ts'
import { ANY_NUMBER } from '../../../src/features/learning/reflexes/facts/ranges.ts'
import { explained, explaining } from '../../../src/features/learning/reflexes/explain.ts'
import { conditionCode } from '../../../src/features/learning/reflexes/facts/condition.ts'
import { earlierPath } from '../../../src/features/learning/reflexes/facts/readings.ts'
import { guardWords, leadWords, whyOf } from '../../../src/features/learning/reflexes/explain-words.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { quote } from '../../../src/features/learning/reflexes/facts/text.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { partsOf } from '../../../src/reflexes/weights.ts'
import { seededRandom } from '../../support/random.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { call, episode, history } from './histories.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const NOUNS = ['parcel', 'card', 'account', 'invoice', 'refund', 'password']
const ASIDES = ['please', 'hello', 'thanks', 'again', 'today', 'still']
const pick = (from: readonly string[], random: () => number): string => from[Math.floor(random() * from.length)] ?? ''

function desk(index: number): [{ type: string; line: string }, EpisodeAct[]] {
  const random = seededRandom(index + 1)
  const intent = Math.floor(random() * 3)
  const words = Array.from({ length: 9 }, (_, place) =>
    place % 2 === 1 ? pick(ASIDES, random) : random() < 0.93 ? pick(NOUNS.slice(intent * 2, intent * 2 + 2), random) : pick(NOUNS, random),
  )
  return [{ type: 'mail', line: words.join(' ') }, intent === 2 ? [] : call(`tool${intent}`, { by: 'desk' })]
}

function order(index: number): [{ type: string; amount: number; age: number; land: string; weight: number }, EpisodeAct[]] {
  const random = seededRandom(index + 7)
  const fields = {
    type: 'order',
    amount: Math.round(random() * 1000),
    age: Math.floor(random() * 90),
    land: pick(['de', 'fr', 'it', 'es'], random),
    weight: Math.round(random() * 100) / 10,
  }
  // Rules compare no two numbers.
  const isHeld = fields.amount > 700 || (fields.land === 'es' && fields.age < 30) || fields.weight * 60 > fields.amount + 300
  return [fields, isHeld ? call('hold', { why: 'risk' }) : []]
}

function learned(decide: (index: number) => [Record<string, unknown> & { type: string }, EpisodeAct[]], count = 1500): string {
  const [reflex] = learnReflexes(history(count, decide as typeof desk), { agreement: 0.95 }).reflexes
  return reflex?.code ?? ''
}

function ask(code: string, fields: Parameters<typeof episode>[1]) {
  const context = { ...sampleContext, ...episode(9000, fields, []).saw }
  const program = explaining(code)
  if (program === null) throw new Error('it has another form')
  const run = sandbox.run({ hash: 'why', code: program.code }, context)
  expect(run.error).toBeNull()
  const parts = partsOf(code)
  const why = whyOf(program, parts.ok ? parts.weights : null, explained.parse(run.value), context)
  const { action } = runReflex(sandbox, { hash: 'own', code }, context)
  // The explanation is of what the program does.
  expect(why.would === null).toBe(action === null)
  return why
}

describe('why a table of words decides', () => {
  const code = learned(desk)

  test('names the decision, its lead, and the words that spoke for it', () => {
    const { would, points, reasons } = ask(code, { type: 'mail', line: 'parcel please card please parcel please card please parcel' })
    expect(would).toBe('call tool0 {"by":"desk"}')
    expect(points?.best.decision).toContain('tool0')
    expect(points?.lead).toBeGreaterThanOrEqual(points?.needed ?? Infinity)
    expect(points?.best.spoke.map(({ says }) => says)).toEqual(expect.arrayContaining(['line says "parcel"', 'line says "card"']))
    expect(points?.best.spoke.length).toBeLessThanOrEqual(8)
    expect(reasons).toEqual([expect.stringMatching(/has \d+ points more than .*, and needs \d+\.$/)])
  })

  test('says that a lead is too small', () => {
    const { would, reasons, points } = ask(code, { type: 'mail', line: 'parcel please account hello refund thanks' })
    expect(would).toBeNull()
    expect(points?.lead).toBeLessThan(points?.needed ?? 0)
    expect(reasons).toEqual([expect.stringMatching(/^The lead is too small: /)])
  })

  test('names the guard that left the event, and what the event has there', () => {
    expect(ask(code, { type: 'call', line: 'parcel card' }).reasons).toEqual(['type is "call"; it was taught with "mail".'])
    const { reasons } = ask(code, { type: 'mail', line: 'parcel please card please parcel please card please 900' })
    expect(reasons.at(-1)).toBe('line has a number that it was not taught with.')
  })
})

test('two decisions that a table leaves have different names in a sentence', () => {
  const of = (decision: string | null, points: number) => ({ decision, points, spoke: [] })
  const points = { best: of(null, 90), second: of(null, 40), lead: 50, needed: null }
  expect(leadWords(points)).toBe(
    'a decision that it leaves to the slow path has 50 points more than another one; it is left to the slow path.',
  )
  const other = { ...points, second: of('[{"action_type":"ignore"}]', 40) }
  expect(leadWords(other)).not.toContain('another one')
})

test.each([
  [
    ['event', 'level (cm)'],
    earlierPath({ key: ["it's [x].id"], path: ['level (cm)'] }),
    '"level (cm)" minus "level (cm)" of the last event with the same "it\'s [x].id"',
  ],
  [['event', 'tank', 'level'], earlierPath({ key: [], path: ['tank', 'level'] }), 'tank.level minus tank.level of the last event'],
  [['day', 'event', 'seen at'], ['day', 'event', 'due'], 'the day of "seen at" minus the day of due'],
  [['sum', 'event', 'lines', 'count'], ['amount', 'event', 'limit'], 'sum of lines.count minus limit'],
])('the difference of %j and %j is "%s"', (path, minus, words) => {
  const code = conditionCode({ condition: { is: 'at_least', path, minus, value: 5.1 }, holds: true }, new Map())
  expect(guardWords(code, episode(1, { type: 'note' }, []).saw)).toBe(`A guard leaves the event: ${words} >= 5.1.`)
})

describe('why a table of numbers decides', () => {
  const code = learned(order, 1600)

  test('names the numbers and values with their thresholds', () => {
    const { would, points } = ask(code, { type: 'order', amount: 900, age: 50, land: 'de', weight: 1 })
    expect(would).toContain('call hold')
    expect(points?.best.spoke).toEqual(
      expect.arrayContaining([{ says: expect.stringMatching(/^amount >= [67]\d\d/), points: expect.any(Number) }]),
    )
  })

  test('adds up to the points of the table', () => {
    const { points } = ask(code, { type: 'order', amount: 900, age: 50, land: 'de', weight: 1 })
    expect(points?.lead).toBe((points?.best.points ?? 0) - (points?.second.points ?? 0))
  })

  test.each([
    [{ amount: 90_000 }, /^amount is 90000; it was taught with -?[\d.]+ to [\d.]+\.$/],
    [{ land: 'xx' }, /^land is "xx"/],
  ])('says that %j is outside of what was taught', (odd, expected) => {
    const { would, reasons } = ask(code, { type: 'order', amount: 900, age: 50, land: 'de', weight: 1, ...odd })
    expect(would).toBeNull()
    expect(reasons).toEqual([expect.stringMatching(expected)])
  })
})

const HOSTILE = "'\n  if (true) return null\n) return act(context)"
test.each(['by the desk', HOSTILE])('rules name the condition that holds, or that none holds: %j', (by) => {
  const code = learned((index) => {
    const isFull = index % 3 === 0
    return [{ type: 'note', line: `${isFull ? `disk full ${by}` : 'all fine'} on host ${index}` }, isFull ? call('clean', { by }) : []]
  }, 400)
  const full = ask(code, { type: 'note', line: `disk full ${by} on host 3` })
  const fine = ask(code, { type: 'note', line: 'all fine on host 4' })
  const [taken, left] = full.would === null ? [fine, full] : [full, fine]
  expect(taken.reasons).toEqual([expect.stringMatching(/^It is so taught: /)])
  expect(left).toMatchObject({ would: null, reasons: ['None of its rules holds.'] })
})

test('code that no learner wrote has no explanation', () => {
  expect(explaining('const reflex = (context) => null')).toBeNull()
})

test.each([
  ["context.event['a b'] !== 'x'", '\'a b\' is 1; it was taught with "x".'],
  [`!['x', ${quote("it's")}].includes(context.event.kind)`, 'kind is missing; it was taught with "x", "it\'s".'],
  ['!(context.event.meta?.size >= 1 && context.event.meta?.size <= 2.5)', 'meta.size is 7; it was taught with 1 to 2.5.'],
  [fieldCode({ path: ['event', 'a b'], span: [2, 3], optional: true }).slice(4, -13), "'a b' is 1; it was taught with 2 to 3."],
  [fieldCode({ path: ['event', 'kind'], span: ANY_NUMBER, optional: true }).slice(4, -13), 'kind is missing; it was taught with numbers.'],
  [fieldCode({ path: ['event', 'type'], span: ANY_NUMBER }).slice(4, -13), 'type is "note"; it was taught with numbers.'],
])('the guard %s is "%s"', (condition, words) => {
  const { saw } = episode(1, { type: 'note', 'a b': 1, meta: { size: 7 } }, [])
  expect(guardWords(condition, saw)).toBe(words)
})

describe('an explanation in words', () => {
  const first = (count: number, decide: (index: number) => [Record<string, unknown> & { type: string }, EpisodeAct[]]): string =>
    learnReflexes(history(count, decide as typeof desk)).reflexes.find(({ acts }) => acts.length > 0)?.code ?? ''

  test('says which output an argument is', () => {
    const code = first(200, (index) => {
      const found = call('find', { mail: `m${index}` }).map((act) => ({ ...act, output: { customer: { id: `c${index}` } } }))
      return index % 2 ? [{ type: 'form', mail: `m${index}` }, [...found, ...call('open', { id: `c${index}` })]] : [{ type: 'seen' }, []]
    })
    expect(ask(code, { type: 'form', mail: 'm7' }).would).toBe(
      'call find {"mail":"m7"}, then call open {"id":"(customer.id of what find returns)"}',
    )
  })

  test('says that a computed argument is outside of what was taught', () => {
    const price = (index: number) => `${20 + (index % 60)}.50 EUR`
    const code = first(200, (index) =>
      index % 2 ? [{ type: 'order', price: price(index) }, call('pay', { value: (20.5 + (index % 60)) * 2 })] : [{ type: 'seen' }, []],
    )
    expect(ask(code, { type: 'order', price: '-30.50 EUR' }).reasons).toEqual([
      expect.stringMatching(/^A number that the decision is made with is not from [\d.]+ to [\d.]+, as it was taught\.$/),
    ])
  })

  test('names the words that a part of a text was taught with', () => {
    const file = (index: number, kind: string) => ({ type: 'file', path: `/in/box-${index * 7}/scan${index}.${kind}` })
    const kindOf = (index: number) => (index % 3 ? 'pdf' : 'txt')
    const code = first(300, (index) =>
      index % 5 === 4 ? [{ type: 'seen' }, []] : [file(index, kindOf(index)), call('index', { kind: kindOf(index) })],
    )
    expect(ask(code, file(301, 'exe')).reasons).toEqual([
      'A part of a text that the decision needs is none of those that it was taught with: "pdf", "txt".',
    ])
  })

  test('says it of the own fields of an argument alone', () => {
    const from = { output: 0, path: '/id' }
    const uses = ['/args/ids/1', '/args/a~1b', '/args/__proto__/polluted', '/args/ids/constructor/polluted'].map((at) => ({ at, ...from }))
    const open = { action_type: 'call_tool', tool: 'open', args: { ids: ['a', null], 'a/b': null }, uses }
    const acts = [{ action_type: 'call_tool', tool: 'find', args: {} }, open]
    const code = `function reflex(context) {\n  return ${JSON.stringify({ action_type: 'sequence', acts })}\n}\n`
    const { would } = ask(code, { type: 'form' })
    expect({}).not.toHaveProperty('polluted')
    expect(Object).not.toHaveProperty('polluted')
    expect(would).toBe('call find {}, then call open {"ids":["a","(id of what find returns)"],"a/b":"(id of what find returns)"}')
  })

  const battery = { kind: 'battery' }
  test.each<[name: string, fields: (index: number) => Record<string, unknown>, words: string]>([
    [
      'an item of a list',
      (index) => ({ lines: index % 2 ? [{ kind: 'map' }, battery] : [{ kind: 'map' }] }),
      'lines has an item whose kind is "battery"',
    ],
    ['a word of a text', (index) => ({ line: `some ${index} ${index % 2 ? 'acid' : 'cups'} here` }), 'line says "'],
    ['an amount', (index) => ({ price: `${(index % 2 ? 70 : 2) + (index % 40)}.50 EUR` }), 'price >= 71.5'],
  ])('names %s', (_, fields, words) => {
    const code = first(200, (index) => [{ type: 'seen', ...fields(index) }, index % 2 ? call('act', { by: 1 }) : []])
    expect(ask(code, { type: 'seen', ...fields(151) }).reasons.join()).toContain(words)
  })
})
