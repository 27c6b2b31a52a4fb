import { describe, expect, test } from 'vitest'
import { pushApproval, pushRefusal, type PushedVariables } from '../../../../src/skills/gate/pushed.ts'
import { deployManifest } from '../deploy-manifest.ts'

const skill = deployManifest({ 'plan.steps.1.tool': 'http.get', 'plan.compensation.0.tool': 'undo' })

describe('a skill of the control plane', () => {
  test('runs in each scope with each tool, unless a variable lists them', () => {
    expect(pushRefusal({}, 'team-a/x', skill)).toBeNull()
    const refusedIn = (scopes: string) => pushRefusal({ REFLEX_CONTROL_PLANE_SCOPES: scopes }, 'team-a/x', skill)
    expect([refusedIn('team-b/*, team-a/*'), refusedIn(' team-a/x ,')]).toEqual([null, null])
    const reason = 'REFLEX_CONTROL_PLANE_SCOPES of this deployment does not list the scope team-a/x'
    expect([refusedIn('team-b/*'), refusedIn(''), refusedIn(' , ')]).toEqual([reason, reason, reason])
  })

  test('needs all of its tools listed, that of its compensation included', () => {
    const refusedWith = (tools: string) => pushRefusal({ REFLEX_CONTROL_PLANE_TOOLS: tools }, 'a', skill)
    expect(refusedWith('term.exec, http.*, undo')).toBeNull()
    const reason = (tool: string) => `it uses ${tool}, which REFLEX_CONTROL_PLANE_TOOLS of this deployment does not list`
    expect(refusedWith('term.exec, http.get')).toBe(reason('undo'))
    expect(refusedWith('undo')).toBe(reason('term.exec'))
  })

  test('waits for a person where it may have effects, as the variable says', () => {
    const approval = (mode: PushedVariables['REFLEX_CONTROL_PLANE_APPROVAL'], reads: readonly string[]) =>
      pushApproval({ REFLEX_CONTROL_PLANE_APPROVAL: mode }, skill, (tool) => reads.includes(tool))
    const all = ['term.exec', 'http.get', 'undo']
    const effects = 'it came from the control plane, and term.exec, undo may have effects'
    expect([approval(undefined, ['http.get']), approval('effects', ['http.get']), approval('mistyped', ['http.get'])]).toEqual([
      effects,
      effects,
      effects,
    ])
    expect([approval(undefined, all), approval('effects', all), approval('never', [])]).toEqual([null, null, null])
    expect([approval('always', all), approval('mistyped', all)]).toEqual(Array(2).fill('it came from the control plane'))
  })
})
