import { defineConfig } from 'vitest/config'

/** Against the real local server, with real clients: one file at a time, each with a server and a state of its own. */
export default defineConfig({
  test: { include: ['tests/e2e/**/*.test.ts'], fileParallelism: false, testTimeout: 600_000, hookTimeout: 120_000 },
})
