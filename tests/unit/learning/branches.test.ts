import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json, JsonFields } from '../../../src/base/json.ts'
import { parseAction, type SequenceAct } from '../../../src/contract/action.ts'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { actsOfAction, replyAct } from '../../../src/features/learning/episodes/decided.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { actsOnPath, failureOf } from '../../../src/reflexes/sequence.ts'
import { jsonHash } from '../../../src/base/hash.ts'
import { assertProperty } from '../../support/property.ts'
import { atOnce } from '../../../src/base/steps.ts'
import { type Fires, foreseeInSteps } from '../../../src/features/learning/run/foresee.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { actions, actionsOnEach } from './run-learned.ts'
import { call, episode } from './histories.ts'

const looked = (name: string, input: JsonFields, output: Json): EpisodeAct => ({ ...(call(name, input)[0] as EpisodeAct), output })
const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const draw = (index: number, salt = 1): number => (Number.parseInt(jsonHash([index, salt]).slice(0, 8), 16) + 0.5) / 2 ** 32

type Order = { index: number; wanted: number; free: number }
const orderOf = (index: number): Order => ({
  index,
  wanted: 1 + Math.floor(draw(index) * 40),
  free: Math.floor(draw(index + 1, 7) * 60),
})
/** The model looks the stock up, and reserves what is there. */
function ordered({ index, wanted, free }: Order): Episode {
  const sku = `k${index % 300}`
  return episode(index, { type: 'order', sku, wanted }, [
    looked('stock_of', { sku }, { sku, free }),
    ...call(free >= wanted ? 'reserve' : 'backorder', { sku, units: wanted }),
  ])
}
const orders = Array.from({ length: 400 }, (_, index) => ordered(orderOf(index)))

type Looking = { event?: JsonFields; output: Json; acts: EpisodeAct[] }
const lookups = (count: number, one: (index: number) => Looking): Episode[] =>
  Array.from({ length: count }, (_, index) => {
    const { event = {}, output, acts } = one(index)
    const id = `x${index % 90}`
    return episode(index, { type: 'asked', id_of: id, ...event }, [looked('look', { id }, output), ...acts])
  })
const HEARD = { meta: { heard: true } }
const asked = episode(9000, { type: 'asked', id_of: 'x7' }, [])
const phrase = (index: number): EpisodeAct[] => [
  replyAct(['Done.', 'All set!', 'I took care of it.'][Math.floor(draw(index, 3) * 3)] ?? ''),
]
type Heard = { said: EpisodeAct[]; event?: JsonFields; output?: JsonFields }
/** An order that somebody hears, with more in the event or in the output of the look-up. */
function heardOrder(one: Episode, { said, event: more = {}, output = {} }: Heard): Episode {
  const event = { ...one.saw.event, ...more, meta: { ...one.saw.event.meta, heard: true as const } }
  const [first, ...later] = one.acts
  const look = first && { ...first, output: { ...(first.output as JsonFields), ...output } }
  return { ...one, acts: [...(look ? [look] : []), ...later, ...said], saw: { ...one.saw, event, recent_events: [event] } }
}

/** The tools that a learned action calls after its look-up returned this; null: it leaves it. */
async function after(episodes: Episode[], output: Json, event = asked): Promise<string[] | null> {
  const [action, ...others] = await actions(episodes, event)
  expect(others).toEqual([])
  if (action === undefined) return null
  const parsed = parseAction(action)
  if (!parsed.ok || parsed.action.action_type !== 'sequence') throw new Error(`no sequence: ${JSON.stringify(parsed)}`)
  const acts = actsOnPath(parsed.action, [output])
  return acts && acts.slice(1).map((act: SequenceAct) => (act.action_type === 'call_tool' ? act.tool : act.action_type))
}

describe('a decision that depends on what its first call returned', () => {
  test('is learned with words of which any will do in each branch, where a model that is heard chooses them', async () => {
    const episodes = orders.map((one, index) => heardOrder(one, { said: phrase(index) }))
    const [action] = await actions(episodes, episode(9000, { type: 'order', sku: 'k9', wanted: 12, ...HEARD }, []))
    const spoken = (tool: string) =>
      expect.objectContaining({ acts: [expect.objectContaining({ tool }), { action_type: 'reply', content: expect.any(String) }] })
    expect(action).toMatchObject({ any_words: true, branches: expect.arrayContaining([spoken('reserve'), spoken('backorder')]) })
  })

  test.each(['the event', 'the output'])('is learned with words and silence, in each branch, which %s tells', async (teller) => {
    const isQuiet = (index: number) => draw(index, 11) < 0.3
    const episodes = orders.map((one, index) => {
      const via = isQuiet(index) ? 'bulk' : 'chat'
      return heardOrder(one, {
        said: isQuiet(index) ? [] : phrase(index),
        ...(teller === 'the event' ? { event: { via } } : { output: { via } }),
      })
    })
    for (const [via, types] of [
      ['chat', ['reply']],
      ['bulk', []],
    ] as const) {
      const fields = { type: 'order', sku: 'k9', wanted: 12, ...HEARD, ...(teller === 'the event' && { via }) }
      const path = await after(episodes, { sku: 'k9', free: 30, ...(teller === 'the output' && { via }) }, episode(9000, fields, []))
      expect(path).toEqual(['reserve', ...types])
    }
  })

  test('is learned with a branch for each way to continue', async () => {
    const action = (await actions(orders, episode(9000, { type: 'order', sku: 'k9', wanted: 12 }, [])))[0] as { acts: unknown }
    expect(action).toMatchObject({
      action_type: 'sequence',
      acts: [{ action_type: 'call_tool', tool: 'stock_of', args: { sku: 'k9' } }],
      branches: expect.arrayContaining([
        expect.objectContaining({ acts: [{ action_type: 'call_tool', tool: 'reserve', args: { sku: 'k9', units: 12 } }] }),
        expect.objectContaining({ acts: [{ action_type: 'call_tool', tool: 'backorder', args: { sku: 'k9', units: 12 } }] }),
      ]),
    })
  })

  test.each<[number, number, string[] | null]>([
    [12, 30, ['reserve']],
    [12, 12, ['reserve']],
    [12, 11, ['backorder']],
    [12, 5, ['backorder']],
    [12, 900, null],
    [12, -5, null],
  ])('compares a number of the event with one of the output: %i wanted, %i free', async (wanted, free, tools) => {
    const event = episode(9000, { type: 'order', sku: 'k9', wanted }, [])
    expect(await after(orders, { sku: 'k9', free }, event)).toEqual(tools)
  })

  test('has the name of its acts with all branches, and needs the rights of all', () => {
    const { reflexes } = learnReflexes(orders)
    expect(reflexes).toMatchObject([{ names: ['stock_of + backorder or reserve'], branches: true, by: 'rules' }])
    expect(reflexes[0]?.acts.map(({ name }) => name).sort()).toEqual(['backorder', 'reserve', 'stock_of'])
    expect(reflexes[0]?.title).toMatch(/^Stock of the sku, then by what was returned /)
  })

  test('by a value, keeps to the values that it was taught', async () => {
    const plans = ['free', 'pro', 'max']
    const episodes = lookups(300, (index) => {
      const plan = plans[Math.floor(draw(index) * 3)] ?? ''
      return { output: { plan, ok: true }, acts: plan === 'free' ? call('mail', {}) : plan === 'pro' ? call('ticket', {}) : [] }
    })
    expect(await after(episodes, { plan: 'free', ok: true })).toEqual(['mail'])
    expect(await after(episodes, { plan: 'pro', ok: true })).toEqual(['ticket'])
    expect(await after(episodes, { plan: 'max', ok: true })).toEqual([])
    expect(await after(episodes, { plan: 'new', ok: true })).toBeNull()
    expect(await after(episodes, { plan: 'free', ok: false })).toBeNull()
    expect(await after(episodes, { error: 'down' })).toBeNull()
    expect(await after(episodes, null)).toBeNull()
  })

  test('has no more branches than an action may have', async () => {
    const many = lookups(1200, (index) => {
      const kind = Math.floor(draw(index) * 12)
      return { output: { kind: `k${kind}` }, acts: call(`tool_${kind}`, {}) }
    })
    const parsed = parseAction((await actions(many, asked))[0])
    const found = parsed.ok && parsed.action.action_type === 'sequence' ? parsed.action.branches : null
    expect(found?.length).toBeGreaterThan(5)
  })

  test('asks for a value of few by its name alone', async () => {
    const episodes = lookups(300, (index) =>
      draw(index) < 0.5 ? { output: { state: 'past_due' }, acts: call('remind', {}) } : { output: { state: 'active' }, acts: [] },
    )
    expect((await actions(episodes, asked))[0]).toMatchObject({
      branches: expect.arrayContaining([
        {
          when: [
            { output: 0, path: '/state', one_of: ['active'] },
            { output: 0, path: '', only: ['state'] },
          ],
          acts: [],
        },
      ]),
    })
  })

  test('by a list that has items or none', async () => {
    const episodes = lookups(300, (index) => {
      const hits = Array.from({ length: draw(index) < 0.5 ? 0 : 1 + (index % 3) }, (_, at) => ({ id: index * 10 + at }))
      return { output: { hits }, acts: hits.length === 0 ? call('open', {}) : call('comment', { id: hits[0]?.id ?? 0 }) }
    })
    expect(await after(episodes, { hits: [] })).toEqual(['open'])
    expect(await after(episodes, { hits: [{ id: 5 }] })).toEqual(['comment'])
    expect(await after(episodes, {})).toBeNull()
  })

  test('asks for no words, and at no place, that are too long for an action', async () => {
    const [long, name] = ['q'.repeat(300), 'n'.repeat(600)]
    const episodes = lookups(300, (index) => {
      const [is_up, odd] = [draw(index) < 0.5, { [name]: true, [`${name}2`]: index }]
      return {
        output: { text: `${long}${is_up ? '' : 'x'} ${is_up ? 'up' : 'down'} ${index}`, ...odd },
        acts: call(is_up ? 'pass' : 'restart', {}),
      }
    })
    expect(await after(episodes, { text: `${long} up 5`, [name]: true, [`${name}2`]: 5 })).toEqual(['pass'])
  })

  test.each([
    ['by itself', (output: JsonFields): Json => output],
    ['as the text of a tool of MCP', (output: JsonFields): Json => ({ content: [{ type: 'text', text: JSON.stringify(output) }] })],
  ])('leaves an output with a field that none had: %s', async (_, returned) => {
    const episodes = lookups(300, (index) => {
      const [score, flag] = [Math.floor(draw(index) * 100), draw(index, 2) < 0.2 && { flag: { at: index } }]
      return { output: returned({ score, ...flag }), acts: call(score >= 50 ? 'pass' : 'ask', {}) }
    })
    expect(await after(episodes, returned({ score: 60 }))).toEqual(['pass'])
    expect(await after(episodes, returned({ score: 60, flag: { at: 7 } }))).toEqual(['pass'])
    expect(await after(episodes, returned({ score: 60, warning: 'claimed' }))).toBeNull()
    expect(await after(episodes, returned({ score: 60, flag: { at: 7, by: 'law' } }))).toBeNull()
  })

  test('by a number that is named length', async () => {
    const episodes = lookups(300, (index) => {
      const length = Math.floor(draw(index) * 100)
      return { output: { film: { length } }, acts: call(length >= 50 ? 'long' : 'short', {}) }
    })
    expect(await after(episodes, { film: { length: 80 } })).toEqual(['long'])
    expect(await after(episodes, { film: { length: 20 } })).toEqual(['short'])
    expect(await after(episodes, { film: { length: 9000 } })).toBeNull()
    expect(await after(episodes, { film: [1, 2] })).toBeNull()
  })

  test('asks at names of any characters', async () => {
    const name = String.raw`a/b~c\u002fd'"` + '\n*/'
    const episodes = lookups(300, (index) => {
      const is_open = draw(index) < 0.5
      return { output: { [name]: is_open ? 'open' : 'shut' }, acts: call(is_open ? 'close' : 'open', {}) }
    })
    expect(await after(episodes, { [name]: 'open' })).toEqual(['close'])
    expect(await after(episodes, { [name]: 'shut' })).toEqual(['open'])
  })

  test('by the words of a text', async () => {
    const episodes = lookups(300, (index) =>
      draw(index) < 0.5
        ? { output: `Host web-${index} answered in ${index % 90} ms`, acts: [] }
        : { output: `Host web-${index} timed out`, acts: call('restart', {}) },
    )
    expect(await after(episodes, 'Host web-7 answered in 8 ms')).toEqual([])
    expect(await after(episodes, 'HOST db-1 TIMED OUT!')).toEqual(['restart'])
    expect(await after(episodes, 'connection refused')).toBeNull()
  })

  test('by a field that is there or not', async () => {
    const episodes = lookups(300, (index) =>
      draw(index) < 0.5 ? { output: { customer: { id: index } }, acts: call('greet', {}) } : { output: {}, acts: call('create', {}) },
    )
    expect(await after(episodes, { customer: { id: 5 } })).toEqual(['greet'])
    expect(await after(episodes, {})).toEqual(['create'])
  })

  test('takes no number that is missing for a low one', async () => {
    const episodes = lookups(400, (index) => {
      const free = Math.floor(draw(index) * 100)
      if (draw(index, 9) < 0.2) return { output: { sku: 'k' }, acts: call('ask', {}) }
      return { output: { sku: 'k', free }, acts: call(free >= 50 ? 'sell' : 'order', {}) }
    })
    expect(await after(episodes, { sku: 'k', free: 80 })).toEqual(['sell'])
    expect(await after(episodes, { sku: 'k', free: 20 })).toEqual(['order'])
    expect(await after(episodes, { sku: 'k' })).toEqual(['ask'])
    expect(await after(episodes, { sku: 'k', free: null })).toBeNull()
  })

  test('by the event and the output together', async () => {
    const episodes = lookups(600, (index) => {
      const [amount, score] = [Math.floor(draw(index) * 1000), Math.floor(draw(index, 3) * 100) / 100]
      return { event: { amount }, output: { score }, acts: score >= 0.5 && amount >= 500 ? call('review', {}) : call('pass', {}) }
    })
    const of = (amount: number) => episode(9000, { type: 'asked', id_of: 'x7', amount }, [])
    expect(await after(episodes, { score: 0.8 }, of(800))).toEqual(['review'])
    expect(await after(episodes, { score: 0.2 }, of(800))).toEqual(['pass'])
    expect(await after(episodes, { score: 0.8 }, of(100))).toEqual(['pass'])
  })

  test('passes on what was returned to the calls of its branch', async () => {
    const episodes = lookups(300, (index) => {
      const [customer, is_new] = [`c${index}`, draw(index) < 0.5]
      return { output: { customer, is_new }, acts: call(is_new ? 'welcome' : 'renew', { customer }) }
    })
    const parsed = parseAction((await actions(episodes, asked))[0])
    const done = parsed.ok ? actsOfAction(parsed.action, [{ customer: 'c77', is_new: true }]) : []
    expect(done).toMatchObject([{ name: 'look' }, { name: 'welcome', input: { customer: 'c77' } }])
  })

  test('reads what tools of MCP return as text, and the first items of lists', async () => {
    const mcp = (value: Json): Json => ({ content: [{ type: 'text', text: JSON.stringify(value) }], isError: false })
    const episodes = lookups(300, (index) => {
      const hits = [0, 1].map((at) => ({ id: `d${index}${at}`, score: Math.floor(draw(index, at + 2) * 100) }))
      const [best] = hits
      return { output: mcp({ hits }), acts: (best?.score ?? 0) >= 60 ? call('answer', { from: best?.id ?? '' }) : call('ask', {}) }
    })
    const hits = (...scores: number[]) => mcp({ hits: scores.map((score, at) => ({ id: `x${at}`, score })) })
    expect(await after(episodes, hits(80, 10))).toEqual(['answer'])
    expect(await after(episodes, hits(30, 90))).toEqual(['ask'])
    expect(await after(episodes, { content: [{ type: 'text', text: 'It is down.' }], isError: true })).toBeNull()
    const parsed = parseAction((await actions(episodes, asked))[0])
    const done = parsed.ok ? actsOfAction(parsed.action, [hits(80, 10)]) : []
    expect(done.at(-1)).toMatchObject({ name: 'answer', input: { from: 'x0' } })
  })

  test('says other words by what was returned', async () => {
    const words = {
      shipped: (id: string, days: number) => `Order ${id} comes in ${days} days.`,
      packed: (id: string) => `Order ${id} leaves us any minute.`,
      lost: () => 'Sorry, we are looking for it.',
    }
    const states = ['shipped', 'packed', 'lost'] as const
    const episodes = lookups(400, (index) => {
      const state = states[Math.floor(draw(index) * 3)] ?? 'lost'
      const days = 1 + (index % 9)
      return { event: HEARD, output: { state, days }, acts: [replyAct(words[state](`x${index % 90}`, days))] }
    })
    const event = episode(9000, { type: 'asked', id_of: 'x7', ...HEARD }, [])
    const parsed = parseAction((await actions(episodes, event))[0])
    const said = (output: Json) => parsed.ok && actsOfAction(parsed.action, [output]).at(-1)?.input
    expect(said({ state: 'shipped', days: 4 })).toEqual({ content: 'Order x7 comes in 4 days.' })
    expect(said({ state: 'packed', days: 4 })).toEqual({ content: 'Order x7 leaves us any minute.' })
    expect(said({ state: 'lost', days: 4 })).toEqual({ content: 'Sorry, we are looking for it.' })
  })

  test('is not learned where what was returned says nothing, is masked, or is not known', () => {
    const by = (output: (index: number, side: string) => Json | undefined) =>
      learnReflexes(
        Array.from({ length: 300 }, (_, index) => {
          const side = draw(index) < 0.5 ? 'left' : 'right'
          const first = { ...looked('look', { id: `x${index % 90}` }, null), output: output(index, side) }
          return episode(index, { type: 'asked', id_of: `x${index % 90}` }, [first, ...call(side, {})])
        }),
      ).reflexes
    expect(by((index) => ({ n: Math.floor(draw(index, 11) * 100) }))).toEqual([])
    expect(by((_, side) => ({ side: `[masked ${side}]` as Json }))).not.toEqual([])
    expect(by(() => ({ side: '[redacted]' }))).toEqual([])
    expect(by(() => undefined)).toEqual([])
  })

  test.each<[string, (index: number) => string, string]>([
    ['as a whole', (index) => `t${jsonHash(index).slice(0, 9)}`, '[redacted]'],
    ['in a part', (index) => `leak ${jsonHash(index).slice(0, 9)}`, 'leak [secret]'],
  ])('does not tell secrets from other values by the masks of the log: %s', async (_, plain, masked) => {
    const episodes = lookups(300, (index) =>
      draw(index) < 0.5
        ? { output: { note: masked }, acts: call('alert', {}) }
        : { output: { note: plain(index) }, acts: call('pass', {}) },
    )
    expect(learnReflexes(episodes).reflexes).toEqual([])
  })

  test('is learned from what stands beside masks', async () => {
    const episodes = lookups(300, (index) => {
      const is_open = draw(index) < 0.5
      const output = {
        state: is_open ? 'open' : 'shut',
        ...(draw(index, 3) < 0.5 && { token: '[redacted]' }),
        users: [{ key: '[secret: stripe]' }],
      }
      return { output, acts: call(is_open ? 'close' : 'open', {}) }
    })
    expect(await after(episodes, { state: 'open', token: 'a', users: [{ key: 'b' }] })).toEqual(['close'])
    expect(await after(episodes, { state: 'shut', users: [] })).toEqual(['open'])
  })

  test('is foreseen by what the calls of each later decision returned', () => {
    const fires: Fires = ({ key, code }, saw) => runReflex(sandbox, { hash: key, code }, { ...sampleContext, ...saw }).action
    const foreseen = (episodes: Episode[]) =>
      atOnce(foreseeInSteps(episodes, { agreement: 0.95 }, { fires, lessons: new Map() })).map(({ agreed }) => agreed)
    const agreed = foreseen(orders)
    expect(agreed.length).toBeGreaterThan(150)
    expect(new Set(agreed)).toEqual(new Set([true]))
    // Another call than the branch of its output, and decisions whose outputs nobody knows.
    const other = ordered({ index: 390, wanted: 10, free: 2 })
    const wrong = { ...other, acts: [...other.acts.slice(0, 1), ...call('reserve', { sku: 'k90', units: 10 })] }
    expect(foreseen([...orders.slice(0, 390), wrong]).at(-1)).toBe(false)
    const unknown = orders.map((one, index) => (index < 200 ? one : { ...one, acts: one.acts.map(({ output: _output, ...act }) => act) }))
    expect(foreseen(unknown)).toEqual([])
    // A branch is for values that are not masked.
    const looking = { action_type: 'call_tool', tool: 'stock_of', args: { sku: 'k1' } } as const
    const when = [{ output: 0, path: '/note', none_of: ['gone'] }]
    const fixed: Fires = () => ({ action_type: 'sequence', acts: [looking], branches: [{ when, acts: [] }] })
    const noted = (note: string) =>
      orders.map((one) => ({ ...one, acts: [looked('stock_of', { sku: 'k1' }, { note }), ...one.acts.slice(1)] }))
    const by = (note: string) =>
      atOnce(foreseeInSteps([...orders, ...noted(note)], { agreement: 0.95 }, { fires: fixed, lessons: new Map() }))
    expect(by('here').some(({ agreed }) => !agreed)).toBe(true)
    expect(by('it is [secret]').filter(({ index }) => index >= orders.length)).toEqual([])
  })

  test('is taught by no single stranger', () => {
    const episodes = orders.map((one) => ({ ...one, source: 'one' }))
    expect(learnReflexes(episodes).reflexes).toEqual([])
    expect(learnReflexes(episodes, { trusted: new Set(['one']) }).reflexes).toHaveLength(1)
  })

  test('where it was decided otherwise now and then, is worth asking about', () => {
    const wrong = new Set([33, 120, 290, 355])
    const episodes = orders.map((one, index) => {
      const { wanted, free } = orderOf(index)
      return wrong.has(index) ? ordered({ index, wanted, free: free >= wanted ? -1 : 99 }) : one
    })
    const noisy = episodes.map((one, index) => ({
      ...one,
      acts: [...(orders[index]?.acts.slice(0, 1) ?? []), ...one.acts.slice(1)],
    }))
    const { disputed } = learnReflexes(noisy)
    for (const index of wrong) expect(disputed).toContain(`e${index}`)
  })

  test('continues as was decided, or not at all', () =>
    assertProperty(
      'learning/branches: as decided',
      fc.asyncProperty(
        fc.record({ cut: fc.integer({ min: -20, max: 80 }), of: fc.constantFrom('value', 'number', 'difference'), seed: fc.nat(999) }),
        async ({ cut, of, seed }) => {
          const episodes = lookups(240, (index) => {
            const [own, other] = [Math.floor(draw(index + seed) * 100), Math.floor(draw(index + seed, 5) * 100)]
            const holds = of === 'value' ? own % 3 === 0 : of === 'number' ? other >= cut : other - own >= cut
            const output = of === 'value' ? { state: own % 3 === 0 ? 'open' : 'shut', n: other } : { n: other }
            return { event: { own }, output, acts: call(holds ? 'yes' : 'no', {}) }
          })
          const found = await actionsOnEach(episodes, episodes)
          let taken = 0
          for (const [index, { acts }] of episodes.entries())
            for (const action of found[index] ?? []) {
              const parsed = parseAction(action)
              if (!parsed.ok || parsed.action.action_type !== 'sequence') throw new Error('it is a sequence')
              const path = actsOnPath(parsed.action, [acts[0]?.output as Json])
              if (path === null) continue
              taken += 1
              expect(path.map((act) => 'tool' in act && act.tool)).toEqual(acts.map(({ name }) => name))
            }
          expect(taken).toBeGreaterThan(found.some((all) => all.length > 0) ? episodes.length * 0.7 : -1)
        },
      ),
      { numRuns: 12 },
    ))
})

describe('a look-up that fails', () => {
  const NOT_FOUND = failureOf('look: 404 Not Found {"error":"none"}')
  const isGone = (index: number) => draw(index, 11) < 0.3
  const failing = (how: (index: number) => Json = () => NOT_FOUND) =>
    lookups(400, (index) => ({
      output: isGone(index) ? how(index) : { state: draw(index) < 0.5 ? 'open' : 'held', n: index % 50 },
      acts: call(isGone(index) ? 'create' : draw(index) < 0.5 ? 'go' : 'stop', {}),
    }))

  test('decides what follows, where decisions show it', async () => {
    const episodes = failing()
    expect(await after(episodes, NOT_FOUND)).toEqual(['create'])
    expect(await after(episodes, { state: 'open', n: 7 })).toEqual(['go'])
    expect(await after(episodes, { state: 'held', n: 7 })).toEqual(['stop'])
  })

  test('is left to the slow path where it fails as it never did, or returns what a failure had', async () => {
    const episodes = failing()
    expect(await after(episodes, failureOf('look: 503 Service Unavailable'))).toBeNull()
    expect(await after(episodes, failureOf('look took longer than 15000 ms'))).toBeNull()
    expect(await after(episodes, {})).toBeNull()
  })

  test('decides by how it failed', async () => {
    const down = failureOf('look: 503 Service Unavailable')
    const episodes = failing((index) => (draw(index, 13) < 0.5 ? NOT_FOUND : down)).map((one, index) =>
      isGone(index) && draw(index, 13) >= 0.5 ? { ...one, acts: [...one.acts.slice(0, 1), ...call('page', {})] } : one,
    )
    expect(await after(episodes, NOT_FOUND)).toEqual(['create'])
    expect(await after(episodes, down)).toEqual(['page'])
  })

  test('is not known where the log has no output of it', async () => {
    const episodes = failing().map((one, index) => {
      const [{ output: _output, ...first }, ...more] = one.acts as [EpisodeAct, ...EpisodeAct[]]
      return isGone(index) ? { ...one, acts: [first, ...more] } : one
    })
    expect(await after(episodes, NOT_FOUND)).toBeNull()
  })
})
