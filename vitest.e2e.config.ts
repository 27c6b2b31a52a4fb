import { defineConfig } from 'vitest/config'
import { LongestFirst } from './tests/support/longest-first.ts'
import { keepTemporaryFiles } from './tests/support/temporary-files.ts'

keepTemporaryFiles()

/**
 * Real clients against the Worker in its runtime. Each file has its own server, port and state.
 * Most servers are `serve.ts`. The demo, an installed package and another Worker are served by
 * `wrangler dev` itself.
 */
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
