import { describe, expect, test } from 'vitest'
import { emptyBlackboard } from '../../../../src/skills/plan/blackboard.ts'
import { compilePlan, declaredDestinations, openArguments } from '../../../../src/skills/plan/compile.ts'
import { deployManifest } from '../deploy-manifest.ts'

const inputs = { app_name: 'pay', image_tag: 'abc' }

describe('a compiled plan', () => {
  test('has its inputs bound, its key filled and its steps named', () => {
    const board = { ...emptyBlackboard(), ctx: { appservice: 'pay' }, work: { image_tag: 'abc' } }
    const compiled = compilePlan(deployManifest({ 'plan.steps.1.name': 'restart', 'plan.compensation.0.step': 'restart' }), {}, board)
    expect(compiled).toMatchObject({
      ok: true,
      plan: {
        inputs,
        idempotence_key: 'deploy.container.appservice:deploy:appservice:pay:abc',
        steps: [{ name: '0' }, { name: 'restart', index: 1 }, { name: '2' }],
        compensation: [{ undoes: 1 }],
      },
    })
  })

  test.each([
    ['a missing input', {}, { app_name: 'pay' }, 'missing_input'],
    ['a key that cannot be filled', { 'plan.idempotence_key': '{{work.x}}' }, inputs, 'bad_key'],
    [
      'a key that only a value makes deployment-wide',
      { 'plan.idempotence_key': '{{image_tag}}' },
      { ...inputs, image_tag: 'global:1' },
      'bad_key',
    ],
    ['a key that is too long', {}, { ...inputs, image_tag: 'x'.repeat(300) }, 'bad_key'],
    ['a compensation of no step', { 'plan.compensation.0.step': 'x' }, inputs, 'bad_step'],
  ])('is not made of %s', (_, changes, given, reason) => {
    expect(compilePlan(deployManifest(changes), given, emptyBlackboard())).toMatchObject({ ok: false, reason })
  })
})

describe('the arguments of a plan that its author did not write', () => {
  const args = {
    to: '{{app_name}}',
    cc: 'ops@example.com',
    room: 7,
    text: 'tag {{image_tag}} of {{ctx.who}}',
    later: '{{work.steps.0.id}}',
  }
  const opened = (changes: Record<string, unknown> = {}) => {
    const manifest = deployManifest({ 'provenance.mined_from_traces': [], 'plan.steps.0.args': args, ...changes })
    const blackboard = { ...emptyBlackboard(), ctx: { who: 'olga' } }
    return openArguments({ manifest, inputs, blackboard })[0]?.args
  }

  test('are the values of its templates, each part by itself, and no constants', () => {
    expect(opened()).toEqual({ to: ['pay'], cc: null, room: null, text: ['abc', 'olga'], later: [] })
  })

  test('have the items of a list that a step runs over, and name what an earlier step gives', () => {
    const manifest = deployManifest({
      'signature.inputs.0': { name: 'app_name', type: 'list', required: true },
      'plan.steps.0.args': { to: '{{work.item.mail}}', cc: '{{work.steps.read.from.mail}}' },
      'plan.steps.0.for_each': { list: '{{inputs.app_name}}', at_most: 3 },
    })
    const app_name = [{ mail: 'a@example.com' }, { mail: 'b@example.com' }]
    expect(openArguments({ manifest, inputs: { ...inputs, app_name }, blackboard: emptyBlackboard() })[0]).toMatchObject({
      args: { to: ['a@example.com', 'b@example.com'], cc: [] },
      given: [{ at: 'cc', step: 'read', path: 'from.mail' }],
    })
  })

  test('have the constants of a mined plan, which no person has read', () => {
    expect(opened({ 'provenance.mined_from_traces': ['a'] })).toMatchObject({ to: ['pay'], cc: 'ops@example.com', room: 7 })
  })

  test('have no input that the manifest calls no destination, and those that it calls one are named', () => {
    const declares = (destination: boolean) => ({
      'signature.inputs.0': { name: 'app_name', type: 'string', required: true, destination },
    })
    expect(opened(declares(false))).toMatchObject({ to: [] })
    const manifest = deployManifest(declares(true))
    expect(declaredDestinations({ manifest, inputs, blackboard: emptyBlackboard() })).toEqual({ app_name: 'pay' })
  })
})
