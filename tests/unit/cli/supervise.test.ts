import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { supervise } from '../../../cli/dev/supervise.ts'
import { watchChanges, type FileChange } from '../../../cli/dev/watch.ts'

const STOP = new Error('stopped by the test')
const SAVED: FileChange = { path: '.dev.vars', kind: 'settings' }

/** A server that fails to start, crashes or stays up in the order of `plan`; then it is stopped. */
function developing(plan: ('fails' | 'crashes' | 'stays')[], starting = (_starts: number, _change: (made: FileChange) => void) => {}) {
  const told: string[] = []
  const waiting = new Set<(change: FileChange) => void>()
  let [starts, stops, clock] = [0, 0, 0]
  const change = (made: FileChange) => {
    const resolves = Array.from(waiting)
    waiting.clear()
    for (const resolve of resolves) resolve(made)
  }
  const ended = supervise({
    async start() {
      const outcome = plan[starts]
      starts += 1
      if (outcome === undefined) throw STOP
      starting(starts, change)
      if (outcome === 'fails') throw new Error('a syntax error')
      const crash = outcome === 'crashes' ? Promise.resolve() : new Promise<void>(() => {})
      return { ended: crash, stop: async () => void (stops += 1) }
    },
    changed: (kind) =>
      new Promise((resolve) =>
        waiting.add(function seen(made) {
          if (kind === undefined || made.kind === kind) resolve(made)
          else waiting.add(seen)
        }),
      ),
    tell: (text) => told.push(text),
    now: () => (clock += 1000),
  })
  ended.catch(() => {})
  const figures = () => ({ starts, stops })
  return { ended, told, change, figures, settle: () => new Promise((resolve) => setTimeout(resolve, 5)) }
}

test('the first start that fails is the end', async () => {
  await expect(developing(['fails']).ended).rejects.toThrow('a syntax error')
})

test('a server that crashes starts again at once', async () => {
  const { told, figures, settle } = developing(['crashes', 'stays'])
  await settle()
  expect(figures()).toEqual({ starts: 2, stops: 1 })
  expect(told).toEqual(['The dev server crashed; see the error above. It starts again.'])
})

test('a server that cannot start again waits for the next saved file', async () => {
  const { told, change, figures, settle } = developing(['crashes', 'fails', 'stays'])
  await settle()
  expect(figures().starts).toBe(2)
  expect(told.slice(1)).toEqual(['a syntax error', 'The server did not start. Save a file to try again.'])
  change({ path: 'src/a.ts', kind: 'source' })
  await settle()
  expect(figures().starts).toBe(3)
})

test('a server that keeps crashing waits for the next saved file, too', async () => {
  const { told, change, figures, settle } = developing([...Array.from({ length: 6 }, () => 'crashes' as const), 'stays'])
  await settle()
  expect(figures().starts).toBe(6)
  expect(told.at(-1)).toContain('crashed 6 times within a minute')
  change({ path: 'src/a.ts', kind: 'source' })
  await settle()
  expect(figures().starts).toBe(7)
})

test('settings restart the server; sources are reloaded by wrangler', async () => {
  const { told, change, figures, settle } = developing(['stays', 'stays'])
  await settle()
  change({ path: 'src/a.ts', kind: 'source' })
  await settle()
  expect(figures()).toEqual({ starts: 1, stops: 0 })
  change({ path: '.dev.vars', kind: 'settings' })
  await settle()
  expect(figures()).toEqual({ starts: 2, stops: 1 })
  expect(told).toEqual(['.dev.vars changed: the server restarts.'])
})

test.each([1, 2])('settings that change while start %i is under way restart the server after it', async (during) => {
  const { told, change, figures, settle } = developing(['stays', 'stays', 'stays'], (starts, saved) => {
    if (starts === during) saved(SAVED)
  })
  await settle()
  if (during === 2) change(SAVED)
  await settle()
  expect(figures()).toEqual({ starts: during + 1, stops: during })
  expect(told).toEqual(Array.from({ length: during }, () => '.dev.vars changed: the server restarts.'))
})

test('a saved file is noticed once, by its kind', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-watch-'))
  mkdirSync(path.join(folder, 'src/agents'), { recursive: true })
  mkdirSync(path.join(folder, 'migrations'))
  const changes = watchChanges(folder)
  try {
    const [settings, any] = [changes.next('settings'), changes.next()]
    writeFileSync(path.join(folder, 'src/agents/mine.ts'), 'export {}')
    expect(await any).toEqual({ path: 'src/agents/mine.ts', kind: 'source' })
    writeFileSync(path.join(folder, 'unrelated.txt'), '')
    writeFileSync(path.join(folder, '.dev.vars'), 'A=1')
    expect(await settings).toEqual({ path: '.dev.vars', kind: 'settings' })
  } finally {
    changes.close()
  }
})
