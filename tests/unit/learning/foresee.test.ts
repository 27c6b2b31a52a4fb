import { describe, expect, test } from 'vitest'
import { atOnce } from '../../../src/base/steps.ts'
import {
  disputedIn,
  type Fires,
  foreseeInSteps,
  foreseenFor,
  type Foresight,
  type Lessons,
} from '../../../src/features/learning/run/foresee.ts'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { call, history } from './histories.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const right = (index: number): EpisodeAct[] => (index % 3 === 0 ? call('clean', { by: 'desk' }) : [])
const line = (index: number) => `disk ${index % 3 === 0 ? 'full' : 'fine'} on host-${index}`
const decided = (acts: (index: number) => EpisodeAct[] = right, count = 460): Episode[] =>
  history(count, (index) => [{ type: 'mail', line: line(index), meta: {} }, acts(index)])

function foresee(episodes: Episode[], lessons: Lessons = new Map()): { foresights: Foresight[]; runs: number } {
  let runs = 0
  const fires: Fires = ({ key, code }, saw) => {
    runs += 1
    return runReflex(sandbox, { hash: key, code }, { ...sampleContext, ...saw }).action
  }
  return { foresights: atOnce(foreseeInSteps(episodes, { agreement: 0.95 }, { fires, lessons })), runs }
}
const all = { fair: () => true }
const table = { id: 'learned.table', by: 'table' as const, acts: [] }

describe('what was learned from earlier decisions', () => {
  const episodes = decided()
  const lessons: Lessons = new Map()
  const { foresights } = foresee(episodes, lessons)

  test('is compared with each later one, and with none that taught it', () => {
    expect(foresights.map(({ index }) => index)).toEqual(Array.from({ length: 260 }, (_, at) => 200 + at))
    expect(foresights.every(({ agreed }) => agreed)).toBe(true)
  })

  test('does not know how later ones were decided', () => {
    // From 300 on all is decided the other way round: what the first 200 taught is wrong then.
    const turned = decided((index) => (index < 300 ? right(index) : right(index + (index % 3 === 0 ? 1 : -(index % 3)))), 340)
    const after = foresee(turned).foresights.filter(({ index }) => index >= 300)
    expect(after.filter(({ agreed }) => agreed)).toEqual([])
    expect(disputedIn({ episodes: turned, disputed: ['e7'] }, after)).toEqual(['e7', ...after.map(({ index }) => `e${index}`)])
  })

  test('is neither learned nor run again, unless a decision before it has changed', () => {
    expect(foresee(episodes, lessons)).toEqual({ foresights, runs: 0 })
    const more = decided(right, 470)
    expect(foresee(more, lessons).foresights).toHaveLength(270)
    const corrected = more.map((episode, index) => (index === 250 ? { ...episode, acts: call('other', {}) } : episode))
    const again = foresee(corrected, lessons)
    // The first 200 are as they were; the first 300 teach again, for the 170 after them.
    expect(again.runs).toBeGreaterThanOrEqual(170)
    expect(again.foresights.filter(({ agreed }) => !agreed).map(({ index }) => index)).toEqual([250])
  })

  test('is nothing before there are 200 decisions', () => {
    expect(foresee(episodes.slice(0, 200)).foresights).toEqual([])
  })
})

describe('the comparisons of a reflex', () => {
  const episodes = decided()
  const { foresights } = foresee(episodes)
  const reflexes = Array.from(new Set(foresights.map(({ reflex }) => reflex)))

  test('are of what was learned earlier under its id, by act, and all of them for a table', () => {
    expect(reflexes).toHaveLength(2)
    const [first] = foresights
    const own = foreseenFor({ ...table, by: 'rules', id: first?.reflex ?? '' }, { episodes, foresights, ...all })
    const ofAll = foreseenFor(table, { episodes, foresights, ...all })
    expect(own?.acts).toHaveLength(1)
    expect(ofAll?.acts.map(({ act, event_type, n, k }) => [act, event_type, n, k]).sort()).toEqual([
      ['clean', 'mail', 87, 87],
      ['nothing', 'mail', 173, 173],
    ])
    expect(ofAll?.acts.find(({ act }) => act === 'clean')).toMatchObject({ from: { seq: 201, at: 201 }, to: { seq: 459, at: 459 } })
    expect(Object.values(ofAll?.shapes.taught ?? {})).toEqual([260])
    expect(ofAll?.shapes.values.senders.taught).toMatchObject({ 'user:0': expect.any(Number) })
  })

  test('are those alone on which it is judged, by the teacher of now', () => {
    const changed = episodes.map((episode, index) =>
      index < 400 ? { ...episode, teacher: { ...episode.teacher, model: 'old' } } : episode,
    )
    const sum = (found: ReturnType<typeof foreseenFor>) => found?.acts.reduce((n, one) => n + one.n, 0)
    expect(sum(foreseenFor(table, { episodes: changed, foresights, ...all }))).toBe(60)
    expect(sum(foreseenFor(table, { episodes, foresights, fair: (_, act) => act !== null }))).toBe(87)
    expect(foreseenFor({ ...table, by: 'rules', id: 'another' }, { episodes, foresights, ...all })).toBeNull()
  })

  test('are none where they speak against it: the policy changed after the earlier lessons', () => {
    const differ = (least: number) => foresights.map((one) => (one.index < least ? one : { ...one, agreed: false }))
    expect(foreseenFor(table, { episodes, foresights: differ(430), ...all })).toBeNull()
    expect(foreseenFor(table, { episodes, foresights: differ(459), ...all, agreement: 0.95 })?.acts).toHaveLength(2)
  })
})
