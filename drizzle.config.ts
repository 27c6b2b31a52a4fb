import { defineConfig } from 'drizzle-kit'

// `npm run migrations` writes the changes of the schemas: of D1's by default, of a scope's with
// REFLEX_SCHEMA=scope.
export default process.env['REFLEX_SCHEMA'] === 'scope'
  ? defineConfig({ dialect: 'sqlite', driver: 'durable-sqlite', schema: './src/engine/storage/schema.ts', out: './migrations/scope' })
  : defineConfig({
      dialect: 'sqlite',
      // Agents' tables have migrations of their own, which the package leaves out by their name:
      // `npx drizzle-kit generate --name ssh_guard`.
      schema: [
        './src/store/schema.ts',
        './src/store/artifacts/tables.ts',
        './src/features/*/store/*tables.ts',
        './src/features/*/store.ts',
        './examples/agents/*/tables.ts',
      ],
      out: './migrations',
    })
