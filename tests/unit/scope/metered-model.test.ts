import { generateText } from 'ai'
import { afterEach, expect, test, vi } from 'vitest'
import { newSpanId, newTraceId } from '../../../src/core/event.ts'
import { Masks } from '../../../src/scope/log/masks.ts'
import { countedModel, type CountedParts } from '../../../src/scope/turns/metered-model.ts'

const head = { trace_id: newTraceId(), span_id: newSpanId(), parent_id: null, event_ids: [], duration_ms: null }
const answer = {
  id: '1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

afterEach(() => vi.restoreAllMocks())

test('each request to a model carries the span of its call in the log, below the turn', async () => {
  const headers: Headers[] = []
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    headers.push(new Headers(init?.headers))
    return Response.json({ ...answer, choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'fine' } }] })
  })
  const logged: { kind: string; span_id: string; parent_id: string }[] = []
  const unit = { log: (entry: (typeof logged)[number]) => logged.push(entry), count: () => {} }
  const parts = {
    env: {
      REFLEX_MODEL: 'openai-compatible/m',
      OPENAI_COMPATIBLE_BASE_URL: 'https://models.example.com/v1',
      OPENAI_COMPATIBLE_API_KEY: 'key',
    },
    agent: () => ({ offline: [] }),
    budget: { allow: () => ({ ok: true }), spend: () => {} },
    outage: { allow: () => ({ ok: true }) },
    model_calls: { answered: () => {}, failed: () => {} },
    hide: (value: unknown) => value,
    log: { clean: (value: unknown) => value, masks: new Masks() },
    log_parts: { put: () => 'hash' },
    trace_marks: { of: () => ({}) },
    unit: (work: (open: typeof unit) => void) => work(unit),
    now: Date.now,
    settings: () => ({}),
  } as unknown as CountedParts
  const model = countedModel(parts, { turn_id: 't', head, signal: new AbortController().signal })
  await Promise.all([generateText({ model, prompt: 'one' }), generateText({ model, prompt: 'two' })])
  expect(logged).toMatchObject([
    { kind: 'model-called', parent_id: head.span_id },
    { kind: 'model-called', parent_id: head.span_id },
  ])
  const spans = logged.map(({ span_id }) => `00-${head.trace_id}-${span_id}-01`)
  expect(new Set(headers.map((sent) => sent.get('traceparent')))).toEqual(new Set(spans))
  expect(new Set(spans).size).toBe(2)
})
