import { describe, expect, test } from 'vitest'
import { lineOf } from '../../../cli/reflex/skill/json-lines.ts'
import { findingsIn } from '../../../cli/reflex/skill/lint.ts'
import { constantOf, lintManifest } from '../../../src/skills/lint.ts'
import { deployManifest } from './deploy-manifest.ts'

const inputs = [
  { name: 'amount', type: 'number' as const, required: true },
  { name: 'count', type: 'integer' as const, required: true },
  { name: 'city', type: 'string' as const, required: true },
  { name: 'fast', type: 'boolean' as const, required: false },
]
const signature = { inputs, outputs: [], blackboard_bindings: { inputs: {}, outputs: {} } }

describe('a condition', () => {
  test.each([
    ['inputs.amount > 100 && inputs.amount < 50', 'never'],
    ["inputs.city == 'Bern' && inputs.city == 'Basel'", 'never'],
    ["city in ['Bern', 'Basel'] && city == 'Zug'", 'never'],
    ['count > 1 && count < 2', 'never'],
    ['amount > 1 && amount < 2', null],
    ['inputs.amount >= 0 || inputs.amount < 0', 'always'],
    ["city != 'Bern' || city != 'Basel'", 'always'],
    ['fast || !fast', 'always'],
    ['fast == true && fast == false', 'never'],
    ["ctx.region == 'eu' && ctx.region == 'us'", 'never'],
    ['true', 'always'],
    ['1 > 2', 'never'],
    ['inputs.amount > 100', null],
    ["inputs.amount > 100 || inputs.city == 'Bern'", null],
    ["city == 'Bern' || city == 'Basel'", null],
    ['amount > count && amount < count', null],
    ["city.startsWith('B') && !city.startsWith('B')", null],
    ["origin(city) == 'user'", null],
    ["city < 'B' && city > 'A'", null],
    ['size(city) > 3', null],
  ])('%s is constant: %s', (source, constant) => {
    expect(constantOf(source, { signature })).toBe(constant)
  })

  test('that is constant is found where it is no usual one', () => {
    const manifest = deployManifest({
      'preconditions.invariants': ['1 > 2'],
      'policy.deny_if': ['1 > 2'],
      'policy.needs_approval_if': ['true'],
      'plan.steps.0.guard': 'true',
    })
    expect(lintManifest(manifest).map(({ path, message }) => [path, message])).toEqual([
      ['preconditions.invariants.0', '1 > 2 can never hold, so that the skill never runs'],
      ['plan.steps.0.guard', 'true always holds, so that it guards nothing'],
      ['policy.deny_if.0', '1 > 2 can never hold, so that it denies nothing'],
    ])
  })
})

describe('a manifest', () => {
  const paths = (changes: Record<string, unknown>, others: Parameters<typeof lintManifest>[1] = []) =>
    lintManifest(deployManifest(changes), others).map(({ path }) => path)

  const spends = (max_cost_usd: number) => ({ 'plan.budget.max_cost_usd': max_cost_usd })
  const paid = (costs: number[], more: object = {}) => {
    const calls = costs.map((cost_usd) => ({ tool: 'registry.check', input: {}, cost_usd }))
    return { 'tests.unit_cases': ['a name', { inputs: {} }, { inputs: {}, calls, ...more }] }
  }

  test.each([
    ['nothing', {}, []],
    ['a role that nobody can have', { 'policy.allow_roles': ['release manager'] }, ['policy.allow_roles.0']],
    ['no role', { 'policy.allow_roles': [] }, ['policy.allow_roles']],
    ['a budget below one step', { 'plan.budget.max_latency_ms': 1 }, ['plan.budget.max_latency_ms']],
    ['a budget below what a case has recorded', { ...spends(0.03), ...paid([0.02, 0.02]) }, ['plan.budget.max_cost_usd']],
    ['a budget that is just enough for its cases', { ...spends(0.3), ...paid([0.1, 0.2]) }, []],
    ['a dear case that the gate stops', { ...spends(0.03), ...paid([0.02, 0.02], { verdict: 'deny' }) }, []],
    ['a free text that says where it acts', { 'plan.steps.0.args': { to: '{{app_name}}' } }, ['plan.steps.0.args.to']],
    ['an author who says that it may', { 'plan.steps.0.args': { to: '{{app_name}}' }, 'signature.inputs.0.destination': true }, []],
    ['a text of an earlier step', { 'plan.steps.1.args': { to: '{{work.steps.0.body}}' } }, ['plan.steps.1.args.to']],
    ['a field of an earlier step', { 'plan.steps.1.args': { to: '{{work.steps.0.email}}' } }, []],
  ])('is found to have %s', (_, changes, found) => {
    expect(paths(changes)).toEqual(found)
  })

  test('is shadowed by one that has all of its cues, and not by one that lacks one', () => {
    const other = deployManifest({ id: 'another.skill' })
    expect(lintManifest(deployManifest({}), [deployManifest({}), other])).toEqual([
      {
        path: 'activation',
        message: 'another.skill has each of these cues at no smaller weight: it is always ranked at least as high',
        example: expect.stringContaining('keyword'),
      },
    ])
    expect(paths({ 'activation.keywords_any': ['its own'] }, [other])).toEqual([])
  })
})

describe('the line of a finding', () => {
  const text = '{\n  "a": "x: [",\n  "plan": {\n    "steps": [\n      { "args": { "to": "y" } },\n      {}\n    ]\n  }\n}'
  test.each([
    ['a', 2],
    ['plan.steps', 4],
    ['plan.steps.0.args.to', 5],
    ['plan.steps[1]', 6],
    ['plan.steps.1.args', 6],
    ['plan.none', 3],
    ['', 1],
  ])('%s is %i', (path, line) => {
    expect(lineOf(text, path)).toBe(line)
  })

  test('is said for errors of the manifest, too', async () => {
    const manifest = { ...deployManifest({}), id: 7 }
    const found = await findingsIn([{ file: 'deploy.json', text: JSON.stringify(manifest, null, 2) }])
    expect(found).toMatchObject([{ file: 'deploy.json', path: 'id', line: 2 }])
    expect(await findingsIn([{ file: 'no.json', text: '{' }])).toMatchObject([{ file: 'no.json', line: 1 }])
  })
})
