import { describe, expect, test } from 'vitest'
import type { Json, JsonFields } from '../../../src/base/json.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { call, episode, history } from './histories.ts'
import { actions } from './run-learned.ts'

const mixed = (index: number, most: number): number => (index * 7919) % (most + 1)
const rounded = (value: number): number => Number(value.toFixed(2))
const total = (index: number): number => rounded(3 + mixed(index, 9000) / 100)

const given: [name: string, fields: (index: number) => JsonFields, value: (index: number) => Json][] = [
  ['a share of a number', (index) => ({ total: total(index) }), (index) => rounded(total(index) * 0.8)],
  ['a number in a larger unit', (index) => ({ seconds: 60 * (1 + mixed(index, 90)) }), (index) => 1 + mixed(index, 90)],
  [
    'what lacks between two numbers',
    (index) => ({ expected: 500 + mixed(index, 300), received: mixed(index, 400) }),
    (index) => 500 + mixed(index, 300) - mixed(index, 400),
  ],
  ['what lacks to a constant', (index) => ({ fuel: mixed(index, 90) }), (index) => 100 - mixed(index, 90)],
  ['the same with decimal places', (index) => ({ used: total(index) }), (index) => rounded(120.5 - total(index))],
  [
    'the product of two numbers',
    (index) => ({ count: 2 + mixed(index, 7), price: total(index) }),
    (index) => rounded((2 + mixed(index, 7)) * total(index)),
  ],
  [
    'the sum over the items of a list',
    (index) => ({ lines: [{ count: index }, { count: mixed(index, 50) }] }),
    (index) => index + mixed(index, 50),
  ],
  ['a number as a price', (index) => ({ total: total(index) }), (index) => total(index).toFixed(2)],
  ['ids that are joined', (index) => ({ org: `org${mixed(index, 40)}`, user: index }), (index) => `org${mixed(index, 40)}-${index}`],
  [
    'a part of a name beside a constant, whatever the name',
    (index) => ({ repository: `acme/${['web', 'api', 'docs'][index % 3]}${mixed(index, 90)}` }),
    (index) => `${['web', 'api', 'docs'][index % 3]}${mixed(index, 90)}-team`,
  ],
  ['a text in small letters', (index) => ({ mail: `Ana.Weber${index}@ACME.io` }), (index) => `ana.weber${index}@acme.io`],
  ['a part of a text in small letters', (index) => ({ mail: `ana@Shop${index}.Example` }), (index) => `shop${index}.example`],
  [
    'a text without the spaces around it',
    (index) => ({ name: index % 3 ? `Ana W ${index}` : `  Ana W ${index} ` }),
    (index) => `Ana W ${index}`,
  ],
  [
    'the last part of a path',
    (index) => ({ path: `/srv/${['a', 'b/c', 'd'][index % 3]}/${2000 + (index % 30)}/scan-${index}.pdf` }),
    (index) => `scan-${index}.pdf`,
  ],
  [
    'a sentence with values of the event',
    (index) => ({ order: { id: index }, days: 1 + mixed(index, 20) }),
    (index) => `Refund of order ${index}: late ${1 + mixed(index, 20)} days`,
  ],
]

describe('an argument of a learned call is', () => {
  test.each(given)('%s', async (_, fields, value) => {
    const taught = history(300, (index) =>
      index % 3 === 2 ? [{ type: 'y' }, []] : [{ type: 'x', ...fields(index) }, call('act', { value: value(index) })],
    )
    // A seen number that is in no rule has a range.
    expect(await actions(taught, episode(150, { type: 'x', ...fields(150) }, []))).toEqual([
      { action_type: 'call_tool', tool: 'act', args: { value: value(150) } },
    ])
  })

  test('a part of one of few names beside a constant, so that they are one decision with one proof', () => {
    const team = (index: number) => ['web', 'api', 'docs'][mixed(index, 2)] ?? ''
    const taught = history(300, (index) =>
      index % 3 === 2
        ? [{ type: 'y' }, []]
        : [{ type: 'x', repository: `acme/${team(index)}` }, call('review', { team: `${team(index)}-team` })],
    )
    const decided = learnReflexes(taught).reflexes.map(({ decisions }) => decisions)
    expect(decided.flat().filter((decision) => decision.includes('review'))).toHaveLength(1)
  })

  test('made in one way for some events and in another for others', async () => {
    const parcel = (index: number) => ({ type: index % 2 ? 'lost' : 'late', order: 1000 + index, total: total(index) })
    const refund = (index: number) => ({
      amount: index % 2 ? total(index) : rounded(total(index) * 0.2),
      reason: index % 2 ? `order ${1000 + index} was lost` : `${1000 + index} came late`,
    })
    const taught = history(400, (index) => (index % 5 === 4 ? [{ type: 'seen' }, []] : [parcel(index), call('refund', refund(index))]))
    for (const index of [200, 201])
      expect(await actions(taught, episode(index, parcel(index), []))).toEqual([
        { action_type: 'call_tool', tool: 'refund', args: refund(index) },
      ])
  })

  test('one part of a text for some events and another part for others, in decisions that have names of their own', async () => {
    const move = (index: number) => ({ type: index % 2 ? 'in' : 'out', line: `moved ${1000 + index * 7} to ${5000 + index * 3} today` })
    const place = (index: number) => String(index % 2 ? 1000 + index * 7 : 5000 + index * 3)
    const taught = history(400, (index) =>
      index % 5 === 4 ? [{ type: 'seen' }, []] : [move(index), call('mark', { place: place(index) })],
    )
    for (const index of [200, 201])
      expect(await actions(taught, episode(index, move(index), []))).toMatchObject([{ args: { place: place(index) } }])
    expect(new Set(learnReflexes(taught).reflexes.map(({ id }) => id)).size).toBe(3)
  })

  test('not computed in the middle of two numbers, which are rounded either way', async () => {
    const taught = history(300, (index) =>
      index % 3 === 2 ? [{ type: 'y' }, []] : [{ type: 'x', total: 2 * total(index) }, call('act', { value: rounded(total(index)) })],
    )
    const ask = (value: number) => actions(taught, episode(150, { type: 'x', total: value }, []))
    expect(await ask(20.5)).toMatchObject([{ args: { value: 10.25 } }])
    expect(await ask(20.51)).toEqual([])
  })

  const day = (index: number): string => new Date(Date.UTC(2026, 0, 1 + index)).toISOString().slice(0, 10)
  const lines = (...counts: Json[]) => ({ lines: counts.map((count) => ({ count })) })
  const bounded: [name: string, fields: (index: number) => JsonFields, value: (index: number) => number, others: JsonFields[]][] = [
    [
      'a share of what a text says',
      (index) => ({ price: `${total(index).toFixed(2)} EUR` }),
      (index) => rounded(total(index) * 0.8),
      [{ price: '-20.10 EUR' }, { price: '900.10 EUR' }, { price: '20.10 USD' }],
    ],
    [
      'a product, of which each part is as was taught',
      (index) => ({ count: 1 + mixed(index, 9), price: 10 - mixed(index, 9) }),
      (index) => (1 + mixed(index, 9)) * (10 - mixed(index, 9)),
      [{ count: 10, price: 10 }],
    ],
    [
      'a sum, also of too many items or of some that have no number',
      (index) => lines(1 + mixed(index, 90), mixed(index, 50)),
      (index) => 1 + mixed(index, 90) + mixed(index, 50),
      [lines(1000, 5), lines(10, '20'), { lines: [{ count: 10 }, {}] }, lines(...Array.from({ length: 300 }, () => 0.25))],
    ],
    [
      'days',
      (index) => ({ from: day(index), to: day(index + 1 + mixed(index, 30)) }),
      (index) => 1 + mixed(index, 30),
      [
        { from: day(900), to: day(1900) },
        { from: day(910), to: day(900) },
      ],
    ],
  ]

  test.each(bounded)('%s, and no number beyond those that were taught', async (_, fields, value, others) => {
    const taught = history(300, (index) =>
      index % 3 === 2 ? [{ type: 'y' }, []] : [{ type: 'x', ...fields(index) }, call('act', { value: value(index) })],
    )
    const ask = (one: JsonFields) => actions(taught, episode(150, { type: 'x', ...one }, []))
    expect(await ask(fields(150))).toMatchObject([{ args: { value: value(150) } }])
    for (const other of others) expect(await ask(other)).toEqual([])
  })

  test('one of few words in a text, and no other word', async () => {
    const kinds = ['pdf', 'txt', 'doc']
    const file = (index: number, kind = kinds[index % 3]) => ({ type: 'file', path: `/in/box-${mixed(index, 90)}/scan${index}.${kind}` })
    const taught = history(300, (index) =>
      index % 5 === 4 ? [{ type: 'y' }, []] : [file(index), call('index', { kind: index === 12 ? 'html' : (kinds[index % 3] ?? '') })],
    )
    expect(await actions(taught, episode(301, file(301), []))).toMatchObject([{ args: { kind: 'txt' } }])
    for (const kind of ['exe', 'html']) expect(await actions(taught, episode(301, file(301, kind), []))).toEqual([])
  })

  test('a share of a number that grows, but not far beyond those that were taught', async () => {
    const taught = history(300, (index) =>
      index % 3 === 2 ? [{ type: 'y' }, []] : [{ type: 'x', total: 10 + index }, call('act', { value: rounded((10 + index) * 0.8) })],
    )
    const ask = (value: number) => actions(taught, episode(400, { type: 'x', total: value }, []))
    expect(await ask(410)).toMatchObject([{ args: { value: 328 } }])
    expect(await ask(90_000)).toEqual([])
  })
})
