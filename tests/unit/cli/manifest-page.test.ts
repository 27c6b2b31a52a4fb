import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { manifestPage } from '../../../cli/docs/manifest-page.ts'

test('docs/manifest_schema.md is what the schema says', () => {
  expect(readFileSync('docs/manifest_schema.md', 'utf8'), 'run: npm run docs:reference').toBe(manifestPage())
})
