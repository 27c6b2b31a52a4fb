import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../../../src/skills/gate/gate.ts'
import type { GateRequest } from '../../../../src/skills/gate/decision.ts'
import type { JsonFields } from '../../../../src/base/json.ts'
import { deployManifest } from '../deploy-manifest.ts'
import { gateRequest, NOW } from '../gate-request.ts'
import { assertProperty } from '../../../support/property.ts'

const blackboard = gateRequest().blackboard
const place = gateRequest().compat
const inputs = gateRequest().inputs
const withManifest = (changes: Record<string, unknown>): Partial<GateRequest> => ({ manifest: deployManifest(changes) })
const secretTag = { name: 'image_tag', type: 'string', required: true, secret: true }

describe('the gate', () => {
  test('asks for a promotion only where nothing else denies the skill', () => {
    const control_plane = { verdict: 'needs_promotion' as const, reason: 'not yet', cached: false, asked_at: NOW }
    expect(decide(gateRequest({ control_plane })).verdict).toBe('needs_promotion')
    expect(decide(gateRequest({ control_plane, roles: ['viewer'] })).verdict).toBe('deny')
  })

  test('allows what passes all four stages, and says what it looked at', () => {
    const decision = decide(gateRequest())
    expect(decision).toMatchObject({
      skill_id: 'deploy.container.appservice',
      version: '1.3.0',
      verdict: 'allow',
      stage: null,
      score: { score: 4, tau: 3.5 },
      needs: [],
      to_pass: [],
      questions: [],
      decided_at: NOW,
      probes: [
        { probe: 'deploy_window', args: ['staging'], result: 'open' },
        { probe: 'risk_scan', args: [inputs], result: 'low' },
      ],
    })
    expect(decision.stages.map(({ stage, status }) => [stage, status])).toEqual([
      ['compat', 'passed'],
      ['preconditions', 'passed'],
      ['score', 'passed'],
      ['policy', 'passed'],
    ])
    expect(decision.stages.flatMap(({ checks }) => checks).every(({ passed }) => passed)).toBe(true)
  })

  test.each<[string, Partial<GateRequest>, string, string, object]>([
    ['another env', { compat: { ...place, env: ['prod'] } }, 'refused', 'compat', { need: 'compat', field: 'env' }],
    ['one env too many', { compat: { ...place, env: ['staging', 'prod'] } }, 'refused', 'compat', { need: 'compat', field: 'env' }],
    ['an unknown env', { compat: { ...place, env: [] } }, 'refused', 'compat', { need: 'compat', field: 'env' }],
    ['another toolset', { compat: { ...place, toolset: 'v5' } }, 'refused', 'compat', { need: 'compat', field: 'toolset' }],
    ['an unknown repo', { compat: { ...place, repo: null } }, 'refused', 'compat', { need: 'compat', field: 'repo' }],
    ['another project', withManifest({ 'compat.project': 'acme/shop' }), 'refused', 'compat', { need: 'compat', field: 'project' }],
    ['a missing tool', { tools: ['term.exec'] }, 'refused', 'preconditions', { need: 'tool', tool: 'tests.run' }],
    [
      'a missing tool of which the host knows more',
      { tools: ['term.exec'], absent_tools: { 'tests.run': 'declare it' } },
      'refused',
      'preconditions',
      { need: 'tool', tool: 'tests.run', message: 'the tool tests.run must be available: declare it' },
    ],
    ["a step's missing tool", withManifest({ 'plan.steps.1.tool': 'az' }), 'refused', 'preconditions', { need: 'tool', tool: 'az' }],
    [
      'an input of another type',
      { inputs: { ...inputs, image_tag: 3 } },
      'refused',
      'preconditions',
      { need: 'slot_type', slot: 'image_tag', type: 'string' },
    ],
    ['an unknown input', { inputs: { ...inputs, force: true } }, 'refused', 'preconditions', { need: 'no_such_slot', slot: 'force' }],
    [
      'missing data',
      withManifest({ 'preconditions.data_present': ['work.ticket'] }),
      'refused',
      'preconditions',
      { need: 'data', path: 'work.ticket' },
    ],
    ['a cooldown', { last_run_at: NOW - 29_999 }, 'refused', 'preconditions', { need: 'cooldown', until: NOW + 1 }],
    ['too many runs', { running: 3 }, 'refused', 'preconditions', { need: 'concurrency', running: 3, max: 3 }],
    [
      'an invariant that does not hold',
      { blackboard: { ...blackboard, ctx: { subscription: 'green' } } },
      'refused',
      'preconditions',
      {
        need: 'invariant',
        expression: 'az.account.subscription == ctx.subscription',
        values: [
          { path: 'az.account.subscription', value: '"blue"' },
          { path: 'ctx.subscription', value: '"green"' },
        ],
      },
    ],
    ['an invariant whose name is not there', { blackboard: { ...blackboard, env: {} } }, 'refused', 'preconditions', { need: 'invariant' }],
    ['an invariant whose probe is not there', { probes: {} }, 'refused', 'preconditions', { need: 'invariant' }],
    [
      'an invariant that is no bool',
      withManifest({ 'preconditions.invariants': ['ctx.subscription'] }),
      'refused',
      'preconditions',
      { need: 'invariant' },
    ],
    [
      'an invariant that does not parse',
      withManifest({ 'preconditions.invariants': ['('] }),
      'refused',
      'preconditions',
      { need: 'invariant' },
    ],
    ['too few points', { goal_labels: [] }, 'refused', 'score', { need: 'score', short_by: 2.5, cues: ['goal_label', 'recent_success'] }],
    ['another role', { roles: ['publisher'] }, 'deny', 'policy', { need: 'role', any_of: ['ReleaseManager'] }],
    ['the role admin alone', { roles: ['admin'] }, 'deny', 'policy', { need: 'role' }],
    [
      'no allowed roles',
      withManifest({ 'policy.allow_roles': [] }),
      'deny',
      'policy',
      { need: 'policy_field', field: 'policy.allow_roles' },
    ],
    ['nothing about roles', withManifest({ 'policy.allow_roles': undefined }), 'deny', 'policy', { need: 'policy_field' }],
    [
      'a deny_if that holds',
      { probes: { deploy_window: () => 'open', risk_scan: () => 'high' } },
      'deny',
      'policy',
      { need: 'not_denied' },
    ],
    ['a deny_if that is broken', { probes: { deploy_window: () => 'open' } }, 'deny', 'policy', { need: 'not_denied' }],
    ['a deny_if that is no bool', withManifest({ 'policy.deny_if': ['ctx.subscription'] }), 'deny', 'policy', { need: 'not_denied' }],
    ['a region that is not known', withManifest({ 'policy.residency': ['eu'] }), 'deny', 'policy', { need: 'residency', any_of: ['eu'] }],
    ['a deprecated version', { state: 'deprecated' }, 'deny', 'policy', { need: 'state', state: 'deprecated' }],
    ['a candidate', { state: 'candidate' }, 'needs_promotion', 'policy', { need: 'promotion' }],
    ['a candidate and another role', { state: 'candidate', roles: [] }, 'deny', 'policy', { need: 'role' }],
    [
      'what needs approval',
      withManifest({ 'policy.needs_approval_if': ["ctx.subscription == 'blue'"] }),
      'needs_approval',
      'policy',
      { need: 'approval', expression: "ctx.subscription == 'blue'" },
    ],
    ['a broken question for approval', withManifest({ 'policy.needs_approval_if': ['work.x'] }), 'deny', 'policy', { need: 'not_denied' }],
    [
      'a secret from a model',
      withManifest({ 'signature.inputs.1': secretTag }),
      'deny',
      'policy',
      { need: 'slot_not_from_model', slot: 'image_tag' },
    ],
  ])('stops at %s', (_, changes, verdict, stage, need) => {
    const decision = decide(gateRequest(changes))
    expect(decision).toMatchObject({ verdict, stage, needs: expect.arrayContaining([expect.objectContaining(need)]) })
    expect(decision.to_pass).toHaveLength(decision.needs.length)
    const order = ['compat', 'preconditions', 'score', 'policy']
    const at = order.indexOf(stage)
    expect(decision.stages.map(({ status }) => status)).toEqual(
      order.map((_, index) => (index < at ? 'passed' : index === at ? 'failed' : 'not_reached')),
    )
  })

  test('lets pass what is just in time, has a binding, a region, an approval', () => {
    expect(decide(gateRequest({ last_run_at: NOW - 30_000, running: 2 })).verdict).toBe('allow')
    expect(decide(gateRequest({ ...withManifest({ 'policy.needs_approval_if': ['true'] }), approved: true })).verdict).toBe('allow')
    const bound = {
      ...blackboard,
      ctx: { ...blackboard.ctx, appservice: 'x' },
      work: { image_tag: 'y' },
      env: { ...blackboard.env, region: 'eu' },
    }
    expect(decide(gateRequest({ ...withManifest({ 'policy.residency': ['eu'] }), inputs: {}, blackboard: bound })).verdict).toBe('allow')
    const secret = withManifest({ 'signature.inputs.1': secretTag })
    expect(decide(gateRequest({ ...secret, inputs: { app_name: 'a' }, blackboard: bound })).verdict).toBe('allow')
    expect(decide(gateRequest({ ...secret, inputs_from: 'caller' })).verdict).toBe('allow')
  })

  test('asks for missing slots, and names those that a parser may fill', () => {
    const decision = decide(gateRequest({ inputs: { app_name: ' ' } }))
    expect(decision).toMatchObject({
      verdict: 'clarify',
      stage: 'preconditions',
      questions: [
        { slot: 'app_name', question: 'What is app_name (string)?' },
        { slot: 'image_tag', question: 'What is image_tag (string)?' },
      ],
      parsable: ['app_name'],
    })
  })

  test('does not ask where answers would not help', () => {
    expect(decide(gateRequest({ inputs: {}, tools: [] }))).toMatchObject({ verdict: 'refused', questions: [] })
  })

  test('does not take an invariant that waits for a slot for one that fails', () => {
    const manifest = deployManifest({ 'preconditions.invariants': ["inputs.app_name != ''", 'size(args) == 2', "image_tag != ''"] })
    expect(decide(gateRequest({ manifest, inputs: {} })).verdict).toBe('clarify')
    expect(decide(gateRequest({ manifest })).verdict).toBe('allow')
  })

  test('says that a keyword in `why` helps only where `why` is searched', () => {
    const short = gateRequest({ goal_labels: [], text: 'nothing', why_counts: false })
    expect(decide(short).to_pass[0]).toContain('a keyword must be in the event or the conversation (')
    expect(decide(short).to_pass[0]).not.toContain('`why`')
    expect(decide(gateRequest({ goal_labels: [], text: 'nothing' })).to_pass[0]).toContain('se a keyword in `why` (')
  })

  test('says of too few points which cues would add more, with a few of their words', () => {
    const words = ['a', 'b', 'c', 'd', 'e', 'f']
    const changes = { 'activation.goal_labels': words, 'activation.keywords_any': words, 'activation.entity_types': words }
    const weights = { 'activation.score_weights': { goal_label: 3, keyword_hit: 1, entity_type: 0.5, recent_success: 1.5 } }
    const nothing = { goal_labels: [], text: 'nothing' }
    const hint = (more: Record<string, unknown>) => decide(gateRequest({ ...withManifest({ ...weights, ...more }), ...nothing })).to_pass
    expect(hint(changes)).toEqual([
      'Score 0, needs 3.5. Set goal_labels: ["a","b","c","d","e"] or use a keyword in `why` (a, b, c, d, e)' +
        ' or name an entity of the type a, b, c, d, e or run it with success, which counts for a while.',
    ])
    const none = { 'activation.goal_labels': [], 'activation.keywords_any': [], 'activation.entity_types': [] }
    expect(hint(none)).toEqual(['Score 0, needs 3.5. Run it with success, which counts for a while.'])
    expect(hint({ ...none, 'activation.score_weights': { recent_success: 0 } })).toEqual([
      'Score 0, needs 3.5. No cue of this skill adds more: its tau is too high.',
    ])
  })

  test('has in its check of the score what each cue gave', () => {
    const scoreCheck = (changes: Partial<GateRequest>) => decide(gateRequest(changes)).stages.find(({ stage }) => stage === 'score')?.checks
    const detail = '4 of 3.5 points: goal_label 3, keyword_hit 1, entity_type 0 of 0, recent_success 0 of 1.5'
    expect(scoreCheck({})).toEqual([{ check: 'score', passed: true, detail }])
    expect(scoreCheck({ named: true, goal_labels: [], text: '' })).toEqual([
      {
        check: 'score',
        passed: true,
        detail:
          'a contract names the skill; 0 of 3.5 points: goal_label 0 of 3, keyword_hit 0 of 1, entity_type 0 of 0, recent_success 0 of 1.5',
      },
    ])
  })

  test('refuses inputs that are no JSON before it looks at anything else', () => {
    const decision = decide(gateRequest({ inputs: { app_name: undefined as unknown as string }, tools: [] }))
    const [message = ''] = decision.to_pass
    expect(message).toContain('the inputs are not plain JSON: ')
    const unreached = (stage: string) => ({ stage, status: 'not_reached', checks: [] })
    expect(decision).toEqual({
      skill_id: 'deploy.container.appservice',
      version: '1.3.0',
      verdict: 'refused',
      stage: 'preconditions',
      reason: `preconditions: ${message}`,
      stages: [
        unreached('compat'),
        { stage: 'preconditions', status: 'failed', checks: [{ check: 'json', passed: false, detail: message }] },
        unreached('score'),
        unreached('policy'),
      ],
      score: null,
      needs: [{ need: 'json', message }],
      to_pass: [message],
      questions: [],
      parsable: [],
      probes: [],
      decided_at: NOW,
    })
  })

  test('passes a score that is exactly the threshold', () => {
    expect(decide(gateRequest(withManifest({ 'activation.tau': 4 }))).verdict).toBe('allow')
    expect(decide(gateRequest(withManifest({ 'activation.tau': 4.000001 }))).stage).toBe('score')
  })

  test('repeats a decision from its probe calls, without the probes', () => {
    for (const risk of ['low', 'high']) {
      const request = gateRequest({ probes: { deploy_window: () => 'open', risk_scan: () => risk } })
      const decision = decide(request)
      expect(decide({ ...request, probes: {}, recorded: decision.probes })).toEqual(decision)
    }
  })

  test('never throws, and never allows what is not complete', () => {
    const hostile = fc.dictionary(
      fc.oneof(fc.string(), fc.constantFrom('app_name', 'image_tag', '__proto__', 'constructor')),
      fc.anything(),
    )
    assertProperty(
      'skills/gate/gate',
      fc.property(hostile, fc.string(), fc.string(), (fields, expression, text) => {
        const manifest = deployManifest()
        manifest.preconditions.invariants = [expression]
        const decision = decide(gateRequest({ manifest, inputs: fields as JsonFields, text }))
        expect(decision.verdict).not.toBe('allow')
      }),
    )
    expect(decide(gateRequest({ inputs: { app_name: undefined as unknown as string } })).verdict).toBe('refused')
  })
})

test('a run that a clock far ahead has timed holds up no other', () => {
  expect(decide(gateRequest({ last_run_at: NOW + 86_400_000 }))).toMatchObject({ verdict: 'allow' })
  expect(decide(gateRequest({ last_run_at: NOW + 100 }))).toMatchObject({ verdict: 'refused' })
})
