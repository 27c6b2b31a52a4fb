import { expect, test } from 'vitest'
import { reflexTest } from '../../testing/config.ts'

function timeoutOf(test: { testTimeout?: number }) {
  const config = reflexTest().find(({ name }) => name === 'reflex-agents')?.config
  if (typeof config !== 'function') throw new Error('the plugin has no configuration')
  return config.call({} as never, { test }, { command: 'serve', mode: 'test' })
}

test('a project’s test may take longer than testScope waits, unless the project says how long', () => {
  expect(timeoutOf({})).toMatchObject({ test: { testTimeout: 30_000 } })
  expect(timeoutOf({ testTimeout: 1000 })).toMatchObject({ test: { testTimeout: 1000 } })
})
