import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

type Walk = { title: string; limit: number; steps: { file: string; name: string }[] }

const walks: Walk[] = readFileSync('docs/walk.md', 'utf8')
  .split('\n## ')
  .slice(1)
  .map((section) => {
    const [title = ''] = section.split('\n')
    const [, limit = '0'] = /At most (\d+) files/.exec(section) ?? []
    const steps = Array.from(section.matchAll(/^\d+\. `([^`:]+):([^`]+)`/gm), ([, file = '', name = '']) => ({ file, name }))
    return { title, limit: Number(limit), steps }
  })

/** A declaration of the name: a function, a class, a type, a constant or a method. */
const declares = (name: string): RegExp =>
  new RegExp(String.raw`(?:\b(?:function|class|const|type)\s+${name}\b)|(?:^\s+(?:override |async |get )*${name}\()`, 'm')

describe('docs/walk.md', () => {
  test('tells the three ways of an event', () => {
    expect(walks.map(({ limit }) => limit)).toEqual([15, 45, 25])
  })

  test.each(walks)('names declarations that exist: $title', ({ steps }) => {
    const missing = steps.filter(({ file, name }) => !existsSync(file) || !declares(name).test(readFileSync(file, 'utf8')))
    expect(missing).toEqual([])
    expect(steps.length).toBeGreaterThan(10)
  })

  test.each(walks)('passes no more files than its limit: $title', ({ steps, limit }) => {
    expect(new Set(steps.map(({ file }) => file)).size).toBeLessThanOrEqual(limit)
  })
})
