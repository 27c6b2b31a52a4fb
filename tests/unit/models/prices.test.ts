import { describe, expect, it } from 'vitest'
import { costOf, ownPricesOf, ownPricesProblem } from '../../../src/models/model-call.ts'

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

  it('takes the prices of the deployment first, with and without the provider in the name', () => {
    const own = ownPricesOf({ REFLEX_MODEL_PRICES: '{"my-model": {"input": 2, "output": 4}, "gpt-4o-mini": {"input": 0, "output": 1}}' })
    expect(costOf('openai-compatible/my-model', million, own)).toBe(6)
    expect(costOf('gpt-4o-mini', million, own)).toBe(1)
    expect(costOf('gpt-5.9', million, own)).toBeNull()
  })

  it.each([
    ['{"my-model": 2', 'REFLEX_MODEL_PRICES is not valid JSON: write it as'],
    ['{"my-model": {"input": -1, "output": 1}}', 'REFLEX_MODEL_PRICES["my-model"]["input"]: Too small'],
    ['{"my-model": {"input": 1}}', 'REFLEX_MODEL_PRICES["my-model"]["output"]: Invalid input'],
  ])('says what is wrong with own prices such as %s, and uses none of them', (text, problem) => {
    expect(ownPricesProblem({ REFLEX_MODEL_PRICES: text })).toContain(problem)
    expect(costOf('my-model', million, ownPricesOf({ REFLEX_MODEL_PRICES: text }))).toBeNull()
  })

  it('finds nothing wrong with own prices that can be read, and with none', () => {
    expect(ownPricesProblem({})).toBeNull()
    expect(ownPricesProblem({ REFLEX_MODEL_PRICES: '{"my-model": {"input": 1, "output": 1}}' })).toBeNull()
  })

  it('costs nothing offline', () => {
    expect(costOf('offline', million)).toBe(0)
  })
})
