import { describe, expect, test, vi } from 'vitest'
import type { Action, Permission } from '../../../src/contract/action.ts'
import type { ReflexReference, ReflexVersion } from '../../../src/contract/reflex.ts'
import { DecisionContext, typeFilter } from '../../../src/core/decision-context.ts'
import type { Event } from '../../../src/core/event.ts'
import { ContextJson } from '../../../src/reflexes/context/context-json.ts'
import {
  decide,
  FUEL_PER_RUN,
  historyOf,
  isMarketEvent,
  type ChainLink,
  type Perceived,
  type ReflexSituation,
} from '../../../src/reflexes/decide.ts'
import { ReflexHistory } from '../../../src/reflexes/history.ts'
import { emptyTrial } from '../../../src/reflexes/promotion.ts'
import { sampleContext, type ReflexContext } from '../../../src/reflexes/reflex-context.ts'
import type { SandboxRun } from '../../../src/reflexes/sandbox.ts'
import { event, part } from '../agents/agent-fixtures.ts'

const NOW = Date.parse('2026-11-21T05:00:00.000Z')
const FUEL = 1_000_000
const reply = (more: Partial<Action> = {}) => ({ action_type: 'reply', content: 'hello', ...more }) as Action

type Code = (context: ReflexContext) => Partial<SandboxRun> | Action | null
type Written = Partial<ReflexVersion> & { id: string }
const version = (written: Written): ReflexVersion =>
  part<ReflexVersion>({
    version: 1,
    hash: `hash of ${written.id}@${written.version ?? 1}`,
    code: written.id,
    state: 'active',
    sealed: false,
    ...written,
  })
const link = (id: string, more: Partial<ChainLink> & { reference?: ReflexReference } = {}): ChainLink => ({
  reference: { id },
  acting: version({ id }),
  watching: [],
  absent: null,
  ...more,
})
let seq = 0
const sent = (type = 'note', fields: Record<string, unknown> = {}): Perceived =>
  part<Perceived>({ seq: (seq += 1), event: event({ id: `e${seq}`, type, ...fields }), attempts: 0, text: '' })

/** A situation whose reflexes are functions by their ids. A run costs 100 units of fuel. */
function scene(codes: Record<string, Code> = {}, changes: Partial<ReflexSituation> = {}) {
  const seen: { id: string; context: ReflexContext }[] = []
  const sandbox: ReturnType<ReflexSituation['sandbox']> = {
    run: ({ code: id }, shown) => {
      const context = JSON.parse((shown as ContextJson).text) as ReflexContext
      seen.push({ id, context })
      const made = codes[id]?.(context) ?? null
      const ended = { value: null, reason: 'null' as const, error: null, fuel: 100, duration_us: 7 }
      if (made === null) return ended
      return 'action_type' in made ? { ...ended, value: made, reason: 'fired' } : { ...ended, ...made }
    },
    dispose: () => {},
  }
  const situation: ReflexSituation = {
    now: NOW,
    perceives: true,
    agent: 'test',
    filters: [],
    reaches: () => false,
    context: () => new DecisionContext({ scope: 'test/1' }),
    chain: Object.keys(codes).map((id) => link(id)),
    sandbox: () => sandbox,
    show: (one, context) => {
      const { events, scratch } = context
      return (recent_actions) => {
        const shown: ReflexContext = {
          ...sampleContext,
          event: one.event,
          recent_events: [...events],
          scratch: { ...scratch },
          recent_actions,
        }
        return { context: shown, json: ContextJson.of(shown), hash: 'shown', fits: true }
      }
    },
    history: () => new ReflexHistory(),
    trial: () => emptyTrial('active'),
    mayAct: () => null,
    permit: () => ({ ok: true, lane: false }),
    carriedOut: () => false,
    fuel: FUEL,
    ...changes,
  }
  const decideOn = (...events: Perceived[]) => {
    const decided = decide(events, situation)
    return { ...decided, first: decided.decisions[0]! }
  }
  return { decideOn, seen, ran: () => seen.map(({ id }) => id) }
}

const idsIn = ({ context }: { context: ReflexContext }) => context.recent_events.map(({ id }) => id)

describe('an event', () => {
  test('joins the context where no reflex is in the chain, which shows it to nobody', () => {
    const show = vi.fn<ReflexSituation['show']>()
    const one = sent()
    const { first, fuel } = scene({}, { show }).decideOn(one)
    expect(first).toEqual({ one, perceived: 'joined', failure: null, steps: [], acted: null, consumed: false })
    expect([fuel, show.mock.calls]).toEqual([FUEL, []])
  })

  test('is left to the process outside that claims it', () => {
    const { decideOn, ran } = scene({ a: () => reply() }, { perceives: false })
    const { first } = decideOn(sent())
    expect([first.perceived, first.steps, ran()]).toEqual(['unperceived', [], []])
  })

  test('that no filter passes is ignored, and no later one is seen with it', () => {
    const { decideOn, seen } = scene({ a: () => null }, { filters: [typeFilter('note')] })
    const [other, note, next] = [sent('other'), sent(), sent()]
    const { decisions } = decideOn(other, note, next)
    expect(decisions.map(({ perceived, steps }) => [perceived, steps.length])).toEqual([
      ['ignored', 0],
      ['joined', 1],
      ['joined', 1],
    ])
    expect(seen.map(idsIn)).toEqual([[note.event.id], [note.event.id, next.event.id]])
  })

  test('at which a filter fails says so, and the events after it are decided', () => {
    const filter = ({ type }: Event) => {
      if (type === 'bad') throw new Error('no such field')
      return true
    }
    const { decideOn, ran } = scene({ a: () => null }, { filters: [filter] })
    const { decisions } = decideOn(sent('bad'), sent())
    const error = 'a filter of agent test failed: no such field'
    expect(decisions[0]).toMatchObject({
      perceived: 'failed',
      failure: { error, stack: expect.stringContaining('no such field') },
      steps: [],
    })
    expect([decisions[1]?.perceived, ran()]).toEqual(['joined', ['a']])
  })

  test('that no filter passes may reach the chain, and leaves the context unless it is handed over', () => {
    const codes: Record<string, Code> = {
      a: ({ event: { content } }) =>
        content === 'act' ? reply() : content === 'hand over' ? { action_type: 'escalate', reason: 'hard' } : null,
    }
    const { decideOn, seen } = scene(codes, { filters: [() => false], reaches: ({ type }) => type === 'market' })
    const [none, acted, handed, last] = ['nothing', 'act', 'hand over', 'nothing'].map((content) => sent('market', { content })) as [
      Perceived,
      Perceived,
      Perceived,
      Perceived,
    ]
    const { decisions } = decideOn(none, acted, handed, last)
    expect(decisions.map(({ perceived, consumed, acted }) => [perceived, consumed, acted?.action.action_type])).toEqual([
      ['ignored', false, undefined],
      ['joined', true, 'reply'],
      ['joined', false, 'escalate'],
      ['ignored', false, undefined],
    ])
    expect(seen.map(idsIn)).toEqual([[none.event.id], [acted.event.id], [handed.event.id], [handed.event.id, last.event.id]])
  })

  test('that asks for a decision runs the chain, though filters and the process outside do not see it', () => {
    const filter = vi.fn<() => boolean>()
    const { decideOn, seen } = scene({ a: () => null }, { perceives: false, filters: [filter] })
    const [asked, next] = [sent('decision.asked'), sent('decision.asked')]
    const { decisions } = decideOn(asked, next)
    expect(decisions.map(({ perceived, steps }) => [perceived, steps.length])).toEqual([
      ['asked', 1],
      ['asked', 1],
    ])
    expect([filter.mock.calls, seen.map(idsIn)]).toEqual([[], [[asked.event.id], [next.event.id]]])
  })
})

test('an event of the market is one that the Ledger sent, and no key', () => {
  const offer = event({ id: 'e', type: 'offer', source: 'ledger' })
  const others = [
    { ...offer, type: 'note' },
    { ...offer, source: 'http' },
    { ...offer, meta: { ...offer.meta, sender: 'key:ann' } },
  ]
  expect([offer, ...others].map(isMarketEvent)).toEqual([true, false, false, false])
})

describe('the chain', () => {
  test('acts once, by the first that fires, and has the others watch all the same', () => {
    const codes: Record<string, Code> = { a: () => null, b: () => reply(), c: () => reply(), d: () => reply() }
    const watcher = (id: string) => version({ id, version: 2, state: 'shadow' })
    const chain = [
      link('a', { watching: [watcher('a')] }),
      link('b'),
      link('c', { watching: [watcher('c')] }),
      link('d', { watching: [watcher('d')] }),
    ]
    const { first } = scene(codes, { chain }).decideOn(sent())
    expect(first.steps.map(({ id, version, state, fire }) => [id, version, state, fire !== null])).toEqual([
      ['a', 2, 'shadow', false],
      ['a', 1, 'active', false],
      ['b', 1, 'active', true],
      ['c', 2, 'shadow', true],
      ['d', 2, 'shadow', true],
    ])
    expect(first.acted).toBe(first.steps[2]?.fire)
    expect(first).toMatchObject({ perceived: 'joined', consumed: false, acted: { action: { content: 'hello' }, reused: false } })
  })

  test('does not act where only a version in shadow fires', () => {
    const chain = [link('a', { acting: null, watching: [version({ id: 'a', state: 'shadow' })] })]
    const { first } = scene({ a: () => reply() }, { chain }).decideOn(sent())
    expect(first.acted).toBeNull()
    expect(first.steps[1]).toEqual({
      id: 'a',
      version: null,
      hash: null,
      state: null,
      ran: null,
      shown: null,
      fire: null,
      passed: { reason: 'missing', error: 'its newest version is in shadow mode' },
      pace: null,
      unproven: null,
    })
  })

  test('passes over a link that is absent, and says which version', () => {
    const absent = { reason: 'suspended', detail: 'it failed too often' } as const
    const chain = [
      link('a', { absent }),
      link('b', { absent: { reason: 'missing', detail: 'gone' }, acting: null, reference: { id: 'b', version: 3 } }),
    ]
    const { first } = scene({ a: () => reply(), b: () => reply() }, { chain }).decideOn(sent())
    expect(first.steps).toMatchObject([
      { id: 'a', version: 1, hash: 'hash of a@1', state: null, passed: { reason: 'suspended', error: 'it failed too often' } },
      { id: 'b', version: 3, hash: null, state: null, passed: { reason: 'missing', error: 'gone' } },
    ])
  })

  test('does not show a call to the reflex that is called', () => {
    const { decideOn, ran } = scene({ a: () => null, b: () => null })
    decideOn(sent('invocation', { service: 'reflex:a' }))
    expect(ran()).toEqual(['b'])
    decideOn(sent('note', { service: 'reflex:a' }))
    expect(ran()).toEqual(['b', 'a', 'b'])
  })

  test('gives each run its own past actions, those of the batch included, and the scratch as they left it', () => {
    const codes: Record<string, Code> = {
      a: ({ recent_actions }) => ({ action_type: 'set_scratch', key: 'n', value: recent_actions.length }),
      s: () => reply(),
    }
    const chain = [link('a', { watching: [version({ id: 's', state: 'shadow', version: 4 })] })]
    const { decideOn, seen } = scene(codes, { chain, context: () => new DecisionContext({ scope: 'test/1', scratch: { kept: true } }) })
    const [one, two] = [sent(), sent()]
    decideOn(one, two)
    const shown = seen.map(({ id, context }) => [id, context.recent_actions.map(({ event_id }) => event_id), context.scratch])
    expect(shown).toEqual([
      ['s', [], { kept: true }],
      ['a', [], { kept: true }],
      ['s', [one.event.id], { kept: true, n: 0 }],
      ['a', [one.event.id], { kept: true, n: 0 }],
    ])
    expect([historyOf(version({ id: 's', version: 4 }), 'shadow'), historyOf(version({ id: 's', version: 4 }), 'active')]).toEqual([
      's@4',
      's',
    ])
  })

  test('holds a reflex back for its cooldown and its rate, and tells its pace', () => {
    const chain = [link('a', { reference: { id: 'a', cooldown_s: 1 } }), link('b', { reference: { id: 'b', rate: 1 } }), link('c')]
    const { decisions } = scene({ a: () => reply(), b: () => reply(), c: () => null }, { chain }).decideOn(sent(), sent(), sent())
    const steps = decisions.map((one) => one.steps.map(({ id, passed, pace }) => [id, passed?.reason ?? 'fired', pace]))
    const minute = NOW / 60_000
    const [fresh, once] = [
      { last_at: null, minute: 0, fired: 0 },
      { last_at: NOW, minute, fired: 1 },
    ]
    expect(steps).toEqual([
      [['a', 'fired', fresh]],
      [
        ['a', 'cooldown', once],
        ['b', 'fired', fresh],
      ],
      [
        ['a', 'cooldown', once],
        ['b', 'rate', once],
        ['c', 'null', null],
      ],
    ])
  })
})

describe('a version whose proof is lacking', () => {
  const unproven: ReflexSituation['mayAct'] = ({ version }) => (version === 2 ? 'it is not proved' : null)

  test('runs in shadow, and the link says that it may not act', () => {
    const chain = [link('a', { acting: version({ id: 'a', version: 2 }) }), link('b')]
    const { first } = scene({ a: () => reply(), b: () => reply() }, { chain, mayAct: unproven }).decideOn(sent())
    expect(first.steps.map(({ id, version, state, passed }) => [id, version, state, passed])).toEqual([
      ['a', 2, 'shadow', null],
      ['a', null, null, { reason: 'uncertified', error: 'it is not proved' }],
      ['b', 1, 'active', null],
    ])
    expect(first.acted?.version.id).toBe('b')
  })

  test('leaves the act to the earlier version, once', () => {
    const chain = [link('a', { acting: version({ id: 'a', version: 2 }), earlier: version({ id: 'a', version: 1 }) })]
    const { first } = scene({ a: () => reply() }, { chain, mayAct: unproven }).decideOn(sent())
    expect(first.steps.map(({ version, state }) => [version, state])).toEqual([
      [2, 'shadow'],
      [1, 'active'],
    ])
    expect(first.acted?.version.version).toBe(1)
    const neither = scene({ a: () => reply() }, { chain, mayAct: () => 'neither' }).decideOn(sent())
    expect(neither.first.steps.map(({ version, state }) => [version, state])).toEqual([
      [2, 'shadow'],
      [1, 'shadow'],
      [null, null],
    ])
    expect(neither.first.acted).toBeNull()
  })

  test('is shown what it did in shadow, and passes over an event in shadow', () => {
    const histories: string[] = []
    const history: ReflexSituation['history'] = (who) => (histories.push(who), new ReflexHistory())
    const chain = [link('a', { acting: version({ id: 'a', version: 2 }) })]
    const { first } = scene({ a: () => null }, { chain, history, mayAct: unproven }).decideOn(sent())
    expect(first.steps).toMatchObject([
      { version: 2, state: 'shadow', passed: { reason: 'null' } },
      { version: null, passed: { reason: 'uncertified' } },
    ])
    expect(histories).toEqual(['a', 'a@2'])
  })

  test('and that only watches has nothing to prove', () => {
    const chain = [link('a', { watching: [version({ id: 'a', version: 2, state: 'shadow' })] })]
    const { first } = scene({ a: () => reply() }, { chain, mayAct: unproven }).decideOn(sent())
    expect(first.steps).toMatchObject([
      { version: 2, state: 'shadow', unproven: null, fire: { reused: false } },
      { version: 1, state: 'active', unproven: null },
    ])
  })

  test('may be proved on the event, and not for the action', () => {
    const asked: unknown[] = []
    const mayAct: ReflexSituation['mayAct'] = ({ id }, { type }, action) => {
      asked.push([id, type, action?.action_type])
      return action === null ? null : 'not this action'
    }
    const { first } = scene({ a: () => reply(), b: () => null }, { mayAct }).decideOn(sent())
    expect(first.steps).toMatchObject([
      { id: 'a', state: 'shadow', unproven: 'not this action', fire: { reused: false } },
      { id: 'a', state: null, passed: { reason: 'uncertified', error: 'not this action' } },
      { id: 'b', state: 'active', unproven: null, passed: { reason: 'null' } },
    ])
    expect([first.acted, asked]).toEqual([
      null,
      [
        ['a', 'note', undefined],
        ['a', 'note', 'reply'],
        ['b', 'note', undefined],
      ],
    ])
  })
})

describe('a run', () => {
  test('is judged by what it gave', () => {
    const codes: Record<string, Code> = {
      invalid: () => ({ reason: 'fired', value: { action_type: 'fly' } }),
      error: () => ({ reason: 'error', error: 'x is not defined' }),
      nothing: () => null,
      act: () => reply(),
    }
    const { first } = scene(codes).decideOn(sent())
    expect(first.steps.map(({ id, passed, fire, ran }) => [id, passed?.reason, passed?.error, fire?.action, ran?.refused])).toEqual([
      ['invalid', 'invalid_action', expect.stringContaining('action_type'), undefined, false],
      ['error', 'error', 'x is not defined', undefined, false],
      ['nothing', 'null', null, undefined, false],
      ['act', undefined, undefined, reply(), false],
    ])
    expect(first.steps[3]).toMatchObject({
      ran: { run: { fuel: 100, duration_us: 7 } },
      shown: { hash: 'shown' },
      fire: { permitted: { ok: true, lane: false } },
    })
  })

  test('is refused by whoever permits, with its reason, and another may act', () => {
    const asked: unknown[] = []
    const permit: ReflexSituation['permit'] = (action, { version, now, scratch }) => {
      asked.push([version.id, action.action_type, now, scratch])
      return version.id === 'a' ? { ok: false, detail: 'not here' } : { ok: true, lane: false }
    }
    const { first } = scene({ a: () => reply(), b: () => reply() }, { permit }).decideOn(sent())
    expect(first.steps).toMatchObject([
      { fire: null, ran: { refused: true }, passed: { reason: 'refused', error: 'not here' } },
      { ran: { refused: false }, passed: null },
    ])
    expect([first.acted?.version.id, asked]).toEqual([
      'b',
      [
        ['a', 'reply', NOW, {}],
        ['b', 'reply', NOW, {}],
      ],
    ])
  })

  test('that keeps writing artifacts is refused, whoever permits', () => {
    const write = { action_type: 'write_artifact', artifact_id: 'r', artifact_type: 'reflex', content: '' } as const
    const history = new ReflexHistory()
    for (let n = 0; n < 5; n += 1) history.fired({ at: NOW - 59_999, event_id: 'x', action: write })
    const { first } = scene({ a: () => write }, { history: () => history }).decideOn(sent())
    expect(first.steps).toMatchObject([{ passed: { reason: 'refused', error: 'it wrote 5 artifacts within a minute' } }])
    expect(history.record.fires).toHaveLength(5)
  })

  test('costs its fuel and a constant, until the batch has none', () => {
    const { decisions, fuel } = scene({ a: () => null, b: () => null }, { fuel: 2 * (FUEL_PER_RUN + 100) }).decideOn(sent(), sent())
    expect(decisions.map(({ steps }) => steps.map(({ ran, passed }) => [ran !== null, passed?.reason]))).toEqual([
      [
        [true, 'null'],
        [true, 'null'],
      ],
      [
        [false, 'fuel'],
        [false, 'fuel'],
      ],
    ])
    expect(fuel).toBe(0)
    expect(decisions[1]?.steps[0]?.passed?.error).toContain('used up what reflexes may compute at once')
    expect(scene({ a: () => null }, { fuel: 1 }).decideOn(sent())).toMatchObject({
      fuel: 1 - FUEL_PER_RUN - 100,
      first: { steps: [{ passed: { reason: 'null' } }] },
    })
  })

  test('of sealed code costs what is shown of it', () => {
    const chain = [link('a', { acting: version({ id: 'a', sealed: true }) })]
    expect(scene({ a: () => ({ reason: 'error', error: 'secret', fuel: 25_001 }) }, { chain }).decideOn(sent())).toMatchObject({
      fuel: FUEL - FUEL_PER_RUN - 100_000,
      first: { steps: [{ passed: { reason: 'error', error: 'it failed, and says no more: its code is hidden' } }] },
    })
  })

  test('does not happen where the context is too large to be shown', () => {
    const show: ReflexSituation['show'] = () => () => ({ context: sampleContext, json: ContextJson.of({}), hash: '', fits: false })
    const { decideOn, ran } = scene({ a: () => reply() }, { show })
    const { first, fuel } = decideOn(sent())
    expect(first.steps).toMatchObject([
      { ran: null, shown: null, passed: { reason: 'too_large', error: expect.stringContaining('larger than') } },
    ])
    expect([ran(), fuel]).toEqual([[], FUEL])
  })
})

describe('an action under a key', () => {
  const keyed = () => reply({ idempotence_key: 'once', consume: true })
  const reusedOf = (codes: Record<string, Code>, changes: Partial<ReflexSituation> = {}) =>
    scene(codes, changes)
      .decideOn(sent(), sent())
      .decisions.map(({ acted, consumed }) => [acted?.version.id, acted?.reused, consumed])
  const lane = (): Permission => part<Permission>({ ok: true, lane: true, work: {} })

  test('is carried out once in a batch, and once by each reflex', () => {
    expect(reusedOf({ a: keyed })).toEqual([
      ['a', false, true],
      ['a', true, true],
    ])
    expect(reusedOf({ a: ({ event: { id } }) => reply({ idempotence_key: id }) })).toEqual([
      ['a', false, false],
      ['a', false, false],
    ])
    expect(reusedOf({ a: () => reply() })).toEqual([
      ['a', false, false],
      ['a', false, false],
    ])
    const once = { first: true }
    const codes: Record<string, Code> = { a: () => (once.first ? ((once.first = false), keyed()) : null), b: keyed }
    expect(reusedOf(codes)).toEqual([
      ['a', false, true],
      ['b', false, true],
    ])
  })

  test('that was carried out before is not again', () => {
    const carriedOut: ReflexSituation['carriedOut'] = (id, key) => id === 'a' && key === 'once'
    expect(reusedOf({ a: keyed }, { carriedOut })[0]).toEqual(['a', true, true])
  })

  test('in the lane is looked up again there, and consumes its event once it has ended', () => {
    expect(reusedOf({ a: keyed }, { permit: lane })).toEqual([
      ['a', false, false],
      ['a', false, false],
    ])
    expect(reusedOf({ a: keyed }, { permit: lane, carriedOut: () => true })[0]).toEqual(['a', true, true])
  })

  test('in the lane uses up no key for what acts at once, nor the other way round', () => {
    const reusedWith = (...permits: Permission[]) => reusedOf({ a: keyed }, { permit: () => permits.shift() ?? lane() })
    const at_once = part<Permission>({ ok: true, lane: false })
    expect(reusedWith(lane(), at_once)).toEqual([
      ['a', false, false],
      ['a', false, true],
    ])
    expect(reusedWith(at_once, lane())).toEqual([
      ['a', false, true],
      ['a', false, false],
    ])
  })

  test('in shadow is no repetition, and makes none', () => {
    const carriedOut = () => true
    const chain = [link('a', { acting: null, watching: [version({ id: 'a', state: 'shadow' })] })]
    const { first } = scene({ a: keyed }, { chain, carriedOut }).decideOn(sent())
    expect(first.steps[0]?.fire?.reused).toBe(false)
  })
})

describe('an event that its action consumes', () => {
  test('leaves the context, unless it is handed over', () => {
    const codes: Record<string, Code> = {
      a: ({ event: { content } }) =>
        content === 'x' ? { action_type: 'escalate', reason: 'hard', consume: true } : reply({ consume: content === 'yes' }),
    }
    const { decideOn, seen } = scene(codes)
    const [handed, no, yes, last] = ['x', 'no', 'yes', 'no'].map((content) => sent('note', { content })) as [
      Perceived,
      Perceived,
      Perceived,
      Perceived,
    ]
    const { decisions } = decideOn(handed, no, yes, last)
    expect(decisions.map(({ consumed }) => consumed)).toEqual([false, false, true, false])
    expect(idsIn(seen.at(-1)!)).toEqual([handed.event.id, no.event.id, last.event.id])
  })

  test('does not write the scratch again where its action was carried out before', () => {
    const { decideOn, seen } = scene(
      { a: () => ({ action_type: 'set_scratch', key: 'n', value: 1, idempotence_key: 'k' }) },
      { carriedOut: () => true },
    )
    decideOn(sent(), sent())
    expect(seen.map(({ context }) => context.scratch)).toEqual([{}, {}])
  })
})

describe('a batch ends', () => {
  const lengths = (codes: Record<string, Code>, changes: Partial<ReflexSituation> = {}) =>
    scene(codes, changes).decideOn(sent(), sent(), sent(), sent()).decisions.length

  test('after a decision that demotes a reflex: by its runs in this batch and before', () => {
    const limit: Code = () => ({ reason: 'limit', error: 'out of fuel' })
    expect([lengths({ a: limit }), lengths({ a: limit, b: limit }), lengths({ a: () => null })]).toEqual([3, 3, 4])
    expect(lengths({ a: limit }, { trial: () => ({ ...emptyTrial('active'), limits: 2 }) })).toBe(1)
    const failed = () => ({ ...emptyTrial('active'), acted: 3, failed: 3 })
    expect(lengths({ a: () => null }, { trial: failed })).toBe(1)
    const shadow = [link('a', { acting: null, watching: [version({ id: 'a', state: 'shadow' })] })]
    expect([lengths({ a: () => null }, { trial: failed, chain: shadow }), lengths({ a: limit }, { chain: shadow })]).toEqual([4, 3])
  })

  test('after a decision that uses a licence by its fires', () => {
    const licensed = (...fires: (number | null)[]) => {
      const acting = version({
        id: 'a',
        licences: fires.map((left) => part<NonNullable<ReflexVersion['licences']>[number]>({ fires: left })),
      })
      return lengths({ a: () => reply() }, { chain: [link('a', { acting })] })
    }
    expect([licensed(), licensed(null), licensed(null, 5)]).toEqual([4, 4, 1])
  })
})
