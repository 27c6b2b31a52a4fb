import { expect, test } from 'vitest'
import type { Episode, EpisodeAct } from '../../../src/features/learning/episode.ts'
import { withoutForgotten } from '../../../src/features/learning/run/policy.ts'
import { call, episode } from './histories.ts'

const route = (to: string): EpisodeAct[] => call('route', { to })
const KINDS = ['music', 'lists', 'weather']
/** 90 decisions about three kinds of messages, then `later` of each kind, by what `now` says. */
const decided = (
  later: number,
  now: (kind: string) => EpisodeAct[],
  older: (index: number) => EpisodeAct[] = (index) => route(kindOf(index)),
) =>
  Array.from({ length: 90 + 3 * later }, (_, index): Episode => ({
    ...episode(index, { type: 'mail', line: kindOf(index) }, index < 90 ? older(index) : now(kindOf(index))),
    log_seq: index,
  }))
const kindOf = (index: number): string => KINDS[index % 3] ?? ''
const taken = (episodes: readonly Episode[]): EpisodeAct[][] => episodes.map((_, index) => route(kindOf(index)))
const left = (episodes: readonly Episode[], fired: readonly (EpisodeAct[] | null)[]) =>
  withoutForgotten(episodes, fired, 90).map(({ log_seq }) => log_seq)
const from = (first: number, end: number): number[] => Array.from({ length: end - first }, (_, at) => first + at)

test('after a drift the older decisions are forgotten that newer ones contradict, and the others still teach', () => {
  const episodes = decided(2, (kind) => route(kind === 'music' ? 'lists' : kind === 'lists' ? 'music' : kind))
  const weather = from(0, 90).filter((index) => index % 3 === 2)
  expect(left(episodes, taken(episodes))).toEqual([...weather, ...from(90, 96)])
})

test('a decision that is right now is forgotten with the one that was, also where no reflex took it', () => {
  const episodes = decided(1, (kind) => route(kind === 'music' ? 'weather' : kind))
  const fired = taken(episodes).map((acts, index) => (index % 3 === 2 ? null : acts))
  expect(left(episodes, fired)).toEqual([...from(0, 90).filter((index) => index % 3 === 1), ...from(90, 93)])
})

test('all that the drifted reflex takes is forgotten where no older decision was equal, or nothing contradicts', () => {
  const blocks = (index: number): EpisodeAct[] => (index % 3 === 2 ? [] : call('block', { address: `192.0.2.${index}` }))
  const episodes = decided(1, () => [], blocks)
  const fired = episodes.map((_, index) => (index % 3 === 2 ? null : blocks(index)))
  expect(left(episodes, fired)).toEqual([...from(0, 90).filter((index) => index % 3 === 2), ...from(90, 93)])
  const same = decided(1, route)
  expect(left(same, taken(same))).toEqual(from(90, 93))
})
