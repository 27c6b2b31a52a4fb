import { expect, test } from 'vitest'
import { canonicalJson } from '../../../src/base/json.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { RecordedModel } from '../../../src/features/replay/recorded-model.ts'
import { Comparison } from '../../../src/features/replay/report.ts'
import { Source } from '../../../src/features/replay/source.ts'
import { partHash } from '../../../src/traces/ids.ts'
import { part } from '../agents/agent-fixtures.ts'

type Called = Extract<LogEntry, { kind: 'model-called' }>
const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }

/** A model that was asked once, and answered with so many calls. */
function recorded(calls: number) {
  const content = Array.from({ length: calls }, (_, index) => ({
    type: 'tool-call',
    toolCallId: String(index),
    toolName: 'look',
    input: {},
  }))
  const usage = { input_tokens: 1, output_tokens: 1, cost_usd: null, model_calls: 1 }
  const called = part<Called>({
    kind: 'model-called',
    model: 'm',
    status: 'ok',
    content,
    usage,
    prompt: [partHash(canonicalJson(message))],
  })
  const source = new Source(part<ConstructorParameters<typeof Source>[0]>({ scope: 'a', events: [], entries: [called] }))
  return new RecordedModel({ source, calls: [called], comparison: new Comparison(), clean: (value) => value })
}

test('a recorded answer is given with all of its calls, up to what a scope takes of a model', async () => {
  const { content } = await recorded(256).doGenerate({ prompt: [message] })
  expect(content).toHaveLength(256)
  const model = recorded(257)
  await expect(model.doGenerate({ prompt: [message] })).rejects.toThrow('more than 256 calls of tools')
  expect(model.diverged).toContain('which no scope takes')
})
