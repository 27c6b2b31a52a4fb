import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { readEvents, type SentEvent } from '../../../../cli/reflex/events/read-events.ts'
import { advanced, confirmed, freshPlace, memoryOf } from '../../../../cli/reflex/events/resume.ts'
import { completed } from '../../../../cli/reflex/events/send.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-unit-'))

async function read(text: string): Promise<SentEvent[]> {
  const events: SentEvent[] = []
  for await (const event of readEvents(Readable.from([text]), 'in')) events.push(event)
  return events
}

describe('events are read', () => {
  test.each([
    ['a line each', '{"a":1}\n{"a":2}\n', [{ a: 1 }, { a: 2 }]],
    ['with empty lines, CRLF and a byte order mark', '\ufeff\r\n{"a":1}\r\n\r\n{"a":2}', [{ a: 1 }, { a: 2 }]],
    ['from an array', '[{"a":1},{"a":2}]', [{ a: 1 }, { a: 2 }]],
    ['from an array over several lines', '[\n  {"a":1},\n\n  {"a":2}\n]\n', [{ a: 1 }, { a: 2 }]],
    ['from one object over several lines', '{\n  "a": {\n    "b": 1\n  }\n}\n', [{ a: { b: 1 } }]],
    ['from an object that begins with a field', '{"a": 1,\n "b": 2}', [{ a: 1, b: 2 }]],
    ['from nothing', '\n\n', []],
  ])('%s', async (_, text, expected) => {
    expect(await read(text)).toEqual(expected)
  })

  test.each([
    ['{"a":1}\n{"a":\n', 'in, line 2 is not JSON'],
    ['no json', 'in, line 1 is not JSON'],
    ['{"a":1}\n[1]', 'in, line 2 is not an event'],
    ['[{"a":1}, 2]', 'in, event 1 is not an event'],
    ['[{"a":1}', 'in is not JSON'],
  ])('and %j is refused with its place', async (text, message) => {
    await expect(read(text)).rejects.toThrow(message)
  })
})

const three = [{ a: 1 }, { a: 2 }, { a: 3 }]
const placeAfter = (events: SentEvent[]) => events.reduce(advanced, freshPlace('p'))
async function* given(events: SentEvent[]): AsyncGenerator<SentEvent> {
  yield* events
}

test('a sending resumes where the input begins as before, and starts over where it does not', async () => {
  const place = placeAfter(three.slice(0, 2))
  expect(await confirmed(place, given(three))).toEqual(place)
  // Events after that place may have changed.
  expect(await confirmed(place, given([...three.slice(0, 2), { a: 4 }]))).toEqual(place)
  for (const changed of [[{ a: 9 }, ...three], three.slice(0, 1), []]) {
    const fresh = await confirmed(place, given(changed))
    expect(fresh).toMatchObject({ sent: 0, digest: '' })
    expect(fresh.prefix).not.toBe('p')
  }
})

test('a place is remembered for one server and input, until it is forgotten or damaged', () => {
  const memory = memoryOf(folder, ['https://a', 'x.jsonl'])
  expect(memory.stored).toBeNull()
  memory.save(placeAfter(three))
  expect(memoryOf(folder, ['https://a', 'x.jsonl']).stored).toEqual(placeAfter(three))
  expect(memoryOf(folder, ['https://b', 'x.jsonl']).stored).toBeNull()
  memory.save({ prefix: 'p', sent: -1, digest: '' })
  expect(memoryOf(folder, ['https://a', 'x.jsonl']).stored).toBeNull()
  memory.forget()
  expect(memoryOf(folder, ['https://a', 'x.jsonl']).stored).toBeNull()
})

test('an event receives an id, a scope and a type only where it has none', () => {
  const defaults = { prefix: 'p', scope: 's', type: 't' }
  expect(completed({ content: 'x' }, 7, defaults)).toEqual({ id: 'p-7', scope: 's', type: 't', content: 'x' })
  expect(completed({ id: 'own', scope: 'o', type: 'u' }, 7, defaults)).toEqual({ id: 'own', scope: 'o', type: 'u' })
  expect(completed({}, 1, { prefix: 'p' })).toEqual({ id: 'p-1' })
})
