import * as fc from 'fast-check'
import { byteLength } from '../../../../src/base/json.ts'
import type { Saw } from '../../../../src/features/learning/episode.ts'
import { sampleWith } from '../../../../src/reflexes/reflex-context.ts'
import { sandboxLimits } from '../../../../src/reflexes/sandbox.ts'

export const sawWith = (fields: Record<string, unknown>): Saw => sampleWith(fields)

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc
    .array(fc.constantFrom('card', 'Where', 'is', '12', '3.50', '#', '^', 'ΑΣ', 'İ', 'ß', '\uD800', '😀', '漢字', "don't"), {
      maxLength: 30,
    })
    .map((words) => words.join(' ')),
  fc.constantFrom('', ' ', 'x'.repeat(3000), 'ab '.repeat(900), 'open', 'ws.message'),
)
const name = fc.oneof(
  fc.constantFrom('__proto__', 'constructor', 'length', 'toString', '', '0', 'text', 'meta', 'id'),
  fc.string({ maxLength: 6 }),
)
const scalar = fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.boolean(), fc.constant(null))
const fields = (value: fc.Arbitrary<unknown>) =>
  fc
    .array(fc.tuple(name, value), { maxLength: 5 })
    .map((entries) => `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${JSON.stringify(inner)}`).join(',')}}`)
    .map((json): unknown => JSON.parse(json))
const list = fc.array(fc.oneof(scalar, fc.constant([]), fields(fc.oneof(scalar, fc.constant([])))), { maxLength: 6 })
const deep = fields(fc.oneof(scalar, list, fields(fc.oneof(scalar, fields(fields(scalar))))))

/** Contexts with any fields, `__proto__` among them, as large as the sandbox takes. */
export const anySaw: fc.Arbitrary<Saw> = fc
  .record({
    event: deep,
    scratch: deep,
    type: fc.oneof(fc.constant('said'), text),
    heard: fc.boolean(),
    types: fc.array(text, { maxLength: 5 }),
  })
  .map(({ event, scratch, type, heard, types }) => {
    const saw = sampleWith({})
    const own = Object.fromEntries(Object.entries(event as object).filter(([key]) => !(key in saw.event)))
    const meta = { ...saw.event.meta, ...(heard ? { heard: true } : {}) }
    const seen = { ...saw.event, ...own, type, meta }
    return {
      ...saw,
      event: seen,
      scratch: scratch as Saw['scratch'],
      recent_events: [...types.map((one) => ({ ...seen, type: one })), seen],
    } as Saw
  })
  .filter((saw) => byteLength(JSON.stringify(saw)) <= sandboxLimits.context_bytes)
