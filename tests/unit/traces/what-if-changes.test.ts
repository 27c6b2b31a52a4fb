import { describe, expect, test } from 'vitest'
import { isForeign } from '../../../src/features/replay/what-if/changes.ts'

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
    expect(isForeign({})).toBe(false)
  })
})
