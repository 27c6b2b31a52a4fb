import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { unknownVariables } from '../../../src/http/operations/variables.ts'

const set = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, 'set']))

test.each([
  ['REFLEX_EVENT_BYTES', 'REFLEX_EVENTS_BYTES'],
  ['REFLEX_RETENTION_DAY', 'REFLEX_RETENTION_DAYS'],
  ['REFLEX_ALERT_COST', 'REFLEX_ALERT_COST_USD'],
  ['REFLEX_TOOLS_TICKETS', 'REFLEX_TOOL_TICKETS'],
  ['REFLEX_HOOKS_CI_SCOPES', 'REFLEX_HOOK_CI_SCOPES'],
  ['REFLEX_TOOL_', 'REFLEX_TOOL_NAME'],
])('%s is unknown, and the nearest name is %s', (name, nearest) => {
  expect(unknownVariables(set('REFLEX_MODEL', name, 'DB'))).toEqual([{ name, nearest }])
})

test('a secret with a name of its own is known, with its hosts and scopes, and so is a variable without the prefix', () => {
  const secrets = ['TOOL_TICKETS', 'WEBHOOK_OPS', 'HOOK_CI'].flatMap((name) => [
    `REFLEX_${name}`,
    `REFLEX_${name}_HOSTS`,
    `REFLEX_${name}_SCOPES`,
  ])
  expect(unknownVariables(set(...secrets, 'REFLEXIVE', 'MY_REFLEX_MODE', 'OTEL_SERVICE_NAME'))).toEqual([])
})

test('no variable that a page, a template or the command line names is called unknown', () => {
  const files = globSync(['docs/*.md', 'README.md', 'wrangler.toml', 'templates/**/*.{ts,md,toml}', 'cli/reflex/**/*.ts', 'cli/lib/*.ts'], {
    exclude: (name) => name.includes('node_modules'),
  })
  const named = files.flatMap((file) => readFileSync(file, 'utf8').match(/\bREFLEX_[A-Z][A-Z0-9_]*[A-Z0-9]\b/g) ?? [])
  expect(named).toContain('REFLEX_PROFILE')
  // It is for a test, which a page shows how to run.
  expect(unknownVariables(set(...named.filter((name) => name !== 'REFLEX_LEDGER_KILLS')))).toEqual([])
})
