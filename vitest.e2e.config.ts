import { defineConfig } from 'vitest/config'

/** Against the real local server, with real clients. Each file has a server, a port and a state of its own. */
export default defineConfig({
  test: {
    include: ['tests/e2e/**/*.test.ts'],
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 120_000,
    silent: 'passed-only',
    slowTestThreshold: 600_000,
    execArgv: ['--disable-warning=ExperimentalWarning'],
  },
})
