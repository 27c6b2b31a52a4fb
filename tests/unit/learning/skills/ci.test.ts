import { describe, expect, test } from 'vitest'
import { testSkill } from '../../../../src/skills/ci/ci.ts'
import { mutationNames } from '../../../../src/skills/ci/mutations.ts'
import { runCase } from '../../../../src/skills/ci/run-case.ts'
import { compilePattern } from '../../../../src/features/learning/skills/compile.ts'
import { mine } from '../../../../src/features/learning/skills/mine.ts'
import { costOf, sumOf } from '../../../../src/features/learning/skills/trace.ts'
import { parseManifest, type Manifest } from '../../../../src/skills/manifest/manifest.ts'
import { times } from './build-trace.ts'
import { compileOptions, deployment } from './deployments.ts'

const turns = times(12, deployment)
const [pattern] = mine(turns).patterns
if (!pattern) throw new Error('no pattern was found')
const result = compilePattern(pattern, {
  ...compileOptions,
})
if (!result.ok) throw new Error(result.reason)
const { manifest, cases } = result
const options = { cases, repeatable: new Set<string>(), roles: ['operator'], seed: 'one' }

/** The manifest with another plan, policy or test. */
function changed(change: (draft: Manifest) => void): Manifest {
  const draft = structuredClone(manifest)
  change(draft)
  const parsed = parseManifest(draft)
  if (!parsed.ok) throw new Error(parsed.errors[0]?.message)
  return parsed.manifest
}
const failuresOf = async (draft: Manifest) =>
  (await testSkill(draft, options)).failures.map(({ name, reason }) => `${name.split(' ', 1)[0]}: ${reason}`)

describe('the tests of a learned skill', () => {
  test('pass for the deployments of the example, with the hash and the seed', async () => {
    const report = await testSkill(manifest, options)
    expect(report).toMatchObject({
      skill_id: manifest.id,
      version: '1.0.0',
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      seed: 'one',
      unit: { n: 12, passed: 12, required: 0.95 },
      fuzz: { n: 52, passed: 52, required: 0.85 },
      passed: true,
      failures: [],
    })
    expect(await testSkill(manifest, options)).toEqual(report)
  })

  test('run each mutation, or those that the manifest names', async () => {
    const named = changed(({ tests }) => {
      tests.fuzz = { count: 10, mutations: ['alt_commit', 'missing_slot'] }
    })
    expect((await testSkill(named, options)).fuzz).toMatchObject({ n: 10, passed: 10 })
    expect(mutationNames).toHaveLength(13)
  })

  test('let the next run cost at most 0.6 of the turns', async () => {
    const [tested] = cases
    if (!tested) throw new Error('there is no case')
    const { status, effects } = await runCase(manifest, tested, { roles: ['operator'], fault: null, times: 1 })
    expect([status, effects.length]).toEqual(['ok', 3])
    const parser = 0.1 / 6
    const run = sumOf(tested.calls.map(({ cost_usd }) => cost_usd)) + parser
    expect(run / costOf(deployment(0))).toBeLessThanOrEqual(0.6)
  })

  test.each<[string, (draft: Manifest) => void, RegExp]>([
    [
      'calls a tool with other arguments',
      ({ plan }) => void (plan.steps[1]!.args = { registry: 'x', commit: 'y' }),
      /other arguments than the recorded turn/,
    ],
    [
      'does not undo a step',
      ({ plan }) => void plan.compensation.splice(0, 1),
      /^tool_\w+: it ended as partial_failure, and ensure_acr was not undone/,
    ],
    ['lets anyone run it', ({ policy }) => void (policy.allow_roles = []), /the gate answered deny/],
    [
      'is allowed in any environment but for its name',
      ({ preconditions }) => void preconditions.invariants.push('ctx.window == "closed"'),
      /the gate answered refused/,
    ],
    ['acts twice', ({ plan }) => void delete plan.idempotence_key, /^duplicate: an effect happened twice/],
    ['has too little time', ({ plan }) => void (plan.budget.max_latency_ms = 1), /the run ended as partial_failure/],
  ])('fail for a skill that %s', async (_, change, reason) => {
    expect(await failuresOf(changed(change))).toContainEqual(expect.stringMatching(reason))
    expect(await testSkill(changed(change), options)).toMatchObject({ passed: expect.any(Boolean) })
  })

  test('do not pass without a case', async () => {
    expect(await testSkill(manifest, { ...options, cases: [] })).toMatchObject({ passed: false, unit: { n: 0 }, fuzz: { n: 0 } })
  })
})
