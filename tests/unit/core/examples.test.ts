import { readdirSync, readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { blocksOf } from '../../support/documented.ts'

const FOLDER = 'examples/core'
type Program = { run: () => Promise<unknown>; prints: (string | RegExp)[] }
const PROGRAMS: Record<string, Program> = {
  'alert.ts': {
    run: () => import('../../../examples/core/alert.ts'),
    prints: ['5 errors in a minute, the last one: line 6'],
  },
  'chat.ts': {
    run: () => import('../../../examples/core/chat.ts'),
    prints: ['You said: hello, go.', 'You said: bye, go.'],
  },
  'loop.ts': {
    run: () => import('../../../examples/core/loop.ts'),
    prints: ['3 refunds: A refund, please. My refund? I want a refund!'],
  },
  'replay.ts': {
    run: () => import('../../../examples/core/replay.ts'),
    // On a slow machine the lease ends before the second process starts.
    prints: [
      'first process, attempt 1: one, and it dies',
      /^second process, attempt (1: two|2: one)$/,
      /^second process, attempt (1: two|2: one)$/,
      'history: one, two',
    ],
  },
  'two-agents.ts': {
    run: () => import('../../../examples/core/two-agents.ts'),
    prints: ['reviewed a.ts and b.ts'],
  },
  'webhook.ts': {
    run: () => import('../../../examples/core/webhook.ts'),
    prints: ['answered 202', 'attempt 1: POST /orders {"order":7}', 'attempt 2: POST /orders {"order":7}'],
  },
}

/** Needs the runtime of Workers: tests/worker/events/library-app.test.ts. */
const APP = 'app.ts'

test('each program of the library is tested here, and has at most 40 lines', { tags: ['sources'] }, () => {
  const names = readdirSync(FOLDER)
  expect(names.toSorted()).toEqual([APP, ...Object.keys(PROGRAMS)].toSorted())
  const long = names.filter((name) => readFileSync(`${FOLDER}/${name}`, 'utf8').trimEnd().split('\n').length > 40)
  expect(long).toEqual([])
})

test('the loop of docs/core.md is one of them', { tags: ['sources'] }, async () => {
  const blocks = (await blocksOf('docs/core.md')).map(({ code }) => code)
  expect(blocks).toContain(readFileSync(`${FOLDER}/loop.ts`, 'utf8'))
})

test.each(Object.entries(PROGRAMS))('%s prints what it promises', async (_name, { run, prints }) => {
  const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
  await run()
  const said = printed.mock.calls.map(([line]) => String(line))
  printed.mockRestore()
  expect(said).toHaveLength(prints.length)
  for (const [index, line] of prints.entries()) expect(said[index]).toMatch(line instanceof RegExp ? line : exactly(line))
})

const exactly = (line: string): RegExp => new RegExp(`^${line.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)}$`)
