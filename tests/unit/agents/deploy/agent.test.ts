import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { deploy } from '../../../../examples/agents/deploy/agent.ts'
import { deployWindow, riskScan } from '../../../../examples/agents/deploy/agent.ts'
import { answer } from '../../models/model-fixtures.ts'
import { event, scopeOf } from '../agent-fixtures.ts'

const message = (content: string) => event({ type: 'ws.message', connection_id: 'a', content })

describe('the deploy agent', () => {
  test('answers, and knows in the next turn what was said in the last', async () => {
    const model = new MockLanguageModelV4({ doGenerate: async () => answer({ content: [{ type: 'text', text: 'Which app?' }] }) })
    const scope = scopeOf(deploy, { model })
    expect(await scope.turn(message('deploy the latest'))).toEqual({ text: 'Which app?' })
    await scope.turn(message('payments'))
    expect(scope.replies).toEqual(['Which app?', 'Which app?'])
    const [, second] = model.doGenerateCalls
    expect(second?.prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
    expect(JSON.stringify(second?.prompt)).toContain('deploy the latest')
  })
})

test.each([
  ['staging', '2026-03-08T03:00:00Z', 'open'],
  ['production', '2026-03-09T08:00:00Z', 'open'],
  ['production', '2026-03-09T07:59:00Z', 'closed'],
  ['production', '2026-03-09T16:00:00Z', 'closed'],
  ['production', '2026-03-13T10:00:00Z', 'closed'],
  ['elsewhere', '2026-03-09T10:00:00Z', 'closed'],
  ['toString', '2026-03-09T10:00:00Z', 'closed'],
  [null, '2026-03-09T10:00:00Z', 'closed'],
])('the window of %s at %s is %s', (environment, now, window) => {
  expect(deployWindow(environment, new Date(now))).toBe(window)
})

test.each([
  ['registry.example/payments:4f1c2e9', 'low'],
  [`registry.example/payments@sha256:${'a'.repeat(64)}`, 'low'],
  ['registry.example/payments:latest', 'high'],
  ['registry.example/payments', 'high'],
  ['registry.example:5000/payments', 'high'],
  [7, 'high'],
  [undefined, 'high'],
])('deploying %s is a %s risk', (image_tag, risk) => {
  expect(riskScan({ image_tag })).toBe(risk)
})
