import { describe, expect, test } from 'vitest'
import type { GateRequest } from '../../../../src/skills/gate/decision.ts'
import { decide } from '../../../../src/skills/gate/gate.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { gateRequest, NOW } from '../gate-request.ts'

const allowed = { verdict: 'allow' as const, reason: 'listed', cached: false, asked_at: NOW }
const policyOf = (changes: Partial<GateRequest>) => {
  const { verdict, stages, needs, to_pass } = decide(gateRequest(changes))
  return { verdict, needs, to_pass, checks: stages.find(({ stage }) => stage === 'policy')?.checks ?? [] }
}
const checkOf = (changes: Partial<GateRequest>, name: string) => policyOf(changes).checks.find(({ check }) => check === name)

describe('the operators of a scope', () => {
  test('refuse a skill, whatever else is said', () => {
    expect(policyOf({ refused_here: true, approved: true, control_plane: allowed })).toMatchObject({
      verdict: 'deny',
      needs: [{ need: 'not_refused_here', message: 'the setting refused_skills of this scope names it' }],
    })
    expect(checkOf({ refused_here: true }, 'refused here')).toMatchObject({ passed: false })
    expect([checkOf({}, 'refused here'), checkOf({ refused_here: false }, 'refused here')]).toEqual([undefined, undefined])
  })
})

describe('the control plane', () => {
  test('is in the checks with its verdict, its reason, and whether that was kept from before', () => {
    expect(policyOf({ control_plane: allowed }).verdict).toBe('allow')
    expect(checkOf({}, 'control plane')).toBeUndefined()
    expect(checkOf({ control_plane: allowed }, 'control plane')).toEqual({ check: 'control plane', passed: true, detail: 'allow: listed' })
    const cached = { ...allowed, cached: true }
    expect(checkOf({ control_plane: cached }, 'control plane')).toMatchObject({ detail: 'allow (cached): listed' })
  })

  test('denies, and no approval helps', () => {
    const control_plane = { ...allowed, verdict: 'deny' as const, reason: 'frozen' }
    expect(policyOf({ control_plane, approved: true })).toMatchObject({
      verdict: 'deny',
      needs: [{ need: 'control_plane', message: 'the control plane must allow it: frozen' }],
    })
  })

  test('has a person here asked, once', () => {
    const control_plane = { ...allowed, approval: 'it came from the control plane' }
    const message = 'someone here must approve it: it came from the control plane'
    expect(policyOf({ control_plane })).toMatchObject({
      verdict: 'needs_approval',
      needs: [{ need: 'person', message }],
      to_pass: [message],
    })
    const detail = 'it came from the control plane'
    expect(checkOf({ control_plane }, 'a person here')).toEqual({ check: 'a person here', passed: false, detail })
    expect(policyOf({ control_plane, approved: true }).verdict).toBe('allow')
    expect(checkOf({ control_plane, approved: true }, 'a person here')).toEqual({ check: 'a person here', passed: true, detail })
  })
})

describe('an anchor that a run touches', () => {
  const anchored = ['production', 'billing']
  const message = 'waits for a person: touches the anchor production and the anchor billing'

  test('has a person asked, once', () => {
    expect(policyOf({ anchored })).toMatchObject({ verdict: 'needs_approval', needs: [{ need: 'person', message }] })
    expect(checkOf({ anchored }, 'anchors')).toEqual({ check: 'anchors', passed: false, detail: message })
    expect(policyOf({ anchored, approved: true }).verdict).toBe('allow')
    expect(checkOf({ anchored, approved: true }, 'anchors')).toEqual({ check: 'anchors', passed: true, detail: message })
    expect(checkOf({ anchored: [] }, 'anchors')).toBeUndefined()
  })

  test('does not make a candidate run', () => {
    expect(policyOf({ anchored, approved: true, state: 'candidate' })).toMatchObject({
      verdict: 'needs_promotion',
      needs: [{ need: 'promotion', message: 'promote this version: it is a candidate' }],
    })
  })
})

describe('a question for approval', () => {
  const asking = (...needs_approval_if: string[]) => ({ manifest: deployManifest({ 'policy.needs_approval_if': needs_approval_if }) })

  test('is asked where any of the expressions holds, and names that one', () => {
    expect(policyOf(asking('false', "ctx.subscription == 'blue'", 'true'))).toMatchObject({
      verdict: 'needs_approval',
      needs: [{ need: 'approval', message: "someone must approve it, for ctx.subscription == 'blue'" }],
    })
    expect(policyOf(asking('false')).verdict).toBe('allow')
  })

  test('is in the checks, answered or not', () => {
    const detail = (expression: string, approved: boolean) =>
      checkOf({ ...asking(expression), approved }, `needs_approval_if ${expression}`)
    expect([detail('true', false), detail('true', true), detail('false', false)]).toMatchObject([
      { passed: false, detail: 'holds' },
      { passed: true, detail: 'holds' },
      { passed: true, detail: 'does not hold' },
    ])
  })

  test('denies if it cannot be evaluated, though the run is approved', () => {
    const request = { ...asking('true', 'work.x'), approved: true }
    const { verdict, needs, to_pass, checks } = policyOf(request)
    expect([verdict, needs]).toMatchObject(['deny', [{ need: 'not_denied', expression: 'work.x' }]])
    expect(to_pass).toEqual([expect.stringMatching(/^work\.x cannot be evaluated: /)])
    expect(checks.slice(-2)).toEqual([
      { check: 'needs_approval_if true', passed: true, detail: 'holds' },
      { check: 'needs_approval_if work.x', passed: false, detail: to_pass[0] },
    ])
  })
})

describe('the name of a secret of the deployment', () => {
  const reference = { secret: 'REFLEX_TOOL_X' }
  const slot = (secret: boolean) => ({
    manifest: deployManifest({ 'signature.inputs.1': { name: 'image_tag', type: 'object', required: true, secret } }),
  })
  const message = "image_tag names a secret of the deployment, which only the blackboard of the scope's settings may do"
  const needs = [{ need: 'slot_without_secret', slot: 'image_tag', looks_like: 'secret_reference', message }]

  test.each([true, false])('is denied to whoever gives it as an input, that is secret: %s', (secret) => {
    const given = { ...slot(secret), inputs: { app_name: 'a', image_tag: reference }, inputs_from: 'caller' as const }
    expect(policyOf(given)).toMatchObject({ verdict: 'deny', needs })
    expect(checkOf(given, 'sensitive values')).toEqual({ check: 'sensitive values', passed: false, detail: message })
  })

  test('may come from the blackboard, to a secret input', () => {
    const blackboard = { ...gateRequest().blackboard, work: { image_tag: reference } }
    expect(policyOf({ ...slot(true), inputs: { app_name: 'a' }, blackboard }).verdict).toBe('allow')
  })
})

describe('the checks of the policy', () => {
  test('name each input that looks like a secret', () => {
    const detail = 'app_name holds what looks like a private key; image_tag holds what looks like a password'
    const inputs = { app_name: '-----BEGIN PRIVATE KEY-----', image_tag: 'password=hunter22' }
    expect(checkOf({ inputs }, 'sensitive values')).toEqual({ check: 'sensitive values', passed: false, detail })
  })

  test('name the promotion that a candidate lacks, beside the others', () => {
    const { checks } = policyOf({ state: 'candidate' })
    expect(checks.at(-1)).toEqual({ check: 'promotion', passed: false, detail: 'promote this version: it is a candidate' })
    expect(checks.map(({ check }) => check)).toContain('roles')
  })

  test('name the role, the region and the state that pass', () => {
    const manifest = deployManifest({ 'policy.residency': ['eu', 'us'] })
    const { blackboard } = gateRequest()
    const at = (region: unknown) =>
      ({ manifest, blackboard: { ...blackboard, env: { ...blackboard.env, region } } }) as Partial<GateRequest>
    expect(checkOf(at('us'), 'residency')).toEqual({ check: 'residency', passed: true, detail: 'us' })
    expect(checkOf(at('asia'), 'residency')).toEqual({ check: 'residency', passed: false, detail: 'env.region must be eu or us' })
    expect(policyOf(at(1)).verdict).toBe('deny')
    expect(checkOf({}, 'residency')).toBeUndefined()
    expect(checkOf({}, 'roles')).toEqual({ check: 'roles', passed: true, detail: 'the caller is ReleaseManager' })
    expect(checkOf({}, 'state')).toEqual({ check: 'state', passed: true, detail: 'active' })
    expect(checkOf({}, 'sensitive values')).toEqual({ check: 'sensitive values', passed: true, detail: 'none' })
  })

  test('say what a denial has read', () => {
    const manifest = deployManifest({ 'policy.deny_if': ["ctx.subscription == 'blue'"] })
    const why = 'holds: ctx.subscription = "blue"'
    const check = "deny_if ctx.subscription == 'blue'"
    expect(policyOf({ manifest })).toMatchObject({
      verdict: 'deny',
      needs: [{ need: 'not_denied', message: `Denied by the policy: ctx.subscription == 'blue' ${why}` }],
    })
    expect(checkOf({ manifest }, check)).toEqual({ check, passed: false, detail: why })
    const other = deployManifest({ 'policy.deny_if': ["ctx.subscription == 'red'"] })
    expect(checkOf({ manifest: other }, "deny_if ctx.subscription == 'red'")).toMatchObject({ passed: true, detail: 'does not hold' })
  })

  test('name all that denies at once', () => {
    const { needs } = policyOf({ roles: [], state: 'deprecated', refused_here: true })
    expect(needs.map(({ need }) => need)).toEqual(['role', 'state', 'not_refused_here'])
  })
})
