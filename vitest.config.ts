import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-pool-workers'
import { defineConfig } from 'vitest/config'

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
          cloudflareTest({
            main: './tests/support/worker.ts',
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
