import { describe, expect, it } from 'vitest'
import { costOf } from '../../../src/models/model-call.ts'

const million = { input_tokens: 1_000_000, output_tokens: 1_000_000 }

describe('costOf', () => {
  it('prices input and output apart', () => {
    expect(costOf('gpt-4o-mini', { input_tokens: 2_000_000, output_tokens: 0 })).toBeCloseTo(0.3)
    expect(costOf('gpt-4o-mini', { input_tokens: 0, output_tokens: 500 })).toBeCloseTo(0.0003)
  })

  it.each([
    ['gpt-4o-mini', 0.75],
    ['workers-ai/@cf/cloudflare/clef', 0.24],
    ['workers-ai/@cf/cloudflare/clef-flash', 0.09],
    ['openai-compatible/gpt-4o-mini', 0.75],
    ['openai-compatible/openai/gpt-4o-mini', 0.75],
    ['@cf/openai/gpt-oss-20b', 0.5],
    ['workers-ai/@cf/openai/gpt-oss-20b', 0.5],
    ['openai-compatible/workers-ai/@cf/openai/gpt-oss-20b', 0.5],
  ])('finds %s with and without its provider', (model, cost) => {
    expect(costOf(model, million)).toBeCloseTo(cost)
  })

  it.each([
    ['gpt-4o-mini-2024-07-18', 0.75],
    ['gpt-4o-2024-11-20', 12.5],
    ['gpt-4o-2024-05-13', 20],
    ['gpt-5-chat-latest', 11.25],
    ['@cf/meta/llama-3.1-8b-instruct-fp8-fast', 0.429],
  ])('prices %s by the longest name it begins with', (model, cost) => {
    expect(costOf(model, million)).toBeCloseTo(cost)
  })

  it.each(['gpt-5.9', 'gpt-5-colossal', 'gpt-4o-realtime-preview', 'llama3.1', 'openai/gpt-oss-20b', '', 'openai-compatible/offline'])(
    'knows no price for %j rather than a wrong one',
    (model) => {
      expect(costOf(model, million)).toBeNull()
    },
  )

  it('costs nothing offline', () => {
    expect(costOf('offline', million)).toBe(0)
  })
})
