import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { settingsPage } from '../../../cli/docs/settings-page.ts'
import { conditionError } from '../../../src/agent/condition.ts'
import { defaultSettings, settingFields, settingsPatch } from '../../../src/contract/settings/settings.ts'
import { plainSchema } from '../../../src/contract/plain-schema.ts'

const names = Object.keys(settingFields)
const described: Record<string, { description?: string; examples?: unknown[] }> = plainSchema(settingsPatch).properties ?? {}

test.each(names)('the API describes the setting %s, with an example that is valid', (name) => {
  const { description = '', examples = [] } = described[name] ?? {}
  expect(description, `give ${name} a .meta({ description, examples }) in src/contract/settings/settings.ts`).toMatch(/^\S.*\.$/s)
  const example = examples[0] ?? { ...defaultSettings }[name]
  expect(example, `give ${name} an example in src/contract/settings/settings.ts`).toBeDefined()
  expect(settingsPatch.safeParse({ [name]: example }).error?.issues).toBeUndefined()
})

test('docs/settings.md is what the schema says', () => {
  expect(readFileSync('docs/settings.md', 'utf8'), 'run: npm run docs:reference').toBe(settingsPage())
})

test('each condition that docs/settings.md shows is one', () => {
  const [, block = ''] = /What `when` may say[^]*?```\n([^]*?)```/.exec(settingsPage()) ?? []
  const conditions = block.trim().split('\n')
  expect(conditions.length).toBeGreaterThan(1)
  expect(conditions.map(conditionError)).toEqual(conditions.map(() => null))
})
