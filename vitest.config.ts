import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-pool-workers'
import path from 'node:path'
import { defineConfig, type Plugin } from 'vitest/config'

const listed = path.resolve('src/agents/index.ts')
const withTestAgents = path.resolve('tests/support/agents.ts')

/** The worker tests' deployment has agents of its own, beside the real ones: what a trigger does there is each test's to say. */
const testAgents: Plugin = {
  name: 'test-agents',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    if (!source.endsWith('/index.ts') || importer === withTestAgents) return null
    const resolved = await this.resolve(source, importer, { ...options, skipSelf: true })
    return resolved?.id === listed ? withTestAgents : null
  },
}

export default defineConfig(async () => ({
  test: {
    coverage: {
      provider: 'istanbul' as const,
      include: ['src/**/*.ts'],
      reporter: ['text-summary', 'text', 'json-summary'],
      thresholds: { lines: 90 },
    },
    projects: [
      { test: { name: 'unit', include: ['tests/unit/**/*.test.ts'] } },
      {
        plugins: [
          testAgents,
          cloudflareTest({
            wrangler: { configPath: './wrangler.toml' },
            remoteBindings: false,
            miniflare: {
              bindings: {
                REFLEX_ADMIN_KEY: 'test-admin-key',
                REFLEX_TOOL_TICKETS: 'Bearer ticket-secret',
                REFLEX_TOOL_TICKETS_HOSTS: 'tickets.example.com, *.tickets.example.com',
                REFLEX_TOOL_NOWHERE: 'nowhere-secret',
                MIGRATIONS: await readD1Migrations('./migrations'),
              },
            },
          }),
        ],
        test: { name: 'worker', include: ['tests/worker/**/*.test.ts'], setupFiles: ['tests/support/apply-migrations.ts'] },
      },
    ],
  },
}))
