import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { effectInput } from '../../../src/engine/effects/effect.ts'
import { CallerTools } from '../../../src/tools/caller-tools.ts'
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

  test.each([65, 100_000])('is refused with %i levels, which the log could not hold', (levels) => {
    const text = `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`
    expect(() => inputOf(text)).toThrow('tool act was called with bad input: it is nested more than 64 levels deep')
  })

  test('of a tool of a caller is refused with the text that is not an object', () => {
    const { definition: caller } = new CallerTools().find('caller.pay') ?? {}
    const refused = () => effectInput({ tool: 'caller.pay', definition: caller!, input: '(arguments that are nested too deep)' })
    expect(refused).toThrow('expected an object, received the text (arguments that are nested too deep)')
  })

  test('is passed on as it is, with null and with the largest number', () => {
    expect(inputOf('{"a": null, "b": [1.7e308, null], "c": "null"}')).toEqual({ a: null, b: [1.7e308, null], c: 'null' })
  })
})
