import { describe, expect, test } from 'vitest'
import { hashManifest, manifestJsonSchema, manifestSchema, parseManifest } from '../../../../src/skills/manifest/manifest.ts'
import { deployJson, deployManifest, deployWith } from '../deploy-manifest.ts'

const pathsOf = (input: unknown) => {
  const parsed = parseManifest(input)
  return parsed.ok ? [] : parsed.errors.map(({ path }) => path)
}

describe('a manifest', () => {
  test("the document's own example is one", () => {
    expect(parseManifest(deployJson)).toMatchObject({ ok: true, manifest: deployJson })
  })

  test('needs only an id, a version, an owner and a plan', () => {
    const { id, version, owner, plan } = deployJson
    expect(pathsOf({ id, version, owner, plan: { budget: plan.budget, steps: [{ tool: 'term.exec' }] } })).toEqual([])
  })

  test.each([
    ['an id with a space', { id: 'deploy app' }, 'id'],
    ['a version that is not semantic', { version: '1.3' }, 'version'],
    ['a version with a leading zero', { version: '1.03.0' }, 'version'],
    ['no owner', { owner: '' }, 'owner'],
    ['another scope', { scope: 'world' }, 'scope'],
    ['an unknown field', { goals: [] }, ''],
    ['an unknown field within', { 'compat.region': 'eu' }, 'compat'],
    ['a slot called like a root', { 'signature.inputs.0.name': 'work' }, 'signature.inputs[0].name'],
    ['a slot called like the reason of an MCP call', { 'signature.inputs.0.name': 'reflex_why' }, 'signature.inputs[0].name'],
    ['a slot called __proto__', { 'signature.inputs.0.name': '__proto__' }, 'signature.inputs[0].name'],
    ['a slot called like a word of CEL', { 'signature.inputs.0.name': 'in' }, 'signature.inputs[0].name'],
    ['an unknown type', { 'signature.inputs.0.type': 'text' }, 'signature.inputs[0].type'],
    [
      'a binding to no part of the blackboard',
      { 'signature.blackboard_bindings.inputs.app_name': 'memory.x' },
      'signature.blackboard_bindings.inputs.app_name',
    ],
    ['a tool with a space', { 'plan.steps.1.tool': 'term exec' }, 'plan.steps[1].tool'],
    ['no steps', { 'plan.steps': [] }, 'plan.steps'],
    ['a timeout of nothing', { 'plan.steps.0.timeout_ms': 0 }, 'plan.steps[0].timeout_ms'],
    ['eleven attempts', { 'plan.steps.0.retry': { max_attempts: 11 } }, 'plan.steps[0].retry.max_attempts'],
    ['compensation for something else', { 'plan.compensation.0.when': 'always' }, 'plan.compensation[0].when'],
    ['a negative budget', { 'plan.budget.max_cost_usd': -1 }, 'plan.budget.max_cost_usd'],
    ['no budget', { 'plan.budget': undefined }, 'plan.budget'],
    ['a weight below zero', { 'activation.score_weights.goal_label': -1 }, 'activation.score_weights.goal_label'],
    ['a keyword without a letter', { 'activation.keywords_any.0': '!?' }, 'activation.keywords_any[0]'],
    ['a parser that is not at temperature 0', { 'llm_support.parsers.0.temperature': 0.1 }, 'llm_support.parsers[0].temperature'],
    ['an expression of 2,001 characters', { 'policy.deny_if.0': 'a'.repeat(2001) }, 'policy.deny_if[0]'],
    ['too many invariants', { 'preconditions.invariants': Array(33).fill('true') }, 'preconditions.invariants'],
    ['a rate above one', { 'provenance.success': 1.1 }, 'provenance.success'],
  ])('is refused with %s', (_, changes, path) => {
    expect(pathsOf(deployWith(changes))).toContain(path)
  })

  test('is refused where it is larger than a manifest may be', () => {
    const args = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`text_${index}`, 'x'.repeat(10_000)]))
    expect(parseManifest(deployWith({ 'plan.steps.0.args': args }))).toMatchObject({
      ok: false,
      errors: [{ message: expect.stringContaining('at most 128000') }],
    })
  })

  test('is refused where it is nested without end', () => {
    let nested: unknown = 'x'
    for (let level = 0; level < 10_000; level++) nested = [nested]
    expect(parseManifest(deployWith({ 'plan.steps.0.args.cmd': nested })).ok).toBe(false)
  })

  test('has the same hash whatever the order of its fields, and another when it says anything else', async () => {
    const reordered = manifestSchema.parse(Object.fromEntries(Object.entries(deployJson).toReversed()))
    const hash = await hashManifest(deployManifest())
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(await hashManifest(reordered)).toBe(hash)
    expect(await hashManifest(deployManifest({ 'plan.steps.0.timeout_ms': 1501 }))).not.toBe(hash)
  })

  test('is described by a JSON Schema that names what an author must write', () => {
    expect(manifestJsonSchema()).toMatchObject({
      type: 'object',
      required: ['id', 'version', 'owner', 'plan'],
      additionalProperties: false,
    })
  })
})
