import { describe, expect, test } from 'vitest'
import { beginIdentity, showIdentity, type Identity, type ShownToModel } from '../../../src/evidence/identity.ts'
import { linesOf } from '../../../src/base/prompt-lines.ts'

/** The changes, by the number of the turn at which each was noticed. */
function changesOf(turns: readonly ShownToModel[]): string[] {
  const [first, ...rest] = turns
  let identity: Identity = beginIdentity(first ?? { lines: [], tools: [] })
  return rest.flatMap((shown, at) => {
    const next = showIdentity(identity, shown)
    identity = next.identity
    return next.changed === null ? [] : [`${at + 1} ${next.changed}`]
  })
}
const times = (count: number, of: (turn: number) => Partial<ShownToModel>): ShownToModel[] =>
  Array.from({ length: count }, (_, turn) => ({ lines: ['a', 'b'], tools: ['t'], ...of(turn) }))

test('the same instructions and tools are the same teacher', () => {
  expect(changesOf(times(500, () => ({})))).toEqual([])
})

test('lines that change with each turn are not part of it', () => {
  expect(changesOf(times(500, (turn) => ({ lines: ['a', `time ${turn}`, 'b'] })))).toEqual([])
})

test('a line that is replaced is noticed at once after twenty turns, and after three turns before', () => {
  expect(changesOf([...times(30, () => ({})), ...times(30, () => ({ lines: ['a', 'c'] }))])).toEqual(['30 lines'])
  expect(changesOf([...times(10, () => ({})), ...times(30, () => ({ lines: ['a', 'c'] }))])).toEqual(['12 lines'])
})

test('a line or a tool that is added is noticed after three turns', () => {
  expect(changesOf([...times(30, () => ({})), ...times(30, () => ({ lines: ['a', 'b', 'c'] }))])).toEqual(['32 lines'])
  expect(changesOf([...times(30, () => ({})), ...times(30, () => ({ tools: ['t', 'u'] }))])).toEqual(['32 tools'])
})

test('a line that is only left out is missed after three turns, and at once where twenty turns had it', () => {
  expect(changesOf([...times(10, () => ({})), ...times(30, () => ({ lines: ['a'] }))])).toEqual(['12 lines'])
  expect(changesOf([...times(19, () => ({})), ...times(30, () => ({ lines: ['a'] }))])).toEqual(['21 lines'])
  expect(changesOf([...times(21, () => ({})), ...times(30, () => ({ lines: ['a'] }))])).toEqual(['21 lines'])
  // Two turns without it, again and again, are no three in a row.
  expect(changesOf(times(18, (turn) => ({ lines: turn > 3 && turn % 3 > 0 ? ['a'] : ['a', 'b'] })))).toEqual([])
})

test('a change of tools leaves the hash of the instructions as it was, and the other way round', () => {
  const named = beginIdentity({ lines: ['a'], tools: ['t'] }, { named: 'instructions' })
  const after = (shown: ShownToModel) => times(3, () => shown).reduce((identity) => showIdentity(identity, shown).identity, named)
  const other = after({ lines: ['a'], tools: ['t', 'u'] })
  expect(other.prompt_hash).toBe('instructions')
  expect(other.tools_hash).toBe(beginIdentity({ lines: [], tools: ['u', 't'] }).tools_hash)
  const line = after({ lines: ['b', 'a'], tools: ['t'] })
  expect(line.tools_hash).toBe(named.tools_hash)
  expect(line.prompt_hash).toBe(beginIdentity({ lines: ['a', 'b'], tools: [] }).prompt_hash)
  expect([line.turns, line.restless]).toEqual([1, true])
})

/** The identity after these turns, the first of which began it. */
const identityAfter = ([first, ...rest]: readonly ShownToModel[], restless = false): Identity =>
  rest.reduce((identity, shown) => showIdentity(identity, shown).identity, beginIdentity(first!, { restless }))

test('a part that the first three turns had in common is missed, and one that two had is dropped', () => {
  const without = times(8, () => ({ lines: ['a'] }))
  expect(changesOf([...times(3, () => ({})), ...without])).toEqual(['5 lines'])
  expect(changesOf([...times(2, () => ({})), ...without])).toEqual([])
})

test('what changes soon after it began is restless, and what was steady for twenty turns is not', () => {
  const replaced = times(3, () => ({ lines: ['a', 'c'] }))
  expect(identityAfter([...times(10, () => ({})), ...replaced])).toMatchObject({ turns: 1, restless: true })
  expect(identityAfter([...times(20, () => ({})), ...replaced.slice(2)])).toMatchObject({ turns: 1, restless: false })
})

test('a change of lines keeps the hash of the tools, also where that turn showed others', () => {
  const changed = identityAfter([...times(30, () => ({})), { lines: ['a', 'c'], tools: ['t', 'u'] }])
  expect(changed).toMatchObject({ turns: 1, tools_hash: beginIdentity({ lines: [], tools: ['t'] }).tools_hash })
})

describe('prompts that change by themselves are calm again after 200 turns', () => {
  const restlessAfter = (count: number, of: (turn: number) => Partial<ShownToModel>) => identityAfter(times(count, of), true).restless

  test.each<[string, (turn: number) => Partial<ShownToModel>]>([
    ['the same parts', () => ({})],
    ['a new line in each', (turn) => ({ lines: ['a', `time ${turn}`, 'b'] })],
    ['a new tool in each', (turn) => ({ tools: ['t', `tool ${turn}`] })],
  ])('with %s', (_, of) => {
    expect([restlessAfter(199, of), restlessAfter(200, of)]).toEqual([true, false])
  })

  test.each<[string, (turn: number) => Partial<ShownToModel>]>([
    ['line', (turn) => ({ lines: ['a', `block ${Math.floor(turn / 3)}`, 'b'] })],
    ['tool', (turn) => ({ tools: ['t', `block ${Math.floor(turn / 3)}`] })],
  ])('and not while a %s comes for three turns again and again', (_, of) => {
    expect([restlessAfter(200, of), restlessAfter(400, of)]).toEqual([true, true])
  })
})

test('a line that is left out of two turns only is not missed', () => {
  const turns = times(60, (turn) => ({ lines: turn === 10 || turn === 11 ? ['a'] : ['a', 'b'] }))
  expect(changesOf(turns)).toEqual([])
})

test('lines that stay for some turns and are replaced again and again change the teacher only at first', () => {
  const turns = times(400, (turn) => ({ lines: ['a', `incident ${Math.floor(turn / 7)}`, 'b'] }))
  expect(changesOf(turns).length).toBeLessThanOrEqual(2)
})

test('a change is noticed, too, after lines that changed by themselves', () => {
  const before = times(300, (turn) => ({ lines: ['a', `incident ${Math.floor(turn / 7)}`, 'b'] }))
  const after = times(60, (turn) => ({ lines: ['a', `incident ${Math.floor(turn / 7)}`, 'c'] }))
  expect(changesOf([...before, ...after]).filter((change) => Number.parseInt(change) >= 300)).toHaveLength(1)
})

test.each([
  ['It is 2026-11-22T18:05:00.000Z.', 'It is 2027-01-02.'],
  ['Today is Monday, November 22, 2026, 10:05 am.', 'Today is Friday, May 3, 2027, 9:41 pm.'],
  ['Request 0193a5b2-7c1d-7e4f-9a2b-3c4d5e6f7a8b', 'Request 0293a5b2-7c1d-7e4f-9a2b-3c4d5e6f7a8c'],
  ['Chain {"ids": ["a"]}', 'Chain {"ids": ["a", "b"]}'],
])('%j and %j are the same line', (one, other) => {
  expect(linesOf(one, [])).toEqual(linesOf(other, []))
})

test.each([
  ['Block after 3 failures.', 'Block after 5 failures.'],
  ['Never block offices.', 'Block offices.'],
])('%j and %j are different lines', (one, other) => {
  expect(linesOf(one, [])).not.toEqual(linesOf(other, []))
})

test('a line that quotes the event is left out', () => {
  expect(linesOf('Be brief.\nThe log says: failed login of root', ['failed login of root'])).toEqual(linesOf('Be brief.', []))
})
