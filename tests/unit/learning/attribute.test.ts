import { describe, expect, it } from 'vitest'
import { decisionOf } from '../../../src/features/learning/episodes/reader.ts'
import type { EpisodeAct } from '../../../src/features/learning/episode.ts'
import { event } from '../agents/agent-fixtures.ts'

const done = { ok: true, cost_usd: 0, duration_ms: 1 }
const block: EpisodeAct = { kind: 'tool', name: 'block', input: { address: '192.0.2.1' }, ...done }
const reply: EpisodeAct = { kind: 'reply', name: '', input: { content: 'I blocked it.' }, ...done }
const line = event({ type: 'log.line', host: 'web-1', line: 'Failed password' })
const sent = event({ type: 'ws.message', connection_id: 'a', content: 'Block it.' })
const message = { ...sent, meta: { ...sent.meta, heard: true as const } }

describe('what a turn decided', () => {
  it('leaves out a reply that reports its acts', () => expect(decisionOf([block, reply], [line, line])).toEqual([block]))
  it('keeps a reply that is all it did', () => expect(decisionOf([reply], [line])).toEqual([reply]))
  it('keeps the answer to somebody who waits for it', () => expect(decisionOf([block, reply], [line, message])).toEqual([block, reply]))
})
