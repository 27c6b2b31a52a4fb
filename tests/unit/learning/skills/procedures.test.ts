import { describe, expect, test } from 'vitest'
import { learnSkills, type LearnedSkills } from '../../../../src/features/learning/skills/learn.ts'
import { proveSkill } from '../../../../src/features/learning/skills/prove.ts'
import type { Trace } from '../../../../src/features/learning/skills/trace.ts'
import { factsOf } from '../../../../src/tools/tool-facts.ts'
import { call, times, trace } from './build-trace.ts'

const tools = factsOf({
  find: { repeatable: true },
  read: { repeatable: true },
  close: {},
  reopen: { undoes: { tool: 'close', match: ['id'] } },
})
const learn = (traces: readonly Trace[]): Promise<LearnedSkills> =>
  learnSkills(traces, { tools, owner: 'learner', roles: ['operator'], parser_model: null, seed: '1', latest: () => null })

const saying = (text: string): Partial<Trace> => ({ goal: { text, labels: [] } })
const other = (n: number): Trace => trace(1000 + n, [call('look', { at: `x-${n}` })], saying('what is the weather'))

describe('a procedure with a list', () => {
  /** Reads each of the orders of a customer, of which there are one to four. */
  const looping = (n: number, made = 1 + (n % 4)): Trace => {
    const orders = times(1 + (n % 4), (index) => `order-${n}-${index}`)
    const reads = orders.slice(0, made).map((id) => call('read', { id, full: true }, { output: { status: 'sent' } }))
    return trace(n, [call('find', { name: `ann-${n}` }, { output: { orders } }), ...reads], saying('show all orders'))
  }

  test('becomes a skill with a step for each item, proven on the turns after the ones that taught it', async () => {
    const { candidates } = await learn([...times(60, (n) => looping(n)), ...times(20, other)])
    expect(candidates).toMatchObject([
      {
        report: { passed: true, unit: { n: 10, passed: 10 } },
        evidence: { turns: 60, proof: { turns: 50, agreed: 50 } },
        manifest: {
          signature: { inputs: [{ name: 'name' }] },
          plan: {
            steps: [
              { tool: 'find', args: { name: '{{name}}' } },
              { tool: 'read', args: { id: '{{work.item}}', full: true }, for_each: { list: '{{work.steps.find.orders}}', at_most: 8 } },
            ],
          },
        },
      },
    ])
  })

  test.each([
    ['one call too few', (n: number) => looping(n, n % 4)],
    ['another order', (n: number) => ({ ...looping(n), acts: [...looping(n).acts.slice(0, 1), ...looping(n).acts.slice(1).toReversed()] })],
    ['one call too many', (n: number) => ({ ...looping(n), acts: [...looping(n).acts, call('read', { id: 'y', full: true })] })],
  ])('is not proven by turns with %s: each is wrong as a whole', async (_, wrong) => {
    const { candidates } = await learn(times(20, (n) => looping(n)))
    const [{ manifest } = { manifest: null }] = candidates
    if (!manifest) throw new Error('no skill was found')
    const later = times(20, (n) => (n % 4 === 3 ? wrong(100 + n) : looping(100 + n)))
    expect(await proveSkill(manifest, later, ['operator'])).toMatchObject({ turns: 20, agreed: 15 })
  })

  test('is no skill if its list came from before', async () => {
    const orders = (n: number) => times(2, (index) => `order-${n}-${index}`)
    const made = (n: number): Trace => {
      const reads = orders(n).map((id) => call('read', { id }))
      const acts = [call(`find${n}`, {}, { output: { orders: orders(n) } }), ...reads, call('close', { id: 'x' })]
      return trace(n, acts, saying('close all'))
    }
    expect((await learn(times(20, made))).candidates).toEqual([])
  })
})

describe('a procedure with a branch', () => {
  const branching = (n: number, status = n % 3 === 0 ? 'open' : 'done', closes = status === 'open'): Trace =>
    trace(
      n,
      [call('read', { id: `t-${n}` }, { output: { status, ticket: `t-${n}` } }), ...(closes ? [call('close', { id: `t-${n}` })] : [])],
      saying('tidy the tickets'),
    )

  test('becomes a skill whose step has a guard on an earlier output, and its inverse', async () => {
    const { candidates } = await learn([...times(60, (n) => branching(n)), ...times(20, other)])
    expect(candidates).toMatchObject([
      {
        report: { passed: true },
        evidence: { turns: 60, proof: { turns: 50, agreed: 50 } },
        manifest: {
          plan: {
            steps: [
              { tool: 'read', args: { id: '{{id}}' } },
              { tool: 'close', args: { id: '{{id}}' }, guard: 'work.steps.read.status == "open"' },
            ],
            compensation: [{ tool: 'reopen', step: 'close' }],
          },
        },
      },
    ])
  })

  test('is wrong in a turn that took the other branch, or that a person overruled', async () => {
    const [{ manifest } = { manifest: null }] = (await learn([...times(60, (n) => branching(n)), ...times(20, other)])).candidates
    if (!manifest) throw new Error('no skill was found')
    const proof = (later: Trace[]) => proveSkill(manifest, later, ['operator'])
    expect(await proof(times(6, (n) => branching(n, 'open', n > 0)))).toMatchObject({ turns: 6, agreed: 5 })
    expect(await proof(times(6, (n) => branching(n, 'done', n === 0)))).toMatchObject({ turns: 6, agreed: 5 })
    expect(await proof([{ ...branching(0), outcome: 'overruled' }])).toMatchObject({ turns: 1, agreed: 0 })
  })

  test('is not counted in a turn in which the gate would not offer it, or that failed', async () => {
    const [{ manifest } = { manifest: null }] = (await learn([...times(60, (n) => branching(n)), ...times(20, other)])).candidates
    if (!manifest) throw new Error('no skill was found')
    const later = [
      { ...branching(0), ...saying('quite another thing') },
      { ...branching(3), outcome: 'failed' as const },
    ]
    expect(await proveSkill(manifest, later, ['operator'])).toEqual({ turns: 0, agreed: 0, low: 0 })
    expect(await proveSkill(manifest, [branching(3)], ['another'])).toMatchObject({ turns: 0 })
  })

  test('is not proven before later turns took its branch: one that is never taken agrees with all', async () => {
    const [{ manifest } = { manifest: null }] = (await learn([...times(60, (n) => branching(n)), ...times(20, other)])).candidates
    if (!manifest) throw new Error('no skill was found')
    const done = times(60, (n) => branching(n, 'done'))
    const open = times(5, (n) => branching(100 + n, 'open'))
    expect(await proveSkill(manifest, [...done, ...open.slice(1)], ['operator'])).toEqual({ turns: 64, agreed: 64, low: 0 })
    expect((await proveSkill(manifest, [...done, ...open], ['operator'])).low).toBeGreaterThan(0.95)
  })

  test('is left alone where no output tells when the step is made', async () => {
    const { candidates } = await learn(times(60, (n) => branching(n, 'open', n % 3 === 0)))
    expect(candidates.filter(({ manifest }) => manifest.plan.steps.some(({ guard }) => guard !== undefined))).toEqual([])
  })
})
