import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LeaseAnswer, LeaseAsked } from '../../../src/contract/scope-api.ts'
import type { Agent } from '../../../src/agent/define-agent.ts'
import { unpricedBudgets } from '../../../src/agent/unpriced-budget.ts'
import type { MoneyBudget } from '../../../src/contract/settings/budget.ts'
import { budgetsProblem, sharedBudgets } from '../../../src/contract/settings/budget.ts'
import type { Event } from '../../../src/core/event.ts'
import type { Unit } from '../../../src/kernel/unit.ts'
import { Money } from '../../../src/engine/turns/money.ts'
import { nearOf, NOTHING_SPENT, paid, SharedMoney, spentAt } from '../../../src/engine/effects/shared-money.ts'
import { assertProperty } from '../../support/property.ts'

const DAY = 86_400_000
const NOON = Date.UTC(2026, 2, 10, 12)
const event = (id: string, sender = 'key:one') =>
  ({ event: { id, type: 'note', source: 'test', meta: { sender } } }) as unknown as { event: Event }

/** An object that counts a budget, and scopes that share it, with storage that a crash keeps. */
function deployment({
  own,
  shared,
  clock,
  each = false,
  written = 0,
}: {
  own?: MoneyBudget
  shared?: MoneyBudget
  clock: { at: number }
  each?: boolean
  written?: number
}) {
  const kept = new Map<string, unknown>()
  const scopes = new Map<string, Money>()
  const disks = new Map<string, string>()
  const entries: unknown[] = []
  const counts = { writes: 0, questions: 0 }
  const away = new Set<string>()
  const held = new Map<string, Promise<void>>()
  const slow = async (turns: number) => {
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
  }
  const object = new SharedMoney({
    read: (key) => structuredClone(kept.get(key)) as never,
    write: (key, value) => void kept.set(key, structuredClone(value)),
    scopes: () => [...kept.keys()].filter((key) => key.startsWith('lease:')).map((key) => key.slice(6)),
    recall: async (scope, n) => {
      await slow(3)
      if (away.has(scope)) throw new Error('away')
      return open(scope).report(writing(scope), 'all', n)
    },
    now: () => clock.at,
  })
  const lives = new Map<string, number>()
  const lifeOf = (scope: string) => lives.get(scope) ?? 0
  // Nothing of a process that died writes.
  const writing =
    (scope: string, life = lifeOf(scope)) =>
    (work: (unit: Unit) => void) => {
      const write = (_key: string, value: unknown) => {
        if (life !== lifeOf(scope)) return
        counts.writes += 1
        disks.set(scope, JSON.stringify(value))
      }
      work({ now: clock.at, write, log: (entry: unknown) => entries.push(entry) } as never)
    }
  const lease = async (_name: string, asked: LeaseAsked): Promise<LeaseAnswer> => {
    counts.questions += 1
    await slow(4)
    const answer = await object.lease(asked)
    await slow(2)
    await held.get(asked.scope)
    return answer
  }
  const wake = (scope: string) =>
    new Money({
      database: {
        read: (_key: string, otherwise: unknown) => JSON.parse(disks.get(scope) ?? JSON.stringify(otherwise)),
        written,
      } as never,
      scope,
      budget: () => own,
      shared: (senders) => (shared ? (each ? senders : ['all']).map((name) => ({ ...shared, name })) : []),
      problem: () => null,
      lease,
      now: () => clock.at,
    })
  const open = (scope: string) => {
    const money = scopes.get(scope) ?? wake(scope)
    scopes.set(scope, money)
    return money
  }
  const reserve = (scope: string, most: number, claimed: { event: Event }[] = []) =>
    open(scope).reserve(writing(scope), { most, prompt: most / 10, model: 'm' }, claimed)
  const settle = (scope: string, id: string | null, usd: number | null) => writing(scope)((unit) => open(scope).settle(unit, id, usd))
  const crash = (scope: string) => {
    lives.set(scope, lifeOf(scope) + 1)
    scopes.set(scope, wake(scope))
  }
  return { open, reserve, settle, crash, lifeOf, entries, counts, slow, writing, disks, away, held }
}

/** A sequence of numbers below 1, by a seed. */
function numbers(seed: number) {
  let state = seed | 1
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5
    state ^= state >>> 12
    return (state >>> 0) / 4_294_967_296
  }
}

describe('a budget in money that scopes share', () => {
  test('is never passed by 10,000 racing calls, with crashes, and is used up to what one call may cost', { timeout: 120_000 }, async () => {
    const race = async (seed: number) => {
      const clock = { at: NOON }
      const next = numbers(seed)
      const { reserve, settle, crash, lifeOf, slow, counts } = deployment({ shared: { usd_per_day: 20, usd_per_month: 500 }, clock })
      let paid = 0
      let most_paid = 0
      let begun = 0
      const caller = async (scope: string) => {
        for (let call = 0; call < 400; call += 1) {
          const most = 0.002 + next() * 0.04
          const life = lifeOf(scope)
          const reserved = await reserve(scope, most)
          begun += 1
          if (!reserved.ok || life !== lifeOf(scope)) continue
          await slow(Math.floor(next() * 6))
          if (next() < 0.01) crash(scope)
          const has_died = life !== lifeOf(scope)
          const usd = has_died ? most / 10 : next() < 0.3 ? most : most * next()
          paid += usd
          most_paid = Math.max(most_paid, paid)
          if (!has_died) settle(scope, reserved.id, usd)
        }
      }
      await Promise.all(Array.from({ length: 25 }, (_, at) => caller(`scope-${at % 12}`)))
      expect(begun).toBe(10_000)
      expect(most_paid).toBeLessThanOrEqual(20.000001)
      // The calls that a crash left open come back, so the rest can be spent.
      clock.at += 1_000_000
      for (let call = 0; call < 2000; call += 1) {
        const reserved = await reserve(`scope-${call % 12}`, 0.01)
        if (reserved.ok) {
          paid += 0.01
          settle(`scope-${call % 12}`, reserved.id, 0.01)
        }
        clock.at += 20
      }
      expect(paid).toBeLessThanOrEqual(20.000001)
      expect(paid).toBeGreaterThan(19.9)
      return counts.questions
    }
    await assertProperty(
      'scope/money',
      fc.asyncProperty(fc.integer(), async (seed) => void (await race(seed))),
      { numRuns: 3 },
    )
  })

  test('asks its object once for many calls, and asks nobody in a day of silence', async () => {
    const clock = { at: NOON }
    const { reserve, settle, counts } = deployment({ shared: { usd_per_day: 64 }, clock })
    for (let call = 0; call < 100; call += 1) {
      const reserved = await reserve('one', 0.01)
      settle('one', reserved.ok ? reserved.id : null, 0.005)
    }
    expect(counts.questions).toBeLessThanOrEqual(2)
    const before = { ...counts }
    clock.at += DAY
    expect(counts).toEqual(before)
  })

  test('gives a scope what another one took and does not use', async () => {
    const clock = { at: NOON }
    const { reserve, settle } = deployment({ shared: { usd_per_day: 1 }, clock })
    const first = await reserve('one', 0.2)
    settle('one', first.ok ? first.id : null, 0.1)
    clock.at += 60_000
    expect(await reserve('two', 0.85)).toMatchObject({ ok: true })
    expect(await reserve('one', 0.06)).toMatchObject({ ok: false, reason: 'budget', until: clock.at + 5000 })
  })

  test('uses no part that was called back before the scope had the answer with it', async () => {
    const { reserve, slow, held } = deployment({ shared: { usd_per_day: 1 }, clock: { at: NOON } })
    const answered = Promise.withResolvers<void>()
    held.set('one', answered.promise)
    const first = reserve('one', 0.2)
    await slow(50)
    expect(await reserve('two', 0.9)).toMatchObject({ ok: true })
    answered.resolve()
    expect(await first).toMatchObject({ ok: false, detail: 'another scope needed the budget all' })
  })

  test('counts the part of a scope that has not answered for a day as spent, and holds it no longer', async () => {
    const clock = { at: NOON }
    const { reserve, away } = deployment({ shared: { usd_per_day: 1 }, clock })
    await reserve('gone', 0.9)
    away.add('gone')
    expect(await reserve('two', 0.5)).toMatchObject({ ok: false })
    for (const [days, ok] of [
      [1.1, false],
      [2.2, true],
    ] as const) {
      clock.at = NOON + days * DAY
      expect(await reserve('two', 0.5)).toMatchObject({ ok })
    }
  })

  test('counts calls of a decision model, too, which nobody reserves', async () => {
    const { open, writing, reserve } = deployment({ shared: { usd_per_day: 1 }, clock: { at: NOON } })
    writing('one')((unit) => open('one').paid(unit, 0.9, [event('a')]))
    expect(await reserve('one', 0.2)).toMatchObject({ ok: false, reason: 'budget' })
    expect(await reserve('one', 0.05)).toMatchObject({ ok: true })
  })
})

describe('a budget in money of a scope', () => {
  test('forgets the senders of earlier months, except those whose calls are open', async () => {
    const clock = { at: Date.UTC(2026, 2, 31, 23, 59) }
    const { reserve, settle, disks } = deployment({ shared: { usd_per_month: 100 }, clock, each: true })
    for (let sender = 0; sender < 200; sender += 1) {
      const reserved = await reserve('a', 0.01, [event('e', `chat/${sender}`)])
      settle('a', reserved.ok ? reserved.id : null, 0.005)
    }
    await reserve('a', 0.01, [event('f', 'chat/open')])
    clock.at += 120_000
    await reserve('a', 0.01, [event('g', 'chat/1')])
    const { parts } = JSON.parse(disks.get('a') ?? '') as { parts: object }
    expect(Object.keys(parts).toSorted()).toEqual(['chat/1', 'chat/open'])
  })

  test('waits for the next day, or refuses, as the setting says', async () => {
    const clock = { at: NOON }
    for (const over of ['wait', 'refuse'] as const) {
      const { reserve, settle } = deployment({ own: { usd_per_day: 1, over }, clock })
      const first = await reserve('one', 0.9)
      settle('one', first.ok ? first.id : null, 0.7)
      const refused = await reserve('one', 0.4)
      expect(refused).toMatchObject({ ok: false, until: NOON + DAY / 2, detail: expect.stringContaining('$1.00 per day') })
      expect('final' in refused).toBe(over === 'refuse')
      clock.at = NOON + DAY / 2
      expect(await reserve('one', 0.4)).toMatchObject({ ok: true })
      clock.at = NOON
    }
  })

  test('tells a person once at 80 %', async () => {
    const { reserve, settle, entries } = deployment({ own: { usd_per_month: 1 }, clock: { at: NOON } })
    for (const usd of [0.5, 0.29, 0.02, 0.1]) {
      const reserved = await reserve('one', usd)
      settle('one', reserved.ok ? reserved.id : null, usd)
    }
    expect(entries).toMatchObject([
      { kind: 'alert-raised', name: 'budget-near', summary: '80 % of the budget per month of this scope is spent' },
    ])
  })

  test('tells a person once a month, however many days come near their limits', () => {
    const most = { day: 10_000, month: 1_000_000 }
    let spent = NOTHING_SPENT
    const told = Array.from({ length: 12 }, (_, day) => {
      const { near, spent: after } = nearOf(paid(spentAt(spent, NOON + day * DAY), day === 0 ? 850_000 : 9000), most)
      spent = after
      return near.join()
    })
    expect(told).toEqual(['day,month', ...Array.from({ length: 11 }, () => 'day')])
  })

  test('counts the calls of an event in all its attempts', async () => {
    const { reserve, settle } = deployment({ own: { usd_per_event: 0.1, over: 'refuse' }, clock: { at: NOON } })
    const first = await reserve('one', 0.08, [event('a')])
    settle('one', first.ok ? first.id : null, 0.06)
    expect(await reserve('one', 0.05, [event('a')])).toMatchObject({ ok: false, final: true })
    expect(await reserve('one', 0.05, [event('b')])).toMatchObject({ ok: true })
  })

  test('refuses a model without a price, and a call that may cost more than the limit', async () => {
    const { open, writing, reserve } = deployment({ own: { usd_per_day: 1 }, clock: { at: NOON } })
    const unpriced = await open('one').reserve(writing('one'), { most: null, prompt: null, model: 'mine' }, [])
    expect(unpriced).toMatchObject({ ok: false, final: true, detail: expect.stringContaining('REFLEX_MODEL_PRICES') })
    expect(await reserve('one', 2)).toMatchObject({ ok: false, until: null })
    const cheap = deployment({ own: { usd_per_day: 0.00001 }, clock: { at: NOON } })
    const detail = '$0.000010 per day, is less than one call may cost: $0.000021'
    expect(await cheap.reserve('one', 0.000021)).toMatchObject({ ok: false, detail: expect.stringContaining(detail) })
  })

  test('gets back what a crash left open, without the price of the prompt', async () => {
    const clock = { at: NOON }
    const { reserve, crash } = deployment({ own: { usd_per_day: 1 }, clock })
    await reserve('one', 0.8)
    crash('one')
    expect(await reserve('one', 0.8)).toMatchObject({ ok: false, until: NOON + 5000 })
    clock.at += 900_001
    expect(await reserve('one', 0.8)).toMatchObject({ ok: true })
    expect(await reserve('one', 0.15)).toMatchObject({ ok: false })
  })

  test('gets back what a clock that was ahead left open', async () => {
    const clock = { at: NOON + DAY }
    const { reserve, crash } = deployment({ own: { usd_per_day: 1 }, clock })
    await reserve('one', 0.8)
    crash('one')
    clock.at = NOON
    expect(await reserve('one', 0.8)).toMatchObject({ ok: true })
  })

  test('counts a call whose cost is not known as the most that it may have cost', async () => {
    const { reserve, settle } = deployment({ own: { usd_per_day: 1 }, clock: { at: NOON } })
    const first = await reserve('one', 0.8)
    settle('one', first.ok ? first.id : null, null)
    expect(await reserve('one', 0.3)).toMatchObject({ ok: false })
  })

  test('is spent once as many rows are written as it allows, until the next day', () => {
    const clock = { at: NOON }
    const spent = (written: number) =>
      deployment({ own: { rows_per_day: 100 }, clock, written })
        .open('one')
        .rowsSpent()
    expect(spent(99)).toBeNull()
    expect(spent(100)).toEqual({ limit: 100, until: NOON + DAY / 2 })
  })
})

describe('a clock that was wrong', () => {
  test('comes back to what was spent in a day and a month', async () => {
    for (const limits of [{ own: { usd_per_day: 1 } }, { own: { usd_per_month: 1 } }, { shared: { usd_per_day: 1 } }]) {
      for (const ahead of [-DAY, DAY, 45 * DAY, 400 * DAY]) {
        const clock = { at: NOON }
        const { reserve, settle } = deployment({ ...limits, clock })
        const first = await reserve('one', 0.9)
        settle('one', first.ok ? first.id : null, 0.9)
        expect(await reserve('one', 0.5)).toMatchObject({ ok: false })
        for (let days = 0; days < 6; days += 1) {
          clock.at = NOON + ahead + days * DAY
          const later = await reserve('one', 0.01)
          settle('one', later.ok ? later.id : null, 0.01)
        }
        clock.at = NOON + 60_000
        expect(await reserve('one', 0.5)).toMatchObject({ ok: false })
      }
    }
  })

  test('comes back to the rows that were written in a day', () => {
    const clock = { at: NOON }
    const { open, writing } = deployment({ own: { rows_per_day: 100 }, clock, written: 100 })
    for (const at of [NOON, NOON + DAY, NOON]) {
      clock.at = at
      writing('one')((unit) => open('one').noteRows(unit))
    }
    expect(open('one').rowsSpent()).toMatchObject({ limit: 100 })
  })

  test('counts a call whole that came back early, and once', async () => {
    for (const jump of [-DAY / 24, DAY / 24]) {
      const clock = { at: NOON }
      const { reserve, settle } = deployment({ own: { usd_per_day: 1 }, clock })
      const first = await reserve('one', 0.8)
      clock.at += jump
      expect(await reserve('one', 0.1)).toMatchObject({ ok: true })
      for (let time = 0; time < 2; time += 1) settle('one', first.ok ? first.id : null, 0.7)
      expect(await reserve('one', 0.25)).toMatchObject({ ok: false })
      expect(await reserve('one', 0.2)).toMatchObject({ ok: true })
    }
  })

  test('keeps no part of a shared budget from other scopes for as long as it was ahead', async () => {
    const clock = { at: NOON + 400 * DAY }
    const { reserve, settle, away } = deployment({ shared: { usd_per_day: 1 }, clock })
    const first = await reserve('one', 0.2)
    settle('one', first.ok ? first.id : null, 0)
    away.add('one')
    expect(await reserve('two', 0.9)).toMatchObject({ ok: false })
    away.delete('one')
    clock.at = NOON
    expect(await reserve('two', 0.9)).toMatchObject({ ok: true })
  })
})

describe('REFLEX_BUDGETS', () => {
  const env = (budgets: unknown) => ({ REFLEX_BUDGETS: JSON.stringify(budgets) })

  test('finds the budgets of a scope and of the senders', () => {
    const budgets = env({
      'scope:team-*': { usd_per_day: 5 },
      'key:abc': { usd_per_day: 1 },
      'sender:*@example.com': { usd_per_month: 2, each: true },
    })
    expect(sharedBudgets(budgets, 'team-a', ['key:abc'])).toEqual([
      { usd_per_day: 5, name: 'scope:team-*' },
      { usd_per_day: 1, name: 'key:abc' },
    ])
    expect(sharedBudgets(budgets, 'other', ['a@example.com', 'b@example.com'])).toEqual([
      { usd_per_month: 2, name: 'sender:*@example.com#a@example.com' },
      { usd_per_month: 2, name: 'sender:*@example.com#b@example.com' },
    ])
  })

  test('and agents are named whose budgets in money allow no call, for the model has no price', () => {
    const budgets = env({ 'scope:team-*': { usd_per_day: 5 }, 'key:abc': { rows_per_day: 1000 } })
    const agent = (name: string, settings: object) => ({ name, scopes: ['*'], settings }) as unknown as Agent
    const agents = [
      agent('one', { budget: { usd_per_day: 1 } }),
      agent('two', { budget: { usd_per_day: 1 }, model: 'offline' }),
      agent('three', { budget: { rows_per_day: 1 } }),
    ]
    const problem = expect.stringMatching(/openai-compatible\/new has no price, .*REFLEX_MODEL_PRICES/)
    const unpriced = { ...budgets, REFLEX_MODEL: 'openai-compatible/new' }
    expect(unpricedBudgets(unpriced, agents)).toEqual([
      { name: 'REFLEX_BUDGETS["scope:team-*"]', problem },
      { name: 'the agent one', problem },
    ])
    expect(unpricedBudgets({ ...unpriced, REFLEX_MODEL_PRICES: '{"new": {"input": 1, "output": 2}}' }, agents)).toEqual([])
    expect(unpricedBudgets(budgets, agents)).toEqual([])
  })

  describe('is judged by the models of the agents that it meets', () => {
    const unpriced = 'openai-compatible/new'
    const agent = (name: string, scopes: string[], model?: string) => ({ name, scopes, settings: { model } }) as unknown as Agent
    const named = (name: string, agents: Agent[], REFLEX_MODEL?: string) =>
      unpricedBudgets({ ...env({ [name]: { usd_per_day: 5 } }), ...(REFLEX_MODEL && { REFLEX_MODEL }) }, agents).map((found) => found.name)

    test('and not by a default model that none of them uses', () => {
      const agents = [agent('shop', ['shop/*'], 'offline'), agent('chat', ['chat/*'])]
      expect(named('scope:shop/*', agents, unpriced)).toEqual([])
      expect(named('scope:shop/berlin', agents, unpriced)).toEqual([])
      expect(named('key:abc', [agent('all', ['*'], 'offline'), agent('never', ['shop/*'])], unpriced)).toEqual([])
    })

    test('and an agent whose own model has no price is named, where the default has one', () => {
      const agents = [agent('shop', ['shop/*'], unpriced), agent('chat', ['chat/*'])]
      expect(named('scope:*', agents)).toEqual(['REFLEX_BUDGETS["scope:*"] for the agent shop'])
      expect(named('sender:*@example.com', agents)).toEqual(['REFLEX_BUDGETS["sender:*@example.com"] for the agent shop'])
      expect(named('scope:shop/berlin', agents)).toEqual(['REFLEX_BUDGETS["scope:shop/berlin"]'])
      expect(named('scope:chat/*', agents)).toEqual([])
    })

    test('and the built-in agent has the default, where no other agent serves a scope', () => {
      const agents = [agent('shop', ['shop/*'], 'offline')]
      expect(named('scope:*', agents, unpriced)).toEqual(['REFLEX_BUDGETS["scope:*"] for the agent prompted'])
      expect(named('scope:chat/*', agents, unpriced)).toEqual(['REFLEX_BUDGETS["scope:chat/*"]'])
    })
  })

  test('says what is wrong, and then no model is called', async () => {
    expect(budgetsProblem(env({ 'scope:a': { usd_per_day: -1 } }))).toContain('REFLEX_BUDGETS["scope:a"]["usd_per_day"]')
    expect(budgetsProblem({ REFLEX_BUDGETS: '{' })).toBe('REFLEX_BUDGETS is not valid JSON')
    expect(budgetsProblem({})).toBeNull()
  })
})
