import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin'
import { availableParallelism } from 'node:os'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import type { Vite } from 'vitest/node'
import { boundExports } from './testing/bound-exports.ts'
import { DEPENDENCIES } from './testing/dependencies.ts'
import { RECEIPTS_KEY } from './tests/support/receipts-key.ts'
import { instrument } from './tests/walk/instrument.ts'
import { LongestFirst } from './tests/support/longest-first.ts'
import { keepTemporaryFiles } from './tests/support/temporary-files.ts'
import { runtimeLog } from './testing/runtime-log.ts'

keepTemporaryFiles()

/** The package's own entries are their sources: tests need no build. */
const PACKAGE = { tsconfigPaths: true }

/**
 * Files that run at once: more than cores, since a test in workerd waits half of its time for the
 * runner in Node, and the runner for it.
 */
const MOST_AT_ONCE = Math.max(4, availableParallelism() + 2)

/** Projects of one group run at the same time. */
const shared = (name: string, files: string, groupOrder: number) => ({
  name,
  include: [files],
  isolate: false,
  maxWorkers: MOST_AT_ONCE,
  sequence: { groupOrder },
  testTimeout: 30_000,
})

/** SQL for Vite, which reads the imports of all files for `vitest related`. */
const sqlAsText: Vite.Plugin = {
  name: 'sql-as-text',
  transform: (code, id) => (id.endsWith('.sql') ? { code: `export default ${JSON.stringify(code)}`, map: null } : null),
}

/**
 * Files that import by a pattern are transformed in each run: other files may match by now. Vitest
 * itself sees only the calls without a type argument.
 */
const patternsUncached: Vite.Plugin = {
  name: 'patterns-uncached',
  configureVitest: ({ experimental_defineCacheKeyGenerator: keyOf }) =>
    keyOf(({ sourceCode }) => (sourceCode.includes('import.meta.glob') ? false : undefined)),
}

/** Mutation testing leaves out simulations of many lives, counts of source lines, and times. */
const TAGS = [{ name: 'simulation' }, { name: 'sources' }, { name: 'timed' }]

const inNode = (name: string, files: string, groupOrder: number): TestProjectInlineConfiguration => ({
  resolve: PACKAGE,
  plugins: [sqlAsText, patternsUncached],
  test: { ...shared(name, files, groupOrder), pool: 'threads', tags: TAGS, execArgv: ['--disable-warning=ExperimentalWarning'] },
})

/**
 * Tests within the Workers runtime. All files of a worker process share its modules; the stored
 * data is deleted before each file.
 */
const inWorkers = async (
  name: string,
  files: string,
  groupOrder: number,
  { more = [], setup = [], bindings = {} }: { more?: Vite.Plugin[]; setup?: string[]; bindings?: Record<string, string> } = {},
): Promise<TestProjectInlineConfiguration> => ({
  resolve: PACKAGE,
  plugins: [
    ...more,
    sqlAsText,
    patternsUncached,
    runtimeLog(),
    cloudflareTest({
      main: './tests/support/worker.ts',
      wrangler: { configPath: './wrangler.toml' },
      remoteBindings: false,
      verbose: false,
      miniflare: {
        r2Buckets: ['TEST_ARCHIVE'],
        d1Databases: ['CONTROL_DB', 'TEST_EVENTS_DB_1', 'TEST_EVENTS_DB_2'],
        bindings: {
          REFLEX_ADMIN_KEY: 'test-admin-key',
          REFLEX_QUEUE_NOTES: 'on',
          REFLEX_REDACTION_SECRET: 'redaction-key-for-the-tests',
          REFLEX_RECEIPTS_KEY: RECEIPTS_KEY,
          REFLEX_TOOL_TICKETS: 'Bearer ticket-secret',
          REFLEX_TOOL_TICKETS_HOSTS: 'tickets.example.com, *.tickets.example.com',
          REFLEX_WEBHOOK_OPS: 'whsec_dGhlLWtleS1vZi10aGUtd2ViaG9va3Mtb2YtdGVzdHM=',
          REFLEX_WEBHOOK_OPS_HOSTS: 'tickets.example.com',
          REFLEX_HOOK_BILLING: 'whsec_YW5vdGhlci1rZXktZm9yLWluY29taW5nLWhvb2tzIQ==',
          REFLEX_HOOK_CI: 'the-secret-of-the-ci-hook',
          REFLEX_HOOK_CI_A: 'the-secret-of-tenant-a',
          REFLEX_HOOK_CI_A_SCOPES: 'tenant-a/*',
          REFLEX_HOOK_CI_B: 'the-secret-of-tenant-b',
          REFLEX_HOOK_CI_B_SCOPES: 'tenant-b/*',
          REFLEX_HOOK_MINE_SCOPES: 'team-h/*',
          REFLEX_HOOK_PLACES_SCOPES: 'team-p/*, team-q/*',
          REFLEX_TOOL_TICKETS_SCOPES: '*',
          REFLEX_HOOK_SLACK: '8f742231b10e8888abcd99yyyzzz85a5',
          REFLEX_HOOK_TELEGRAM: 'a-long-random-text-for-telegram',
          REFLEX_HOOK_SHOP: 'whsec_the_shop_signs_with_this_text',
          REFLEX_TOOL_NOWHERE: 'nowhere-secret',
          MIGRATIONS: await readD1Migrations('./migrations'),
          BOUND_EXPORTS: boundExports('./wrangler.toml'),
          ...bindings,
        },
      },
    }),
  ],
  test: {
    ...shared(name, files, groupOrder),
    setupFiles: ['testing/setup.ts', ...setup],
    deps: { optimizer: { ssr: { enabled: true, include: DEPENDENCIES } } },
  },
})

export default defineConfig(async () => ({
  test: {
    // Transformed files are kept: to transform them takes half of the time until a test starts.
    experimental: { fsModuleCache: true },
    // A line for each file. The output of a test is printed where the test fails.
    silent: 'passed-only' as const,
    slowTestThreshold: 600_000,
    sequence: { sequencer: LongestFirst },
    // An object that prints or imports while its runtime stops belongs to no test.
    onUnhandledError: ({ name }: { name?: string | undefined }) => name !== 'EnvironmentTeardownError',
    coverage: {
      provider: 'custom' as const,
      customProviderModule: 'tests/support/coverage.ts',
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'html', 'json-summary'],
      thresholds: { lines: 90 },
    },
    projects: [
      inNode('unit', '{tests/unit,templates/sdk}/**/*.test.ts', 0),
      await inWorkers('worker', 'tests/worker/!(testing)/**/*.test.ts', 0, {
        setup: ['tests/support/plans.ts', 'tests/support/absent-tables.ts'],
      }),
      // These move the clock, which all files of a runtime share. A new project asks a person about
      // destinations that nobody named, so the templates must pass under that.
      await inWorkers('testing', '{tests/worker/testing,templates/!(sdk)/tests}/*.test.ts', 0, { bindings: { REFLEX_ORIGINS: 'ask' } }),
      await inWorkers('walk', 'tests/walk/*.test.ts', 0, { more: [instrument] }),
      // Scopes and processes that die at every write of their journals: slow, so `npm test` does
      // not run them; `npm run test:crash` and CI do.
      inNode('crash-node', 'tests/crash/node/*.test.ts', 0),
      await inWorkers('crash', 'tests/crash/*.test.ts', 0, { setup: ['tests/support/absent-tables.ts'] }),
    ],
  },
}))
