import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import {
  contextsOf,
  fuelLeft,
  linkOf,
  OUTSIDE,
  ownTools,
  recordedHistory,
  recordedTools,
  showRecorded,
  versionOf,
} from '../../../src/features/replay/recorded-chain.ts'
import { Unrecorded } from '../../../src/features/replay/report.ts'
import { FUEL_PER_BATCH, FUEL_PER_RUN } from '../../../src/reflexes/decide.ts'
import { sampleContext, type ReflexContext } from '../../../src/reflexes/reflex-context.ts'
import { part } from '../agents/agent-fixtures.ts'

type Step = Extract<LogEntry, { kind: 'reflex-fired' | 'reflex-passed' }>
const passed = (fuel: number, reason: string | null = null) => ({ kind: 'reflex-passed', fuel, reason }) as Step
const step = (fields: object): Step =>
  part<Step>({
    kind: 'reflex-fired',
    reflex_id: 'a',
    version: 1,
    hash: 'h',
    state: 'active',
    context: null,
    context_hash: null,
    fuel: 1,
    ...fields,
  })
const passing = (reason: string, fields: object = {}): Step => step({ kind: 'reflex-passed', reason, error: null, ...fields })

const reply = { action_type: 'reply', content: 'x' } as const
const recent = (...event_ids: string[]) =>
  event_ids.map((event_id, index) => ({ at: `2026-11-21T05:00:0${index}.000Z`, seconds_ago: 9, event_id, action: reply }))
const context = (fields: Partial<ReflexContext> = {}): ReflexContext => ({ ...sampleContext, ...fields })

test('a replay has the fuel with which the recorded runs began, so that the same step is passed over', () => {
  const steps = [passed(8000), passed(0, 'missing'), passed(9000), passed(0, 'fuel')]
  expect(fuelLeft(steps)).toBe(8000 + 9000 + 2 * FUEL_PER_RUN)
  expect(fuelLeft(steps.slice(0, 3))).toBe(FUEL_PER_BATCH)
  expect(fuelLeft([step({ fuel: 5, reason: 'fuel' }), passed(7, 'null')])).toBe(FUEL_PER_BATCH)
  expect(fuelLeft([])).toBe(FUEL_PER_BATCH)
})

describe('the contexts that reflexes were shown', () => {
  const shown = context()

  test('are those in the log, by their hashes', () => {
    const steps = [step({ context: shown, context_hash: '1' }), step({ context_hash: '1' }), step({ context: shown, context_hash: '2' })]
    expect([...contextsOf(steps, context({ tick: 9 }))]).toEqual([
      ['1', shown],
      ['2', shown],
    ])
    const others = [
      step({ context: shown }),
      step({ context: 'cut', context_hash: '1' }),
      step({ context: { tick: 1 }, context_hash: '1' }),
    ]
    expect(contextsOf(others).size).toBe(0)
  })

  test('are the rebuilt one where no reflex ran', () => {
    expect([...contextsOf([], shown)]).toEqual([['', shown]])
    expect([contextsOf([]).size, contextsOf([], 'x').size]).toEqual([0, 0])
  })

  test('are shown again with the actions of each reflex', () => {
    const show = showRecorded([], new Map([['1', context({ tick: 5 })]]))
    const actions = recent('e1')
    const { context: again, json, fits } = show(actions)
    expect([again.tick, again.recent_actions, fits, JSON.parse(json.text)]).toEqual([
      5,
      actions,
      true,
      { ...context({ tick: 5 }), recent_actions: actions },
    ])
  })

  test('are missing where the log has none, unless it was too large', () => {
    expect(() => showRecorded([passing('null')], new Map())([])).toThrow(Unrecorded)
    const large = showRecorded([passing('null'), passing('too_large')], new Map())([])
    expect([large.fits, large.context]).toEqual([false, { ...sampleContext, recent_actions: [] }])
    expect(showRecorded([step({ reason: 'too_large' })], new Map([['', context()]]))([]).fits).toBe(true)
  })
})

describe('the history of a reflex', () => {
  const contexts = new Map([['1', context({ recent_actions: recent('e1', 'e2', 'e3') })]])
  const last_at = Date.parse('2026-11-21T05:00:02.000Z')

  test('has the actions that it was shown, and its pace', () => {
    const { record } = recordedHistory('a', [step({ context_hash: '1' })], contexts)
    expect(record).toEqual({
      fires: recent('e1', 'e2', 'e3').map(({ at, event_id, action }) => ({ at, event_id, action })),
      last_at,
      minute: 0,
      fired: 0,
    })
    const pace = { last_at: 5, minute: 3, fired: 2 }
    expect(recordedHistory('a', [step({ context_hash: '1', pace })], contexts).record).toMatchObject(pace)
    expect(recordedHistory('a', [step({ context_hash: '1', pace: null })], contexts).record).toMatchObject({ last_at, fired: 0 })
  })

  test('is its own: of a version in shadow by its number', () => {
    const steps = [step({ reflex_id: 'b', context_hash: '1' }), step({ version: 2, state: 'shadow', context_hash: '1' })]
    const firesOf = (who: string) => recordedHistory(who, steps, contexts).record.fires.length
    expect(['b', 'b@1', 'a@2', 'a', 'a@1'].map(firesOf)).toEqual([3, 0, 3, 0, 0])
    expect(recordedHistory('a', steps, contexts).record).toEqual({ fires: [], last_at: null, minute: 0, fired: 0 })
  })
})

describe('a link of the chain', () => {
  const given = {
    program: (hash: string | null) => ({
      id: 'a',
      version: 1,
      state: 'active',
      code: `code of ${hash}`,
      sealed: hash === 'sealed' ? true : undefined,
    }),
  }
  const from = part<Parameters<typeof linkOf>[2]>({ scope: 'team/1', given })
  const link = (...steps: Step[]) => linkOf({ id: 'a' }, steps, from)

  test('has the version that acted and those that watched', () => {
    const other = step({ reflex_id: 'b', version: 9 })
    const { acting, watching, absent } = link(
      other,
      step({ version: 3, state: 'shadow' }),
      step({ version: 2 }),
      passing('null', { version: 4, state: 'shadow' }),
    )
    expect([acting?.version, acting?.state, absent]).toEqual([2, 'active', null])
    expect(watching.map(({ version, state }) => [version, state])).toEqual([
      [3, 'shadow'],
      [4, 'shadow'],
    ])
  })

  test.each(['missing', 'suspended', 'uncertified'])('was %s as the log says', (reason) => {
    const { acting, absent } = link(passing(reason, { state: null, error: 'it was retired' }))
    expect([acting, absent]).toEqual([null, { reason, detail: 'it was retired' }])
    expect(link(passing(reason, { state: null })).absent).toEqual({ reason, detail: '' })
  })

  test('acted though it passed for another reason', () => {
    expect(link(passing('cooldown', { state: null })).acting).toMatchObject({ id: 'a', version: 1 })
  })

  test('is missing where none of it is in the log', () => {
    const detail = 'no reflex of this link ran when the event was recorded'
    expect(link(step({ state: 'shadow' }))).toMatchObject({
      acting: null,
      absent: { reason: 'missing', detail },
      watching: [{ version: 1 }],
    })
  })

  test('has its versions as far as the recording knows them', () => {
    const version = versionOf(step({ version: 2, hash: 'sealed' }), 'active', from)
    expect(version).toEqual({
      id: 'a',
      version: 2,
      hash: 'sealed',
      code: 'code of sealed',
      state: 'active',
      state_reason: null,
      by_proof: false,
      sealed: true,
      sharing: 'project',
      owner: 'scope:team/1',
      owner_id: 'scope:team/1',
      scopes: ['team/1'],
      description: '',
      provenance: { by: 'scope:team/1', scope: 'team/1', template: null, origin: null },
      created_at: 0,
    })
    expect(versionOf(step({ version: null, hash: null }), 'shadow', from)).toMatchObject({
      version: 1,
      hash: '',
      state: 'shadow',
      sealed: false,
    })
  })
})

describe('tools that a recorded reflex could call', () => {
  test('are those of other servers: permitted, unless the log says otherwise', async () => {
    const tools = recordedTools([passing('null', { error: 'x' }), step({ reason: 'refused', error: 'y' })])
    await tools.ready()
    expect([tools.available(), tools.find('mail'), tools.find('xhttp.mail')]).toEqual([{}, null, null])
    const found = tools.find('http.mail')
    expect([found, tools.find('mcp.docs.find')]).toMatchObject([{ ok: true }, { ok: true }])
    const { definition } = found as Extract<typeof found, { ok: true }>
    expect(definition.input.safeParse({ any: 'thing' }).success).toBe(true)
    await expect(definition.execute(null, null as never)).rejects.toThrow(Unrecorded)
    const refused = (error: string | null) => recordedTools([passing('refused', { error })]).find('http.mail')
    expect([refused('not listed'), refused(null)]).toEqual([
      { ok: false, detail: 'not listed' },
      { ok: false, detail: '' },
    ])
    expect(['http.a', 'mcp.a', 'httpx', 'a.http.b'].map((name) => OUTSIDE.test(name))).toEqual([true, true, false, false])
  })

  test('are those of the scope itself, by their names', () => {
    expect(Object.keys(ownTools[0])).toEqual(['write_reflex', 'update_agent_config'])
    expect(Object.keys(ownTools[1])).toContain('genesis_ledger.transfer')
  })
})
