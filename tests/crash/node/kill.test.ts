import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ProposalResult } from '../../../src/skills/session/result.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))

const child = path.join(import.meta.dirname, 'child.ts')
let runs = 0

type Ended = { results: ProposalResult[]; places: number; unfinished: number; waiting: number; approved: number; decided: number }
type Effect = { title: string; key: string | null }

/** A process that proposes and dies at `place`, then one that resumes. */
function crash(
  keyed: 'keyed' | 'unkeyed' | 'gated',
  place: number | null,
): { killed: boolean; first: Ended | null; resumed: Ended; effects: Effect[] } {
  const file = path.join(folder, `run-${++runs}.sqlite`)
  const effects = `${file}.effects`
  const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'cache') }
  const start = (mode: string, dies_at: string) =>
    spawnSync(process.execPath, ['--no-warnings', child, file, effects, mode, keyed, dies_at], { encoding: 'utf8', env })
  const first = start('propose', String(place))
  const second = start('resume', '')
  if (second.status !== 0) throw new Error(second.stderr)
  const lines = existsSync(effects) ? readFileSync(effects, 'utf8').trim().split('\n') : []
  return {
    killed: first.signal === 'SIGKILL',
    first: first.stdout === '' ? null : (JSON.parse(first.stdout) as Ended),
    resumed: JSON.parse(second.stdout) as Ended,
    effects: lines.map((line) => JSON.parse(line) as Effect),
  }
}

describe('a process that is killed while a skill runs', { timeout: 60_000 }, () => {
  test('is not there: the run ends, and nothing is left to resume', () => {
    const { first, resumed, effects } = crash('keyed', null)
    // The record and its end, and around each of three steps its beginning, its effect and its end.
    expect(first).toMatchObject({ results: [{ status: 'ok' }], places: 4 + 3 * 6, unfinished: 0 })
    expect(resumed).toMatchObject({ results: [], decided: 1 })
    expect(effects).toHaveLength(3)
  })

  test.each([
    [1, 'before the record is written', null, 0],
    [2, 'before the first step', 'ok', 3],
    [4, 'between a beginning and its effect', 'ok', 3],
    [6, 'between an effect and its end', 'ok', 4],
    [12, 'between the second effect and its end', 'ok', 4],
    [21, 'before the end of the run', 'ok', 3],
    [22, 'after it', null, 3],
  ])('with a key, at place %i, %s: it comes to its end under the same keys', (place, _, status, times) => {
    const { killed, resumed, effects } = crash('keyed', place)
    expect(killed).toBe(true)
    expect(resumed.results.map((result) => result.status)).toEqual(status === null ? [] : [status])
    expect(resumed.unfinished).toBe(0)
    expect(effects).toHaveLength(times)
    expect(new Set(effects.map(({ key }) => key)).size).toBe(Math.min(times, 3))
  })

  test.each([
    [1, 'before the decision', 0, 1],
    [2, 'between the decision and the run', 3, 0],
    [3, 'before the record is written', 3, 0],
    [4, 'before the first step', 3, 0],
    [24, 'after the end of the run', 3, 0],
  ])('where somebody approved it, at place %i, %s: it runs once, or still waits', (place, _, times, waiting) => {
    const { killed, resumed, effects } = crash('gated', place)
    expect(killed).toBe(true)
    expect(effects).toHaveLength(times)
    expect(resumed).toMatchObject({ unfinished: 0, waiting, approved: 0 })
    expect(resumed.results.map((result) => result.status)).toEqual(times > 0 && place < 24 ? ['ok'] : [])
  })

  test.each([
    [4, 'between a beginning and its effect', []],
    [12, 'between the second effect and its end', ['milk one', 'milk two']],
  ])('without a key, at place %i, %s: nothing happens twice, and what may have happened is undone', (place, _, done) => {
    const { killed, resumed, effects } = crash('unkeyed', place)
    expect(killed).toBe(true)
    expect(resumed.results).toMatchObject([{ status: 'unknown' }])
    const titles = effects.map(({ title }) => title)
    expect(titles.filter((title) => !title.startsWith('not'))).toEqual(done)
    const undone = place === 4 ? ['not milk one'] : ['not milk two', 'not milk one']
    expect(titles.filter((title) => title.startsWith('not'))).toEqual(undone)
  })
})
