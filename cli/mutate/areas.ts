import { globSync } from 'node:fs'

export type Area = { files: readonly string[]; tests: readonly string[] }

const unit = (...folders: string[]): string[] => folders.map((folder) => `tests/unit/${folder}/**/*.test.ts`)

/**
 * The areas that run in Node, each with its own unit tests. Other tests would notice more by
 * chance, and each of them is imported again for each change.
 */
export const areas: Readonly<Record<string, Area>> = {
  proof: { files: ['src/evidence/**/*.ts'], tests: unit('proof') },
  ledger: { files: ['src/features/market/ledger/**/*.ts'], tests: unit('market', 'ledger') },
  gate: { files: ['src/skills/gate/**/*.ts'], tests: [...unit('skills/gate'), 'tests/unit/skills/gate-sensitive.test.ts'] },
  runner: {
    files: ['src/skills/runner/{call-step,run-plan}.ts'],
    tests: [...unit('skills/runner'), 'tests/unit/skills/runner-*.test.ts'],
  },
  core: { files: ['src/core/*.ts', 'src/core/node/*.ts'], tests: unit('core') },
  auth: { files: ['src/http/auth/**/*.ts', 'src/contract/principal.ts'], tests: unit('http/auth', 'contract') },
  secrets: {
    files: ['src/base/secrets.ts', 'src/traces/redact.ts', 'src/traces/keyed-hash.ts'],
    tests: ['tests/unit/base/secrets.test.ts', 'tests/unit/traces/redact.test.ts', 'tests/unit/standalone/hide-secrets.test.ts'],
  },
  decide: {
    files: ['src/reflexes/{decide,history,promotion,run-reflex}.ts'],
    tests: ['tests/unit/reflexes/{decide,history,promotion,run-reflex}.test.ts', 'tests/unit/agents/overlap.test.ts'],
  },
  replay: {
    files: ['src/features/replay/{report,recorded-chain,recorded-effects,bounded-sandbox}.ts', 'src/features/replay/what-if/changes.ts'],
    tests: [...unit('replay'), 'tests/unit/traces/what-if-changes.test.ts'],
  },
}

export const filesOf = ({ files }: Area): string[] => globSync([...files]).toSorted()
