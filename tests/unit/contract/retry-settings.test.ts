import { describe, expect, test } from 'vitest'
import { defaultRetry, effectiveRetry } from '../../../src/contract/settings/retry.ts'
import { mergeSettings, settingsPatch, type SettingsPatch } from '../../../src/contract/settings/settings.ts'

const agent = { max_attempts: 9, retry: { backoff_ms: 50 } }
const after = (...patches: SettingsPatch[]) => effectiveRetry([agent, patches.reduce(mergeSettings, {})])

describe('retry settings', () => {
  test('come from the scope, then from its agent, then from the defaults', () => {
    expect(after()).toEqual({ ...defaultRetry, max_attempts: 9, backoff_ms: 50 })
    expect(after({ retry: { max_backoff_ms: 70 } })).toEqual({ ...defaultRetry, max_attempts: 9, backoff_ms: 50, max_backoff_ms: 70 })
  })

  test('change field by field, and null goes back to what is below', () => {
    expect(after({ retry: { backoff_ms: 1, model_outage_s: 2 } }, { retry: { backoff_ms: null } })).toMatchObject({
      backoff_ms: 50,
      model_outage_s: 2,
    })
    expect(after({ retry: { backoff_ms: 1, max_attempts: 2 } }, { retry: null })).toEqual({
      ...defaultRetry,
      ...agent.retry,
      max_attempts: 9,
    })
  })

  test('max_attempts and retry.max_attempts are one setting: the last one set counts', () => {
    expect(after({ max_attempts: 2 }).max_attempts).toBe(2)
    expect(after({ retry: { max_attempts: 4 } }, { max_attempts: 2 }).max_attempts).toBe(2)
    expect(after({ max_attempts: 2 }, { retry: { max_attempts: 4 } }).max_attempts).toBe(4)
    expect(after({ max_attempts: 2 }, { retry: { max_attempts: null } }).max_attempts).toBe(9)
    expect(effectiveRetry([{ retry: { max_attempts: 5 } }, { max_attempts: 2 }]).max_attempts).toBe(2)
  })

  test.each([
    { retry: { backoff_ms: 0 } },
    { retry: { model_outage_s: -1 } },
    { retry: { max_backoff_ms: 1.5 } },
    { retry: { patience: 1 } },
    { max_attempts: 2, retry: { max_attempts: 3 } },
    { on_tool_error: 'ignore' },
  ])('%j is refused', (patch) => {
    expect(settingsPatch.safeParse(patch).success).toBe(false)
  })
})
