import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tests/support/longest-first.ts'

/** Real clients against the real local server. Each file has its own server, port and state. */
export default defineConfig({
  test: {
    globalSetup: 'tests/e2e/setup.ts',
    include: ['tests/e2e/**/*.test.ts'],
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    testTimeout: 600_000,
    hookTimeout: 120_000,
    silent: 'passed-only',
    slowTestThreshold: 600_000,
    execArgv: ['--disable-warning=ExperimentalWarning'],
  },
})
