import { existsSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { cloudflareTest, readD1Migrations } from '@cloudflare/vitest-plugin'
import type { Vite } from 'vitest/node'
import { boundExports } from './bound-exports.ts'
import { DEPENDENCIES } from './dependencies.ts'
import { runtimeLog } from './runtime-log.ts'

/** `configPath`: the project's wrangler.toml. */
export type ReflexTestOptions = { configPath?: string }

const packageFolder = path.dirname(findPackageJSON(import.meta.url) ?? import.meta.dirname)
/** A module beside this one: a source, or what it was built into. */
const module = (name: string): string => {
  const built = path.join(import.meta.dirname, `${name}.js`)
  return existsSync(built) ? built : path.join(import.meta.dirname, `${name}.ts`)
}

/** Vitest plugins that run a project's tests in the runtime of Workers; `testScope` needs them. */
export function reflexTest({ configPath = './wrangler.toml' }: ReflexTestOptions = {}): Vite.Plugin[] {
  const workers = cloudflareTest(async () => ({
    main: module('worker'),
    wrangler: { configPath },
    remoteBindings: false,
    verbose: false,
    miniflare: {
      bindings: {
        MIGRATIONS: await readD1Migrations(path.join(packageFolder, 'migrations')),
        BOUND_EXPORTS: boundExports(configPath),
      },
    },
  }))
  const set_up: Vite.Plugin = {
    name: 'reflex-agents',
    config: ({ test }) => ({
      test: {
        // Longer than `testScope` waits, so that a test fails by the reason that it gives.
        testTimeout: test?.testTimeout ?? 30_000,
        setupFiles: [module('setup')],
        deps: { optimizer: { ssr: { enabled: true, include: DEPENDENCIES.map((name) => `reflex-agents > ${name}`) } } },
      },
    }),
  }
  return [runtimeLog(), workers, set_up]
}
