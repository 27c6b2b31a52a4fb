import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { quieter } from '../../../cli/dev/server-output.ts'
import { sseParser } from '../../../cli/lib/sse.ts'
import { assertProperty } from '../../support/property.ts'

describe('server-sent events', () => {
  const text = ': hello\nretry: 1000\n\nid: 7\nevent: log\ndata: {"seq":7}\n\n: still here\n\nid: 8\nevent: log\ndata: {"seq":8}\n\n'
  const events = [
    { id: '7', event: 'log', data: '{"seq":7}' },
    { id: '8', event: 'log', data: '{"seq":8}' },
  ]

  test('come out whole, wherever the stream is cut', () => {
    assertProperty(
      'cli/streams',
      fc.property(fc.array(fc.integer({ min: 1, max: text.length - 1 })), (places) => {
        const cuts = [0, ...places.toSorted((left, right) => left - right), text.length]
        const parse = sseParser()
        expect(cuts.slice(1).flatMap((to, index) => parse(text.slice(cuts[index], to)))).toEqual(events)
      }),
    )
  })

  test('data of several lines is one, and an event without a name is a message', () => {
    expect(sseParser()('data: a\ndata: b\n\n')).toEqual([{ id: null, event: 'message', data: 'a\nb' }])
  })

  test('an event that is not ended yet is kept back', () => {
    expect(sseParser()('id: 1\ndata: a\n')).toEqual([])
  })
})

describe('the development server’s output', () => {
  test('is passed on line by line without wrangler’s tables', () => {
    const written: string[] = []
    const write = quieter((text) => written.push(text))
    write(
      '⎔ Connection status updated\nYour Worker has access to the following bindings:\nBinding          Resource     Mode\nenv.DB (reflex)  D1 Database  local\n\n[wrang',
    )
    write('ler:info] GET /health 200 OK\n\n\nenvironment is fine\n')
    expect(written).toEqual(['[wrangler:info] GET /health 200 OK\n', '\n', 'environment is fine\n'])
  })
})
