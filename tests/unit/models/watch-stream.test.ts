import { simulateReadableStream } from 'ai'
import { describe, expect, it } from 'vitest'
import { watchStream } from '../../../src/models/watch-stream.ts'

function watched(signal?: AbortSignal) {
  const seen: string[] = []
  const ends: unknown[] = []
  const source = simulateReadableStream({ chunks: ['a', 'b'] })
  const stream = watchStream<string>(source, { signal, onPart: (part) => void seen.push(part), onEnd: (error) => ends.push(error) })
  return { seen, ends, reader: stream.getReader() }
}

describe('watchStream', () => {
  it('reports each part, and one end without an error', async () => {
    const { seen, ends, reader } = watched()
    while (!(await reader.read()).done);
    await reader.cancel()
    expect([seen, ends]).toEqual([['a', 'b'], [undefined]])
  })

  it('reports no part and no second end after an abort', async () => {
    const controller = new AbortController()
    const { seen, ends, reader } = watched(controller.signal)
    await reader.read()
    controller.abort('enough')
    while (!(await reader.read()).done);
    expect([seen, ends]).toEqual([['a'], ['enough']])
  })

  it('ends at once on a signal that was aborted before', () => {
    expect(watched(AbortSignal.abort('too late')).ends).toEqual(['too late'])
  })

  it('knows the reason of an abort on which the reader cancels first', async () => {
    const controller = new AbortController()
    controller.signal.addEventListener('abort', () => void reader.cancel())
    const { ends, reader } = watched(controller.signal)
    controller.abort('enough')
    expect(ends).toEqual(['enough'])
  })

  it('reads nothing ahead of its reader', async () => {
    const { seen, reader } = watched()
    await reader.read()
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toEqual(['a'])
  })
})
