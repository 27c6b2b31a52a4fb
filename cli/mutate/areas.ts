import { globSync } from 'node:fs'

export type Area = { files: readonly string[]; tests: readonly string[] }

const unit = (...folders: string[]): string[] => folders.map((folder) => `tests/unit/${folder}/**/*.test.ts`)

/** The areas that run in Node, with the unit tests that may notice a break. */
export const areas: Readonly<Record<string, Area>> = {
  proof: { files: ['src/features/proof/evidence/**/*.ts'], tests: unit('proof') },
  ledger: { files: ['src/features/market/ledger/**/*.ts'], tests: unit('market', 'ledger') },
  gate: { files: ['src/skills/gate/**/*.ts'], tests: unit('skills') },
  runner: { files: ['src/skills/runner/**/*.ts'], tests: unit('skills') },
  core: { files: ['src/core/**/*.ts'], tests: unit('core') },
  auth: { files: ['src/http/auth/**/*.ts', 'src/contract/principal.ts'], tests: unit('http/auth', 'contract') },
  secrets: {
    files: ['src/base/secrets.ts', 'src/traces/redact.ts', 'src/traces/keyed-hash.ts'],
    tests: [
      ...unit('base', 'traces'),
      'tests/unit/standalone/hide-secrets.test.ts',
      'tests/unit/scope/{log,storage,metered-model}.test.ts',
    ],
  },
  decide: {
    files: ['src/reflexes/{decide,history,promotion,run-reflex}.ts'],
    tests: unit('reflexes', 'agents', 'replay'),
  },
  replay: {
    files: ['src/features/replay/{report,recorded-chain,recorded-effects,bounded-sandbox}.ts', 'src/features/replay/what-if/changes.ts'],
    tests: unit('replay', 'traces'),
  },
}

export const filesOf = ({ files }: Area): string[] => globSync([...files]).toSorted()
