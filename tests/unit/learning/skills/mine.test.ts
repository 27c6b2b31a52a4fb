import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mine, MINING } from '../../../../src/features/learning/skills/mine.ts'
import { closedPatterns, join } from '../../../../src/features/learning/skills/prefix-span.ts'
import type { Trace } from '../../../../src/features/learning/skills/trace.ts'
import { seededRandom } from '../../../support/random.ts'
import { call, run, times, trace } from './build-trace.ts'
import { assertProperty } from '../../../support/property.ts'

/** By definition: all contiguous patterns, then those that no longer one equals in support. */
function closedByCounting(sequences: number[][], least: number, shortest: number, longest: number): string[] {
  const containing = new Map<string, Set<number>>()
  for (const [index, symbols] of sequences.entries())
    for (let from = 0; from < symbols.length; from += 1)
      for (let size = 1; size <= longest && from + size <= symbols.length; size += 1) {
        const key = `,${symbols.slice(from, from + size).join(',')},`
        containing.set(key, (containing.get(key) ?? new Set()).add(index))
      }
  const frequent = [...containing].filter(([, { size }]) => size >= least)
  return frequent
    .filter(([key]) => key.split(',').length - 2 >= shortest)
    .filter(([key, { size }]) => !frequent.some(([other, { size: same }]) => other !== key && same === size && other.includes(key)))
    .map(([key, { size }]) => `${key} ${size}`)
    .sort()
}

const symbolsOf = (traces: Trace[], limits = MINING) => mine(traces, limits).patterns.map(({ symbols }) => symbols)
const deployment = (at: number, fields: Partial<Trace> = {}) =>
  trace(at, [call('look', { id: `${at}` }), call('build', { commit: `c${at}` }), call('deploy', { image: `i${at}`, app: 'a' })], fields)

test('closed contiguous patterns are those of the definition', () => {
  const sequences = fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 9 }), { maxLength: 12 })
  assertProperty(
    'learning/skills/mine',
    fc.property(sequences, fc.integer({ min: 1, max: 4 }), (lists, least) => {
      // Without a limit of length, which would keep patterns that only a longer one closes.
      const found = closedPatterns(join(lists), { least_sequences: least, shortest: 2, longest: 9 })
      const shown = found.map(({ symbols, sequences: size }) => `,${symbols.join(',')}, ${size}`)
      expect(shown.sort()).toEqual(closedByCounting(lists, least, 2, 9))
    }),
  )
})

describe('mining', () => {
  test('finds what is repeated, as one pattern, whatever the values are', () => {
    expect(symbolsOf(times(10, deployment))).toEqual([['look{id:string}', 'build{commit:string}', 'deploy{app:string,image:string}']])
  })

  test('measures it against the turns that contain it', () => {
    const [pattern] = mine([...times(10, deployment), ...times(10, (n) => trace(100 + n, [call('other')]))]).patterns
    expect(pattern).toMatchObject({ support: 0.5, success: 1, place: { project: 'acme/payments' }, envs: [] })
    expect(pattern?.baseline_usd).toBeCloseTo(0.103)
    expect(pattern?.delta_cost).toBeCloseTo(0.003 / 0.103 - 1)
    expect(pattern?.delta_p95).toBeCloseTo(300 / 5000 - 1)
  })

  test('reads the same history in any order to the same result', () => {
    const traces = times(40, (n) => (n % 3 === 0 ? deployment(n) : trace(n, [call('a'), call('b'), call(n % 2 === 0 ? 'c' : 'd')])))
    const [mined, reversed] = [traces, traces.toReversed()].map((list) => JSON.stringify(mine(list)))
    expect(reversed).toBe(mined)
  })

  test('does not mix places, and names the environments', () => {
    const at = (n: number, project: string, env: string) => deployment(n, { place: { agent: 'deploy', project, env } })
    const traces = times(12, (n) => at(n, n % 2 === 0 ? 'p' : 'q', n < 4 ? 'staging' : 'production'))
    const { patterns } = mine(traces)
    expect(patterns.map(({ place, envs, support }) => [place.project, envs, support])).toEqual([
      ['p', ['production', 'staging'], 1],
      ['q', ['production', 'staging'], 1],
    ])
  })

  test('counts at most a third of the turns of one sender, unless a person trusts it', () => {
    const sent = (n: number, source: string) => deployment(n, { source })
    const flooded = [...times(4, (n) => sent(n, 'a')), ...times(4, (n) => sent(10 + n, 'b')), ...times(40, (n) => sent(20 + n, 'c'))]
    const [pattern] = mine(flooded).patterns
    const senders = pattern?.occurrences.map(({ trace: { source } }) => source) ?? []
    expect(['a', 'b', 'c'].map((one) => senders.filter((source) => source === one).length)).toEqual([4, 4, 4])
    expect(pattern?.occurrences.at(-1)?.trace.at).toBe(59)
    expect(mine(flooded, undefined, new Set(['c'])).patterns[0]?.occurrences).toHaveLength(48)
    expect(mine(times(40, (n) => sent(n, 'c')))).toMatchObject({
      patterns: [],
      rejected: [{ turns: 0, reason: expect.stringContaining('40 more are of senders that have more than a third') }],
    })
  })

  test('counts what came before a sequence, by the tool or the skill', () => {
    const before = (n: number) => (n % 3 === 0 ? [run('notes.save@1.0.0')] : n % 3 === 1 ? [call('look', { id: `${n}` })] : [])
    const traces = times(12, (n) => trace(n, [...before(n), call('build', { commit: `${n}` }), call('deploy', { app: `${n}` })]))
    const found = mine(traces).patterns.find(({ symbols }) => symbols[0]?.startsWith('build'))
    expect(found?.after).toEqual({ 'skill:notes.save': 4, look: 4 })
  })

  test('names the sixteen calls that came most often before a sequence', () => {
    const before = (n: number) => call(`tool${n % 17}`, { id: `${n}` })
    const traces = times(68, (n) => trace(n, [...(n < 51 ? [before(n)] : [call('tool3', { id: `${n}` })]), call('build'), call('deploy')]))
    const found = mine(traces).patterns.find(({ symbols }) => symbols[0]?.startsWith('build'))
    const names = Object.keys(found?.after ?? {})
    expect([names.length, names[0], names.includes('tool9')]).toEqual([16, 'tool3', false])
  })

  describe('of calls that some turns make next', () => {
    const reading = (n: number, status: string, next?: string, ok = true) =>
      trace(n, [call('read', { id: `${n}` }, { output: { status } }), ...(next === undefined ? [] : [call(next, { id: `${n}` }, { ok })])])
    const branchesOf = (traces: Trace[]) =>
      mine(traces).patterns.map(({ symbols, branches }) => [symbols.length, branches.filter(Boolean).length])

    test('makes no branch where too few turns did not make them', () => {
      const went_on = times(20, (n) => reading(n, 'open', 'close'))
      expect(branchesOf([...went_on, ...times(4, (n) => reading(20 + n, 'done'))])).toEqual([[2, 0]])
      expect(branchesOf([...went_on, ...times(5, (n) => reading(20 + n, 'done'))])).toEqual([[2, 1]])
    })

    test('makes no branch of a call that failed', () => {
      const others = times(10, (n) => reading(20 + n, 'done'))
      expect(branchesOf([...times(20, (n) => reading(n, 'open', 'close', false)), ...others])).toEqual([])
      expect(branchesOf([...times(20, (n) => reading(n, 'open', 'close')), ...others])).toEqual([[2, 1]])
    })

    test('makes at most four branches', () => {
      const traces = times(36, (n) => reading(n, `status ${n % 6}`, n % 6 === 5 ? undefined : `tool${n % 6}`))
      expect(branchesOf(traces)).toContainEqual([5, 4])
    })
  })

  test('sees a call that was repeated after a failure once', () => {
    const retried = (n: number) => trace(n, [call('a'), call('b', {}, { ok: false }), call('b'), call('c')])
    expect(symbolsOf(times(10, retried))).toEqual([['a{}', 'b{}', 'c{}']])
  })

  test('passes over replies and events between calls', () => {
    const talking = (n: number) => trace(n, [call('a'), { ...call('reply'), kind: 'reply' }, call('b')])
    expect(symbolsOf(times(10, talking))).toEqual([['a{}', 'b{}']])
  })

  test.each<[string, Trace[], string]>([
    ['is rare', [...times(4, deployment), ...times(4, (n) => trace(50 + n, []))], '4 successful turns contain it: at least 5 must'],
    [
      'is a small share',
      [...times(5, deployment), ...times(500, (n) => trace(50 + n, []))],
      '1 % of the successful turns contain it: at least 2 % must',
    ],
    [
      'often ends badly',
      [...times(18, deployment), ...times(2, (n) => deployment(50 + n, { outcome: 'failed' }))],
      '90 % of its occurrences ended well: at least 95 % must',
    ],
    [
      'was overruled by a person',
      [...times(18, deployment), ...times(2, (n) => deployment(50 + n, { outcome: 'overruled' }))],
      '90 % of its occurrences ended well: at least 95 % must',
    ],
    [
      'costs nearly as much as the turns',
      times(10, (n) => trace(n, [call('a', {}, { cost_usd: 1 }), call('b', {}, { cost_usd: 1 })])),
      'its tools cost 95.2 % of what the turns cost: at most 60 % may',
    ],
    ['repeats one call', times(10, (n) => trace(n, [call('poll'), call('poll')])), 'it only repeats one call'],
    ['runs skills', times(10, (n) => trace(n, [run('a@1.0.0'), run('b')])), 'it runs skills, and a plan can run tools only'],
  ])('refuses a pattern that %s, with the reason', (_, traces, reason) => {
    const { patterns, rejected } = mine(traces)
    expect(patterns).toEqual([])
    expect(rejected).toEqual([expect.objectContaining({ reason })])
  })

  test('refuses a part of a pattern that mostly occurs within it', () => {
    const traces = [
      ...times(18, deployment),
      ...times(2, (n) => trace(50 + n, [call('look', { id: 'x' }), call('build', { commit: 'y' })])),
    ]
    const { patterns, rejected } = mine(traces)
    expect(patterns.map(({ symbols }) => symbols.length)).toEqual([3])
    expect(rejected.map(({ reason }) => reason)).toEqual(['it is part of 3 calls that mostly contain it'])
  })

  test('keeps a part of a pattern that mostly occurs without the rest', () => {
    const short = times(14, (n) => trace(50 + n, [call('look', { id: 'x' }), call('build', { commit: 'y' })]))
    expect(symbolsOf([...times(6, deployment), ...short]).map(({ length }) => length)).toEqual([2, 3])
  })

  test('finds what is repeated by turns that cost nothing, too', () => {
    const free = (tool: string) => call(tool, {}, { cost_usd: 0 })
    const usage = { ...trace(0, []).usage, cost_usd: 0 }
    expect(symbolsOf(times(10, (n) => trace(n, [free('a'), free('b')], { usage })))).toEqual([['a{}', 'b{}']])
  })

  test('counts which call followed which, a run of a skill as one', () => {
    const traces = [
      ...times(3, (n) => trace(n, [run('ensure@1.0.0'), run('build@2.1.0')])),
      trace(9, [call('a'), call('b')], { outcome: 'failed' }),
    ]
    expect(mine(traces).transitions).toEqual([{ from: 'skill:ensure', to: 'skill:build', count: 3 }])
  })

  test('of no history, or one turn, finds nothing', () => {
    expect(mine([])).toEqual({ patterns: [], rejected: [], transitions: [] })
    expect(mine([deployment(1)])).toMatchObject({ patterns: [], rejected: [] })
  })

  test('finds a repeated sequence among 2,000 turns of chance', () => {
    const random = seededRandom(1)
    const chance = () => times(10, () => call(`tool-${Math.floor(random() * 30)}`))
    const traces = times(2000, (n) => trace(n, n % 10 === 0 ? [...chance(), ...deployment(n).acts, ...chance()] : chance()))
    expect(symbolsOf(traces)).toContainEqual(['look{id:string}', 'build{commit:string}', 'deploy{app:string,image:string}'])
  })
})
