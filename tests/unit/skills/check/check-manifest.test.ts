import { describe, expect, test } from 'vitest'
import { checkManifest, type CheckOptions } from '../../../../src/skills/check.ts'
import type { Manifest } from '../../../../src/skills/manifest/manifest.ts'
import { deployManifest } from '../deploy-manifest.ts'

const options: CheckOptions = { tools: ['term.exec', 'tests.run'], probes: ['deploy_window', 'risk_scan'], env_names: ['az'] }
const errorsOf = (manifest: Manifest, changed: Partial<CheckOptions> = {}) => {
  const check = checkManifest(manifest, { ...options, ...changed })
  return check.ok ? [] : check.errors
}
const secret = { name: 'app_name', type: 'string', required: true, secret: true }

describe('a check of a manifest', () => {
  test("passes the document's example", () => {
    expect(checkManifest(deployManifest(), options)).toEqual({ ok: true })
  })

  test.each([
    ['a slot that is no input', { 'plan.steps.1.args.cmd': 'restart {{app}}' }, 'plan.steps.1.args.cmd', /neither an input nor a path/],
    ['a slot deep within', { 'plan.steps.1.args': { a: [{ b: '{{app}}' }] } }, 'plan.steps.1.args.a.0.b', /neither an input/],
    ['braces around no name', { 'plan.steps.0.args.cmd': '{{a b}}' }, 'plan.steps.0.args.cmd', /is not a placeholder/],
    ['a whole part of the blackboard', { 'plan.steps.0.args.cmd': '{{work}}' }, 'plan.steps.0.args.cmd', /is not a placeholder/],
    ['a later step', { 'plan.steps.0.args.cmd': '{{work.steps.1.x}}' }, 'plan.steps.0.args.cmd', /no earlier step called 1/],
    ['an unknown slot in the key', { 'plan.idempotence_key': '{{app}}' }, 'plan.idempotence_key', /neither an input/],
    ['an unknown slot in a result', { 'plan.result_map.endpoint': '{{app}}' }, 'plan.result_map.endpoint', /neither an input/],
    [
      'an unknown slot in a compensation',
      { 'plan.compensation.0.args.cmd': '{{app}}' },
      'plan.compensation.0.args.cmd',
      /neither an input/,
    ],
    ['a secret in the key', { 'signature.inputs.0': secret }, 'plan.idempotence_key', /is secret/],
    ['a secret in a result', { 'signature.inputs.0': secret }, 'plan.result_map.endpoint', /is secret/],
    ['a secret that a parser gives', { 'signature.inputs.0': secret }, 'llm_support.parsers.0.outputs.0', /app_name is secret/],
    ['a parser of no input', { 'llm_support.parsers.0.outputs': ['app'] }, 'llm_support.parsers.0.outputs.0', /app is not an input/],
    ['a parser that reads no input', { 'llm_support.parsers.0.inputs': ['app'] }, 'llm_support.parsers.0.inputs.0', /app is not an input/],
    ['a step with an unknown tool', { 'plan.steps.2.tool': 'curl' }, 'plan.steps.2.tool', /no tool called curl; there are term.exec/],
    ['a compensation with an unknown tool', { 'plan.compensation.0.tool': 'curl' }, 'plan.compensation.0.tool', /no tool called curl/],
    ['an unknown tool required', { 'preconditions.tools_available.1': 'x' }, 'preconditions.tools_available.1', /no tool called x/],
    ['CEL that does not parse', { 'policy.deny_if.0': 'a ==' }, 'policy.deny_if.0', /Unexpected token/],
    ['CEL that is no bool', { 'policy.needs_approval_if': ['1 + 1'] }, 'policy.needs_approval_if.0', /must be true or false/],
    ['CEL with an unknown name', { 'preconditions.invariants.0': 'wrok.x == 1' }, 'preconditions.invariants.0', /wrok is neither/],
    ['CEL with an unknown probe', { 'plan.steps.1.guard': 'is_up()' }, 'plan.steps.1.guard', /no probe called is_up/],
    ['nested iteration', { 'policy.deny_if.0': 'work.a.all(x, work.b.exists(y, x == y))' }, 'policy.deny_if.0', /within another iteration/],
    ['a compensation of no step', { 'plan.compensation.0.step': 'restart' }, 'plan.compensation.0.step', /no step called restart/],
    [
      'a loop over two places',
      { 'plan.steps.1.for_each': { list: '{{app_name}}{{image_tag}}', at_most: 2 } },
      'plan.steps.1.for_each.list',
      /one placeholder/,
    ],
    [
      'a loop over the output of a later step',
      { 'plan.steps.1.for_each': { list: '{{work.steps.2.ids}}', at_most: 2 } },
      'plan.steps.1.for_each.list',
      /no earlier step called 2/,
    ],
    ['a compensation of a step too far', { 'plan.compensation.0.step': 3 }, 'plan.compensation.0.step', /no step called 3/],
    ['effects outside without a key', { 'plan.idempotence_key': undefined }, 'plan.idempotence_key', /is required/],
    ['effects outside without a compensation', { 'plan.compensation': [] }, 'plan.compensation', /is required/],
    ['a required slot that is no input', { 'activation.required_slots.1': 'tag' }, 'activation.required_slots.1', /tag is not an input/],
    ['data that is no input', { 'preconditions.data_present.0': 'tag' }, 'preconditions.data_present.0', /tag is not an input/],
    [
      'an unknown bound input',
      { 'signature.blackboard_bindings.inputs.tag': 'work.t' },
      'signature.blackboard_bindings.inputs.tag',
      /not an/,
    ],
    [
      'an unknown bound output',
      { 'signature.blackboard_bindings.outputs.url': 'work.t' },
      'signature.blackboard_bindings.outputs.url',
      /not an/,
    ],
    ['an output that nothing gives', { 'plan.result_map': {} }, 'signature.outputs.0', /nothing gives endpoint/],
    ['a result that is no output', { 'plan.result_map.url': 'x' }, 'plan.result_map.url', /url is not an output/],
    ['a write that is not told', { 'effects.writes': [] }, 'signature.blackboard_bindings.outputs.endpoint', /not in effects.writes/],
    [
      'a write to the policy',
      { 'signature.blackboard_bindings.outputs.endpoint': 'policy.x', 'effects.writes': ['policy.x'] },
      'signature.blackboard_bindings.outputs.endpoint',
      /not for skills/,
    ],
    ['a threshold out of reach', { 'activation.tau': 5.6 }, 'activation.tau', /score 5.5 at most/],
    ['no cue', { 'activation.score_weights': {}, 'activation.tau': 0 }, 'activation.score_weights', /no cue can score/],
    ['an input twice', { 'signature.inputs.1.name': 'app_name' }, 'signature.inputs.1', /duplicate/],
  ])('finds %s, with its place', (_, changes, path, message) => {
    expect(errorsOf(deployManifest(changes))).toContainEqual({ path, message: expect.stringMatching(message) })
  })

  test('finds two steps of one name', () => {
    const changes = { 'plan.steps.0.name': 'restart', 'plan.steps.1.name': 'restart' }
    expect(errorsOf(deployManifest(changes))).toEqual([{ path: 'plan.steps.1.name', message: 'duplicate name: restart' }])
  })

  test('lets a later step and a compensation use what a named step gave', () => {
    const steps = { 'plan.steps.0.name': 'set', 'plan.steps.1.args.cmd': '{{work.steps.set.old}}', 'plan.compensation.0.step': 'set' }
    expect(errorsOf(deployManifest({ ...steps, 'plan.compensation.0.args.cmd': '{{work.steps.0.old}}' }))).toEqual([])
  })

  test('tells all errors at once', () => {
    const changes = { 'plan.steps.0.tool': 'a', 'plan.steps.1.tool': 'b', 'policy.deny_if.0': ')', 'activation.tau': 99 }
    expect(errorsOf(deployManifest(changes)).map(({ path }) => path)).toEqual([
      'plan.steps.0.tool',
      'plan.steps.1.tool',
      'policy.deny_if.0',
      'activation.tau',
    ])
  })

  test('leaves out what is not known: the tools, and what env holds', () => {
    const manifest = deployManifest({ 'plan.steps.0.tool': 'any' })
    expect(errorsOf(manifest, { tools: null, env_names: null })).toEqual([])
    expect(errorsOf(manifest, { tools: [], env_names: [] }).map(({ path }) => path)).toContain('preconditions.invariants.0')
  })
})
