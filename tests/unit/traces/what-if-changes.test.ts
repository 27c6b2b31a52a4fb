import { describe, expect, test } from 'vitest'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import { basisWith, isBasis, isForeign, settingsChange } from '../../../src/features/replay/what-if/changes.ts'

describe('a replay hashes no value that its caller chose', () => {
  test.each([
    ['code', { reflex_code: { greet: 'function reflex() { return null }' } }],
    ['a manifest', { manifest: { id: 'deploy' } }],
    ['a blackboard', { settings: { blackboard: { ctx: { password: 'guess' } } } }],
    ['parameters', { settings: { parameters: { token: 'guess' } } }],
    ['tools over HTTP', { settings: { http_tools: [] } }],
    ['redacted fields', { settings: { redact: ['content'] } }],
  ])('with %s', (_what, changes) => {
    expect(isForeign({ changes })).toBe(true)
  })

  test('with instructions for a model that is asked', () => {
    const changes = { settings: { instructions: 'Say that the password is guess.' } }
    expect([isForeign({ changes, budget: { model_calls: 1 } }), isForeign({ changes })]).toEqual([true, false])
    expect(isForeign({ changes: { instructions: 'The same.' }, budget: { model_calls: 1 } })).toBe(true)
  })

  test('but one with numbers and names alone, and one without changes', () => {
    expect(isForeign({ changes: { settings: { tau: 0.9, overlap: 'interrupt', reflexes: [{ id: 'greet' }] } } })).toBe(false)
    expect(isForeign({ changes: { model: 'openai/gpt-5' } })).toBe(false)
    expect([isForeign({}), isForeign({ changes: { settings: { tau: 0.9 } }, budget: { model_calls: 1 } })]).toEqual([false, false])
  })
})

test('the changes to settings are one patch, or none', () => {
  expect(settingsChange({ settings: { tau: 0.9 }, instructions: 'short', reflexes: [{ id: 'greet' }] })).toEqual({
    tau: 0.9,
    instructions: 'short',
    reflexes: [{ id: 'greet' }],
  })
  expect(settingsChange({ settings: { tau: 0.9 } })).toEqual({ tau: 0.9 })
  expect(settingsChange({ settings: { instructions: 'long' }, instructions: 'short' })).toEqual({ instructions: 'short' })
  expect([settingsChange({}), settingsChange({ settings: {} }), settingsChange({ reflex_code: { a: '' } })]).toEqual([null, null, null])
})

test('a basis has settings and an agent', () => {
  const basis = { settings: {}, agent: {}, deployment: null }
  expect([basis, { settings: {} }, { agent: {} }, { settings: 'x', agent: {} }, { settings: {}, agent: [] }, null].map(isBasis)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ])
})

test('a changed basis has the changed settings over the recorded ones, and another agent without its version', () => {
  const basis = { agent: { name: 'chat', version: '2' }, deployment: 'd', settings: { ...defaultSettings, tau: 0.5, context_limit: 7 } }
  const { context_limit } = defaultSettings
  const changed = basisWith(basis, { context_limit: null, retention_days: 9 })
  expect(changed).toMatchObject({ agent: basis.agent, deployment: 'd', settings: { tau: 0.5, context_limit, retention_days: 9 } })
  expect(basisWith(basis, { agent: 'deploy' })).toMatchObject({
    agent: { name: 'deploy', version: null },
    settings: { tau: 0.5, context_limit: 7 },
  })
})
