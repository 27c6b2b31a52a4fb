import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as core from '../../../src/core/index.ts'

const folder = join(import.meta.dirname, '../../../src/core')
/** The library itself. `node` and `d1` are adapters. */
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(folder, name), 'utf8') }))

test('the library of document 1 stays under 500 lines, comments included', { tags: ['sources'] }, () => {
  expect(files.length).toBeGreaterThan(5)
  expect(files.reduce((lines, { text }) => lines + text.split('\n').length - 1, 0)).toBeLessThan(500)
})

test.each(files)('$name imports nothing from outside the library', ({ text }) => {
  const imports = Array.from(text.matchAll(/\b(?:from|import)\s*\(?\s*'([^']+)'/g), ([, path]) => String(path))
  const outside = imports.filter((path) => !/^\.\/[a-z-]+\.ts$/.test(path))
  expect(outside.filter((path) => !['zod', 'uuid', '@ai-sdk/provider'].includes(path))).toEqual([])
  expect(imports).not.toContain('./index.ts')
})

test.each(files)('$name has no word of Durable Objects', ({ text }) => {
  expect(text).not.toMatch(/durable ?object|cloudflare|workerd|wrangler/i)
})

test('the exports suffice for a loop of one’s own', () => {
  expect(Object.keys(core)).toEqual(
    expect.arrayContaining([
      'DecisionContext',
      'ScopedLocks',
      'SqlEventStore',
      'derive',
      'eventTable',
      'eventType',
      'eventUnion',
      'keywordFilter',
      'rateLimitFilter',
      'runAgent',
      'runAgentWithLock',
      'runAgentWithTimeout',
      'withDefaults',
    ]),
  )
})
