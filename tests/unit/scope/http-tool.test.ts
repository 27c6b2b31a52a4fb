import { expect, test } from 'vitest'
import { httpToolOf } from '../../../src/tools/http-tool.ts'

test.each([
  [undefined, 15_000],
  [3000, 3000],
])('an HTTP tool with the time limit %s is cut off by the effect lane, not by itself, after %i ms', (timeout_ms, expected) => {
  const setting = {
    name: 'http.a',
    description: 'a',
    method: 'POST',
    url: 'https://a.example/',
    ...(timeout_ms ? { timeout_ms } : {}),
  } as const
  expect(httpToolOf(setting, { allowed_hosts: ['a.example'] }).timeout_ms).toBe(expected)
})
