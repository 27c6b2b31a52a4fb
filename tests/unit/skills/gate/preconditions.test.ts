import { describe, expect, test } from 'vitest'
import type { GateRequest } from '../../../../src/skills/gate/decision.ts'
import { decide } from '../../../../src/skills/gate/gate.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { gateRequest, NOW } from '../gate-request.ts'

const { inputs, blackboard } = gateRequest()
const checksOf = (changes: Partial<GateRequest>) => {
  const { needs, to_pass, stages } = decide(gateRequest(changes))
  const checks = stages.find(({ stage }) => stage === 'preconditions')?.checks ?? []
  return { needs, to_pass, check: (name: string) => checks.find(({ check }) => check === name) }
}
const changed = (fields: Record<string, unknown>): Partial<GateRequest> => ({ manifest: deployManifest(fields) })

describe('the inputs of a skill', () => {
  test('are said to fit, with their number', () => {
    expect(checksOf({}).check('slots')).toEqual({ check: 'slots', passed: true, detail: 'all of 2 inputs fit' })
  })

  test('are named where they are missing, wrong or unknown', () => {
    const long = 'x'.repeat(70)
    const { needs, to_pass, check } = checksOf({ inputs: { image_tag: 3, [long]: 1 } })
    const messages = [
      'give the input app_name (string)',
      'the input image_tag must be of type string',
      `leave out ${'x'.repeat(64)}: the inputs are app_name, image_tag`,
    ]
    expect(needs.slice(0, 3)).toEqual([
      { need: 'slot', slot: 'app_name', parsable: true, message: messages[0] },
      { need: 'slot_type', slot: 'image_tag', type: 'string', message: messages[1] },
      { need: 'no_such_slot', slot: 'x'.repeat(64), message: messages[2] },
    ])
    expect(to_pass.slice(0, 3)).toEqual(messages)
    expect(check('slots')).toEqual({ check: 'slots', passed: false, detail: messages.join('; ') })
    const none = { signature: { inputs: [], outputs: [], blackboard_bindings: {} }, 'activation.required_slots': [] }
    const without = { ...none, 'preconditions.data_present': [], 'preconditions.invariants': [] }
    expect(checksOf({ ...changed(without), inputs: { force: true } }).to_pass).toEqual(['leave out force: the inputs are none'])
  })
})

describe('the tools of a skill', () => {
  test('are those of its preconditions, its steps and its compensation, each named once', () => {
    const manifest = changed({ 'plan.steps.0.tool': 'a', 'plan.steps.1.tool': 'a', 'plan.compensation.0.tool': 'b' })
    const { needs, to_pass, check } = checksOf({ ...manifest, tools: ['tests.run'], absent_tools: { b: 'declare it' } })
    expect(needs.map((need) => need.need === 'tool' && need.tool)).toEqual(['term.exec', 'a', 'b'])
    expect(to_pass[2]).toBe('the tool b must be available: declare it')
    expect(check('tools')).toEqual({ check: 'tools', passed: false, detail: 'not available: term.exec, a, b' })
    expect(checksOf({}).check('tools')).toEqual({ check: 'tools', passed: true, detail: 'all tools are available' })
  })
})

describe('the data of a skill', () => {
  const data = (names: string[], changes: Partial<GateRequest> = {}) =>
    checksOf({
      ...changed({ 'preconditions.data_present': names, 'signature.inputs.1.required': false, 'activation.required_slots': [] }),
      ...changes,
    })

  test('are inputs and places of the blackboard that have a value', () => {
    const there = { ...blackboard, work: { ticket: 'T-1', none: null } }
    const { needs, to_pass, check } = data(['app_name', 'work.ticket', 'work.none', 'work.other'], { blackboard: there })
    expect(needs).toEqual([
      { need: 'data', path: 'work.none', message: 'work.none must have a value' },
      { need: 'data', path: 'work.other', message: 'work.other must have a value' },
    ])
    expect(to_pass).toHaveLength(2)
    expect(check('data')).toEqual({ check: 'data', passed: false, detail: 'no value: work.none, work.other' })
    expect(data(['app_name']).check('data')).toEqual({ check: 'data', passed: true, detail: 'all data is there' })
  })

  test('are asked for once: a required input as a slot, another one as data', () => {
    const needsOf = (given: GateRequest['inputs']) => data(['app_name', 'image_tag'], { inputs: given }).needs.map(({ need }) => need)
    expect([needsOf({ image_tag: 'x' }), needsOf({ app_name: 'a' })]).toEqual([['slot'], ['data']])
  })
})

describe('the pace of a skill', () => {
  test('leaves its cooldown between two runs', () => {
    const { needs, check } = checksOf({ last_run_at: NOW - 29_000 })
    const until = new Date(NOW + 1000).toISOString()
    expect(needs).toEqual([{ need: 'cooldown', until: NOW + 1000, message: `wait until ${until}: it ran less than 30 s ago` }])
    expect(check('cooldown')).toEqual({ check: 'cooldown', passed: false, detail: `until ${until}` })
    expect(checksOf({}).check('cooldown')).toEqual({ check: 'cooldown', passed: true, detail: 'over' })
    const ahead = (ms: number) => checksOf({ last_run_at: NOW + ms }).needs.length
    expect([ahead(30_000), ahead(30_001)]).toEqual([1, 0])
  })

  test('bounds the runs at once', () => {
    const { needs, check } = checksOf({ running: 3 })
    expect(needs).toEqual([{ need: 'concurrency', running: 3, max: 3, message: 'wait for a run to end: 3 of at most 3 run' }])
    expect(check('concurrency')).toEqual({ check: 'concurrency', passed: false, detail: '3 of at most 3 run' })
    expect(checksOf({ running: 2 }).check('concurrency')).toEqual({ check: 'concurrency', passed: true, detail: '2 of at most 3 run' })
  })

  test('names a time as a number where no calendar has it', () => {
    const { to_pass } = checksOf({ now: 9e15, last_run_at: 9e15 })
    expect(to_pass).toEqual(['wait until 9000000000030000: it ran less than 30 s ago'])
  })
})

describe('an invariant', () => {
  const invariant = (expression: string, changes: Partial<GateRequest> = {}) => {
    const found = checksOf({ ...changed({ 'preconditions.invariants': [expression] }), ...changes })
    return { ...found, checked: found.check(`invariant ${expression}`) }
  }

  test('holds, or is shown with what it read', () => {
    expect(invariant("ctx.subscription == 'blue'").checked).toMatchObject({ passed: true, detail: 'holds' })
    const { needs, checked } = invariant("ctx.subscription == 'red'")
    const message = `Precondition failed: ctx.subscription == 'red'. ctx.subscription = "blue"`
    const values = [{ path: 'ctx.subscription', value: '"blue"' }]
    expect(needs).toEqual([{ need: 'invariant', expression: "ctx.subscription == 'red'", values, message }])
    expect(checked).toMatchObject({ passed: false, detail: 'does not hold: ctx.subscription = "blue"' })
    expect(invariant('1 == 2').to_pass).toEqual(['Precondition failed: 1 == 2. it reads nothing'])
    expect(invariant('ctx.subscription == env.az.account.subscription && false').to_pass[0]).toMatch(
      /ctx\.subscription = "blue", env\.az\.\S+ = "blue"$/,
    )
  })

  test('says why it cannot be evaluated, without a secret', () => {
    const { to_pass, checked } = invariant('work.nothing == 1')
    expect(checked?.detail).toMatch(/^cannot be evaluated: .*nothing/)
    expect(to_pass).toEqual([`Precondition work.nothing == 1 ${checked?.detail}`])
  })

  test.each([
    "app_name == 'a'",
    "inputs.app_name == 'a'",
    "args.app_name == 'a'",
    'size(inputs) == 2',
    'size(args) == 2',
    'app_name == image_tag',
  ])('waits for a slot that it reads: %s', (expression) => {
    const { needs, checked } = invariant(expression, { inputs: { image_tag: 'x' } })
    expect(needs.map(({ need }) => need)).toEqual(['slot'])
    expect(checked).toEqual({ check: `invariant ${expression}`, passed: false, detail: 'open: it reads a slot that is missing' })
  })

  test.each(["image_tag == 'a'", "inputs.image_tag == 'a'", "ctx.subscription == 'a'", '('])(
    'does not wait for another slot: %s',
    (expression) => {
      const { needs } = invariant(expression, { inputs: { image_tag: 'x' } })
      expect(needs.map(({ need }) => need)).toEqual(['slot', 'invariant'])
      expect(invariant(expression, { inputs }).needs.map(({ need }) => need)).toEqual(['invariant'])
    },
  )
})
