import { describe, expect, test } from 'vitest'
import { emptyBlackboard } from '../../../../src/skills/plan/blackboard.ts'
import { compilePlan } from '../../../../src/skills/plan/compile.ts'
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
