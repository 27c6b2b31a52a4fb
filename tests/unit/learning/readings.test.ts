import { describe, expect, test } from 'vitest'
import { fnv1a } from '../../../src/base/fnv1a.ts'
import type { JsonFields } from '../../../src/base/json.ts'
import type { Episode } from '../../../src/features/learning/episode.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { call, episode } from './histories.ts'
import { actionsOnEach } from './run-learned.ts'

/** A number from 0 to `most`, without an order. */
const mixed = (index: number, most: number): number => fnv1a(`${index} of ${most}`) % (most + 1)
const cents = (index: number): string => (mixed(index, 60_000) / 100).toFixed(2)
const dayOf = (index: number): string => new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10)
const kinds = (index: number) =>
  ['book', 'toy', ...(mixed(index, 3) === 0 ? ['battery'] : [])].map((kind, at) => ({ kind, count: at + mixed(index, 9) }))

const someKinds = (index: number) =>
  Array.from({ length: 1 + mixed(index, 4) }, (_, at) => ({
    kind: ['book', 'toy', 'glass', 'battery', 'map'][mixed(index * 31 + at, 44) % 5] ?? '',
  }))

const celsius = (index: number) => mixed(index, 400) / 10

/** Fields of the events, whether they are acted on, and the types of the events before them. */
type Domain = { fields: (index: number) => JsonFields; is: (index: number) => boolean; before?: (index: number) => string }
const domains: [name: string, domain: Domain][] = [
  ['the number that a text says', { fields: (index) => ({ amount: `${cents(index)} EUR` }), is: (index) => Number(cents(index)) >= 250 }],
  [
    'the number with thousands apart',
    { fields: (index) => ({ total: `${(celsius(index) * 100).toLocaleString('en-US')} EUR` }), is: (index) => celsius(index) >= 25 },
  ],
  ['the number beside a unit', { fields: (index) => ({ heat: `${celsius(index)} °C` }), is: (index) => celsius(index) >= 25 }],
  [
    'the number with a comma, and a sign',
    {
      fields: (index) => ({
        change: `${celsius(index) < 20 ? '-' : '+'}${Math.abs(celsius(index) - 20)
          .toFixed(1)
          .replace('.', ',')} %`,
      }),
      is: (index) => celsius(index) >= 25,
    },
  ],
  [
    'a field that is a number in some events and a text in others',
    {
      fields: (index) => ({ amount: index % 3 === 0 ? cents(index) : Number(cents(index)) }),
      is: (index) => Number(cents(index)) >= 250,
    },
  ],
  [
    'the days from one date to another',
    {
      fields: (index) => ({ due: dayOf(index), seen: `${dayOf(index + mixed(index, 30))}T00:00:00Z` }),
      is: (index) => mixed(index, 30) > 14,
    },
  ],
  [
    'a field that no item of a list has',
    { fields: (index) => ({ lines: kinds(index) }), is: (index) => mixed(index, 3) !== 0 && mixed(index, 9) < 6 },
  ],
  [
    'how many items there are, and what none of them has, beside a text of few values',
    {
      fields: (index) => ({ lines: someKinds(index), country: index % 2 ? 'AT' : 'DE' }),
      is: (index) => mixed(index, 4) < 3 && someKinds(index).every(({ kind }) => kind !== 'battery'),
    },
  ],
  [
    'a field that is missing in most events',
    {
      fields: (index) => ({ due: mixed(index, 30), ...(mixed(index, 4) === 0 && { hold: index % 2 ? 'yes' : index }) }),
      is: (index) => mixed(index, 30) > 14 && mixed(index, 4) !== 0,
    },
  ],
  [
    'a field that is null in an item of a list, and an object in others',
    {
      fields: (index) => ({
        lines: [0, 1].map((at) => ({ count: 1 + at, receipt: mixed(index + at * 7, 5) === 0 ? null : { pages: at } })),
      }),
      is: (index) => [0, 7].some((at) => mixed(index + at, 5) === 0),
    },
  ],
  ['a field of an item of a list', { fields: (index) => ({ lines: kinds(index) }), is: (index) => mixed(index, 3) === 0 }],
  [
    'the sum of a number over the items of a list',
    {
      fields: (index) => ({ lines: [1, 2, 3].map((line) => ({ line, count: mixed(index * line, 22) })) }),
      is: (index) => [1, 2, 3].reduce((sum, line) => sum + mixed(index * line, 22), 0) > 30,
    },
  ],
  [
    'the type of the last event of another type',
    {
      fields: (index) => ({ level: index % 2 === 0 ? 'error' : 'info' }),
      is: (index) => index % 2 === 0 && mixed(index, 2) === 0,
      before: (index) => (mixed(index, 2) === 0 ? 'upkeep.ended' : 'upkeep.started'),
    },
  ],
  [
    'the time of a day as a text',
    { fields: (index) => ({ arrival: `${mixed(index, 23)}:${index % 2 ? '15' : '30'}` }), is: (index) => mixed(index, 23) >= 17 },
  ],
]

function decision({ fields, is, before }: Domain, index: number): Episode {
  const one = episode(index, { type: 'seen', ...fields(index) }, is(index) ? call('act', { by: 1 }) : [])
  const earlier = before ? [{ ...one.saw.event, type: before(index) }, ...Array.from({ length: index % 3 }, () => one.saw.event)] : []
  return { ...one, saw: { ...one.saw, recent_events: [...earlier, one.saw.event] } }
}

/** The level of one of three tanks in turn, two events of another type, and the levels before. */
const levelOf = (index: number): number => 100 + mixed(index, 400) / 10
function tank(index: number): Episode {
  const seen = (at: number) => ({ type: 'level', device: { tank: `tank-${at % 3}` }, level: levelOf(at) })
  const risen = levelOf(index) - levelOf(index - 3) > 5
  const one = episode(index, seen(index), risen ? call('check', { tank: `tank-${index % 3}` }) : [])
  const before = [3, 2, 1].map((ago) => episode(index - ago, seen(index - ago), []).saw.event)
  return { ...one, saw: { ...one.saw, recent_events: [...before, one.saw.event] } }
}

test('a decision is learned from the change since the last event of the same device', async () => {
  const taught = Array.from({ length: 500 }, (_, index) => tank(3 + index))
  const later = Array.from({ length: 40 }, (_, index) => tank(1000 + index))
  const decided = (await actionsOnEach(taught, later)).flatMap(([action], index) =>
    action ? [{ action, is: later[index]?.acts.length }] : [],
  )
  const isRight = ({ action, is }: (typeof decided)[number]) =>
    ((action as { action_type: string }).action_type === 'call_tool') === (is === 1)
  expect(decided.filter((one) => !isRight(one))).toEqual([])
  expect(decided.length).toBeGreaterThan(32)
  expect(learnReflexes(taught).reflexes.map(({ title }) => title)).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^Check the tank where level minus level of the last event with the same device\.tank is at least 5/),
    ]),
  )
  // Events that left the context with their turns cannot be asked about.
  const alone = later.map((one) => ({ ...one, saw: { ...one.saw, recent_events: [one.saw.event] } }))
  expect((await actionsOnEach(taught, alone)).flat()).toEqual([])
})

describe('a decision is learned from', () => {
  test.each(domains)('%s', async (_, domain) => {
    const taught = Array.from({ length: 500 }, (__, index) => decision(domain, index))
    const later = Array.from({ length: 40 }, (__, index) => decision(domain, 1000 + index))
    const decided: unknown[][] = []
    for (const [index, [action]] of (await actionsOnEach(taught, later)).entries())
      if (action) decided.push([action, later[index]?.acts.length === 1])
    const isRight = ([action, acts]: unknown[]) => ((action as { action_type: string }).action_type === 'call_tool') === acts
    expect(decided.filter((one) => !isRight(one))).toEqual([])
    expect(decided.filter(([, acts]) => acts).length).toBeGreaterThan(later.filter(({ acts }) => acts.length > 0).length * 0.8)
  })

  test('a list, but not where an item has a value that no item had', async () => {
    const lines = (kind: string) => [
      { kind: 'book', count: 1 },
      { kind, count: 3 },
    ]
    const taught = Array.from({ length: 500 }, (_, index) =>
      decision({ fields: () => ({ lines: lines(['toy', 'map', 'battery'][index % 3] ?? '') }), is: () => index % 3 === 2 }, index),
    )
    const asked = ['battery', 'toy', 'liquid'].map((kind, index) => episode(1000 + index, { type: 'seen', lines: lines(kind) }, []))
    expect(await actionsOnEach(taught, asked)).toMatchObject([[{ action_type: 'call_tool' }], [{ action_type: 'ignore' }], []])
  })

  test('what none of the items has, in one rule: a guard knows what they and a text of few values may be', () => {
    const domain: Domain = {
      fields: (index) => ({ lines: someKinds(index), country: index % 2 ? 'AT' : 'DE' }),
      is: (index) => mixed(index, 4) < 3 && someKinds(index).every(({ kind }) => kind !== 'battery'),
    }
    const taught = Array.from({ length: 500 }, (_, index) => decision(domain, index))
    const { code = '' } = learnReflexes(taught).reflexes.find(({ decision: key }) => key.includes('act')) ?? {}
    expect(code.match(/return act\(context\)/g)).toHaveLength(1)
    expect(code).toContain("if (hasOther(context.event.lines, 'kind', ['book', 'glass', 'map', 'toy'])) return null")
  })

  test('not the day of an event, which does not come again', async () => {
    const seen = (day: string, index: number) => ({ type: 'seen', day, state: index % 2 ? 'open' : 'shut' })
    const taught = Array.from({ length: 300 }, (_, index) =>
      episode(index, seen(`2026-03-0${1 + (index % 3)}`, index), index % 2 ? call('act', { by: 1 }) : []),
    )
    const later = [1, 2].map((index) => episode(1000 + index, seen('2026-03-04', index), []))
    expect(await actionsOnEach(taught, later)).toMatchObject([[{ action_type: 'call_tool' }], [{ action_type: 'ignore' }]])
  })
})
