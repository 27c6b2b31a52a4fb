import { describe, expect, test } from 'vitest'
import type { PolicyQuestion } from '../../../../src/contract/policy.ts'
import { judgePolicy, type PolicyCase } from '../../../../src/skills/gate/judge-policy.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { NOW } from '../gate-request.ts'

const NAME = 'deploy.container.appservice@1.3.0'
const asked: PolicyQuestion = {
  skill_id: 'deploy.container.appservice',
  version: '1.3.0',
  project: 'acme/payments',
  env: 'staging',
  roles: ['ReleaseManager'],
}

function judge(question: Partial<PolicyQuestion> = {}, known: Partial<PolicyCase> & { changes?: Record<string, unknown> } = {}) {
  const { changes = {}, ...rest } = known
  const skill = { manifest: deployManifest({ 'policy.deny_if': [], ...changes }), state: 'active' } as const
  return judgePolicy({ ...asked, ...question }, { skill, open: ['staging'], promoted: [], now: NOW, ...rest })
}

describe('the control plane', () => {
  test('allows a version in an open environment, or in one to which it was promoted', () => {
    expect(judge()).toEqual({ verdict: 'allow', reason: `${NAME} may run` })
    expect(judge({}, { open: [], promoted: ['staging'] }).verdict).toBe('allow')
    expect(judge({}, { open: [] })).toEqual({
      verdict: 'needs_promotion',
      reason: `${NAME}: it has not been promoted to staging`,
    })
  })

  test('allows several environments only if each is open or has it', () => {
    const changes = { 'compat.env': ['staging', 'prod', 'eu'] }
    const env = ['staging', 'prod', 'eu']
    expect(judge({ env }, { changes }).reason).toBe(`${NAME}: it has not been promoted to prod and eu`)
    expect(judge({ env }, { changes, promoted: ['prod', 'eu'] }).verdict).toBe('allow')
  })

  test('lets what it does not know run where nothing needs a promotion', () => {
    expect(judge({}, { skill: null })).toEqual({
      verdict: 'allow',
      reason: `the control plane does not know ${NAME}, and the environment is open`,
    })
    expect(judge({ env: 'prod' }, { skill: null })).toEqual({
      verdict: 'needs_promotion',
      reason: `the control plane does not know ${NAME}, and it has not been promoted to prod`,
    })
  })

  test('denies another environment or project than the skill is for, but asks for no toolset and no repository', () => {
    expect(judge({ env: 'prod' }, { open: ['prod'] })).toMatchObject({ verdict: 'deny', reason: expect.stringContaining('compat.env') })
    const changes = { 'compat.project': 'acme/shop' }
    expect(judge({}, { changes })).toMatchObject({ verdict: 'deny', reason: expect.stringContaining('compat.project') })
    expect(judge({ project: 'acme/shop' }, { changes }).verdict).toBe('allow')
    expect(judge({ project: undefined }, { changes }).verdict).toBe('deny')
  })

  test('denies by role before it says that a promotion is lacking', () => {
    expect(judge({ roles: ['publisher'] }, { open: [] })).toEqual({
      verdict: 'deny',
      reason: `${NAME}: the caller must have the role ReleaseManager`,
    })
  })

  test('counts the roles that a role implies', () => {
    const changes = { 'policy.allow_roles': ['viewer'] }
    expect(judge({ roles: ['operator'] }, { changes }).verdict).toBe('allow')
    expect(judge({ roles: ['publisher'] }, { changes }).verdict).toBe('deny')
  })

  test('asks to promote a candidate, and denies what is deprecated', () => {
    const manifest = deployManifest({ 'policy.deny_if': [] })
    expect(judge({}, { skill: { manifest, state: 'candidate' } }).verdict).toBe('needs_promotion')
    expect(judge({}, { skill: { manifest, state: 'deprecated' } })).toMatchObject({ verdict: 'deny' })
  })

  test('decides a condition that reads given inputs alone', () => {
    const by = (expression: string, inputs?: Record<string, unknown>) =>
      judge(inputs && { inputs }, { changes: { 'policy.deny_if': [expression] } }).verdict
    const inputs = { app_name: 'prod-web', image_tag: 'a:b' }
    for (const expression of ["inputs.app_name == 'prod-web'", "args.app_name == 'prod-web'", "app_name == 'prod-web'"]) {
      expect(by(expression, inputs)).toBe('deny')
      expect(by(expression, { ...inputs, app_name: 'web' })).toBe('allow')
    }
    expect(by("inputs.app_name == 'prod-web'", { image_tag: 'a:b' })).toBe('allow')
    expect(by("inputs.app_name == 'prod-web'")).toBe('allow')
  })

  test.each([
    "ctx.subscription != 'blue'",
    "risk_scan(args) != 'low'",
    "risk_scan(inputs.app_name) != 'low'",
    'size(args) == 2',
    'app_name != env.region',
    '(',
  ])('leaves %s to the gate of whoever asks', (expression) => {
    const inputs = { app_name: 'web', image_tag: 'a:b' }
    expect(judge({ inputs }, { changes: { 'policy.deny_if': [expression] } }).verdict).toBe('allow')
  })

  test('leaves approvals and the residency to that gate, too', () => {
    const changes = { 'policy.needs_approval_if': ['true'], 'policy.residency': ['eu'] }
    expect(judge({}, { changes }).verdict).toBe('allow')
  })

  test('denies inputs that hold a secret', () => {
    const inputs = { app_name: 'web', image_tag: 'ghp_0123456789abcdefghijABCDEFGHIJ' }
    expect(judge({ inputs })).toMatchObject({ verdict: 'deny', reason: expect.stringContaining('looks like a token') })
  })
})
