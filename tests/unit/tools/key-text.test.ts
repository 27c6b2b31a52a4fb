import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { emptyBlackboard } from '../../../src/skills/plan/blackboard.ts'
import { keyText } from '../../../src/base/template.ts'
import { compilePlan } from '../../../src/skills/plan/compile.ts'
import { fillKeySlots } from '../../../src/tools/slot-text.ts'
import { deployManifest } from '../skills/deploy-manifest.ts'
import { assertProperty } from '../../support/property.ts'

/**
 * Few distinct pieces, so that literals and values collide: separators, encodings and lone
 * surrogates.
 */
const PIECES = [':', '/', '%', '25', '3A', '%3A', '%25', '%u1F6', 'Ķ', 'a', '\ud83d', '\ude00']
const text = fc.string({ unit: fc.constantFrom(...PIECES), maxLength: 3 })
const template = fc.array(text, { minLength: 2, maxLength: 4 })
const texts = fc.uniqueArray(text, { minLength: 12, maxLength: 12 })

/** All lists of so many of the texts. */
const lists = (of: readonly string[], length: number): string[][] =>
  length === 0 ? [[]] : lists(of, length - 1).flatMap((list) => of.map((last) => [...list, last]))

const slots = ['a', 'b'] as const
const planKey = (template: string, inputs: Record<string, string>): string => {
  const changes = {
    'signature.inputs': slots.map((name) => ({ name, type: 'string', required: true })),
    'activation.required_slots': [],
    'plan.idempotence_key': template,
  }
  const compiled = compilePlan(deployManifest(changes), inputs, emptyBlackboard())
  if (!compiled.ok) throw new Error(compiled.detail)
  return compiled.plan.idempotence_key ?? ''
}

describe('a filled key', () => {
  test('is another one for other values, whatever the template and the values are made of', () => {
    assertProperty(
      'tools/key-text',
      fc.property(template, texts, (literals, values) => {
        const all = lists(values, literals.length - 1)
        expect(new Set(all.map((list) => keyText(literals, list))).size).toBe(all.length)
      }),
      { numRuns: 500 },
    )
  })

  test.each<[string, string[], string[], string]>([
    ['one value stands as it is', ['block:', ''], ['2001:db8::1 %'], 'block:2001:db8::1 %'],
    ['several ordinary ones stand as they are', ['deploy:', ':', ''], ['pay', 'v1.2-a'], 'deploy:pay:v1.2-a'],
    ['what parts them is encoded in them', ['block:', ':', ''], ['x:y', 'z'], 'block:x%3Ay:z'],
    ['so is the percent sign', ['', '/', ''], ['a%2F', 'b'], 'a%252F/b'],
    ['what begins the text between them is enough', ['', ' and ', ''], ['x and a', 'y'], 'x%20and%20a and y'],
    ['values that nothing parts are parted', ['', '', ''], ['a', 'b'], 'a:b'],
    ['a percent sign does not part them', ['', '%', ''], ['a', 'b'], 'a:%b'],
    ['a character beyond a byte has an encoding of its own', ['', 'Ķ', ''], ['Ķ', '%u0136'], '%u0136Ķ%25u0136'],
    ['the text behind the last parts nothing', ['', ':', '!'], ['a!', 'b!'], 'a!:b!!'],
  ])('%s', (_, literals, values, expected) => {
    expect(keyText(literals, values)).toBe(expected)
  })

  test.each([
    ['a plan', (a: string, b: string) => planKey('block:{{a}}:{{ inputs.b }}', { a, b }), 'deploy.container.appservice:block:x%3Ay:z'],
    ['an HTTP tool', (a: string, b: string) => fillKeySlots('block:{{a}}:{{ b }}', { a, b }), 'block:x%3Ay:z'],
  ])('of %s does not move what one value holds into the next', (_, key, expected) => {
    expect(key('x:y', 'z')).toBe(expected)
    expect(key('x', 'y:z')).not.toBe(expected)
  })
})
