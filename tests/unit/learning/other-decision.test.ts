import { expect, test } from 'vitest'
import type { EpisodeAct } from '../../../src/features/learning/episode.ts'
import type { Replies } from '../../../src/contract/words.ts'
import { otherDecision } from '../../../src/features/learning/run/policy.ts'
import { call, episode, reply } from './histories.ts'

const heard = { meta: { heard: true } }
const done = (words: string, tool = 'refund') => [...call(tool, { order: 'k' }), ...reply(words)]

const SPOKEN = done('I did it.', 'track')
const SILENT = call('track', { order: 'k' })

test.each<[Replies, object, string, string, EpisodeAct[] | null]>([
  ['heard', {}, 'refund', 'words that nobody hears', null],
  ['heard', heard, 'refund', 'words that are heard', done('I did it.')],
  ['exact', {}, 'refund', 'words, whoever hears them', done('I did it.')],
  ['by_person', heard, 'refund', 'words of which any will do', null],
  ['ignore', heard, 'refund', 'words that are ignored', null],
  ['by_person', heard, 'track', 'another call', SPOKEN],
  ['ignore', {}, 'track', 'another call', SILENT],
])('by the setting %s, for an event %j, answers by %s that differ in %s are another decision: %j', (replies, meta, tool, _, expected) => {
  const taken = episode(1, { type: 'mail', line: 'please', ...meta }, done('Done.'))
  expect(otherDecision(taken, [done('I did it.', tool), done('I did it.', tool)], replies)).toEqual(expected)
})

test.each<[Replies, EpisodeAct[] | null]>([
  ['heard', SPOKEN],
  ['exact', null],
])('answers that choose other words each time are another decision by what they do, unless words always count: %s', (replies, expected) => {
  const taken = episode(1, { type: 'mail', line: 'please', ...heard }, done('Done.'))
  expect(otherDecision(taken, [done('I did it.', 'track'), done('It is done.', 'track')], replies)).toEqual(expected)
})
