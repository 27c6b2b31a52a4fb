import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { effectInput } from '../../../src/engine/effects/effect.ts'
import { defineTool } from '../../../src/tools/define-tool.ts'

const definition = defineTool({ description: 'Acts', input: z.record(z.string(), z.unknown()), execute: async () => null })
const inputOf = (text: string) => effectInput({ tool: 'act', definition, input: JSON.parse(text) })

describe('the input of a call', () => {
  test.each([
    ['a field', '{"amount": 1e999}', 'amount'],
    ['a nested field', '{"to": {"amount": -1e999}}', 'amount'],
    ['an item of a list', '{"amounts": [1, 1e400]}', '1'],
  ])('is refused with a number in %s that JSON cannot hold', (_, text, name) => {
    expect(() => inputOf(text)).toThrow(`tool act was called with bad input: ${name} is a number beyond the range of a double`)
  })

  test('is passed on as it is, with null and with the largest number', () => {
    expect(inputOf('{"a": null, "b": [1.7e308, null], "c": "null"}')).toEqual({ a: null, b: [1.7e308, null], c: 'null' })
  })
})
