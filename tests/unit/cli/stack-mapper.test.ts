import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { stackMapper, startStackMapper } from '../../../cli/dev/stack-mapper.ts'

describe('a stack of the bundle', () => {
  let repository = ''
  let bundle = ''
  const frame = (place: string, file = bundle) => `    at trigger (${pathToFileURL(file).href}:${place})`
  beforeEach(() => {
    repository = mkdtempSync(path.join(tmpdir(), 'reflex-stack-'))
    const folder = path.join(repository, '.wrangler/tmp/dev-1')
    mkdirSync(folder, { recursive: true })
    bundle = path.join(folder, 'index.js')
    // The bundle's second line is the third of the source, from its fifth column on.
    const map = { version: 3, sources: ['../../../src/agents/mine.ts'], names: [], mappings: ';AAEI' }
    writeFileSync(`${bundle}.map`, JSON.stringify(map))
  })

  test('refers to the lines of the source files', async () => {
    const mapper = await startStackMapper(repository)
    const response = await fetch(mapper.url, { method: 'POST', body: `TypeError: no\n${frame('2:1')}` })
    expect(await response.text()).toBe('TypeError: no\n    at trigger (src/agents/mine.ts:3:5)')
    mapper.close()
  })

  test.each([
    ['of another folder', () => frame('2:1', '/etc/.wrangler/tmp/x/index.js')],
    ['of a bundle that is gone', () => frame('2:1', path.join(repository, '.wrangler/tmp/gone/index.js'))],
    ['of no bundle', () => '    at node:internal/timers:1:1'],
  ])('%s stays as it is', (_, line) => {
    expect(stackMapper(repository)(line())).toBe(line())
  })
})
