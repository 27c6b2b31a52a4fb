import { tokenizer } from 'acorn'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { sandboxLimits } from '../../../src/reflexes/sandbox.ts'
import { bystander, BYSTANDER_FUEL, program } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { assertProperty } from '../../support/property.ts'

const name = fc.constantFrom(
  'a',
  'b',
  'context',
  'reflex',
  'f',
  'Array',
  'Object',
  'JSON',
  'Math',
  'globalThis',
  'Symbol',
  'Map',
  'RegExp',
  'String',
  'BigInt',
)
const literal = fc.oneof(
  fc.constantFrom(
    '0',
    '-1',
    '2 ** 53',
    'NaN',
    'null',
    'undefined',
    '[]',
    '({})',
    '/(a*)*b/',
    '10n ** 99n',
    '`${a}`',
    '"x".repeat(1e6)',
    'new Array(1e9)',
  ),
  fc.string({ maxLength: 8 }).map((text) => JSON.stringify(text)),
)
const property = fc.constantFrom(
  'length',
  'constructor',
  '__proto__',
  'prototype',
  'push',
  'concat',
  'join',
  'keys',
  'call',
  'apply',
  'toJSON',
  'raw',
  'event',
  'fill',
)

const { statement } = fc.letrec<{ expression: string; statement: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    name,
    literal,
    fc.tuple(tie('expression'), property).map(([object, key]) => `(${object}).${key}`),
    fc.tuple(tie('expression'), tie('expression')).map(([callee, argument]) => `(${callee})(${argument})`),
    fc
      .tuple(tie('expression'), fc.constantFrom('+', '*', '**', '===', 'in', 'instanceof', '??', ',', '<'), tie('expression'))
      .map((parts) => `(${parts.join(' ')})`),
    tie('statement').map((body) => `(() => { ${body} })`),
    tie('expression').map((value) => `new (${value})(1e6)`),
    tie('expression').map((value) => `[...${value}]`),
  ),
  statement: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    tie('expression').map((value) => `return ${value}`),
    tie('expression').map((value) => `a = ${value}`),
    tie('expression').map((value) => `throw ${value}`),
    fc.tuple(tie('expression'), tie('statement')).map(([test, body]) => `while (${test}) { ${body} }`),
    fc.tuple(tie('expression'), tie('statement')).map(([list, body]) => `for (b of ${list}) { ${body} }`),
    fc.tuple(tie('statement'), tie('statement')).map(([body, other]) => `try { ${body} } catch (b) { ${other} } finally { f() }`),
    fc.tuple(tie('statement'), tie('statement')).map((both) => both.join('; ')),
    tie('statement').map((body) => `function f() { ${body} } f()`),
    fc.tuple(name, property, tie('expression')).map(([object, key, value]) => `${object}.${key} = ${value}`),
  ),
}))
const valid = statement.map((body) => `let a, b; const f = () => 1; function reflex(context) { ${body} }`)
const invalid = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc
    .tuple(valid, fc.nat(), fc.nat())
    .map(([code, from, length]) => code.slice(0, from % code.length) + code.slice((from % code.length) + (length % 20))),
)

test('1,000 random programs are contained, and a bystander sees nothing of them', () => {
  const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
  const reasons = new Set<string>()
  assertProperty(
    'reflexes/random-programs: contained',
    fc.property(fc.oneof({ weight: 3, arbitrary: valid }, { weight: 1, arbitrary: invalid }), (code) => {
      const first = sandbox.run(program(code), sampleContext)
      reasons.add(first.reason)
      expect(first.fuel).toBeLessThanOrEqual(sandboxLimits.compile_fuel)
      expect(first.error ?? '').not.toContain('broke the interpreter')
      expect(sandbox.run(program(code), sampleContext)).toEqual(first)
      expect(sandbox.run(bystander, sampleContext)).toMatchObject({ reason: 'fired', fuel: BYSTANDER_FUEL })
    }),
    { numRuns: 500 },
  )
  expect([...reasons].toSorted()).toEqual(['error', 'fired', 'invalid_action', 'limit', 'null'])
}, 600_000)

/** The code as the static check sees it: without comments, and with spaces between operators. */
function asChecked(code: string): string {
  const tokens = Array.from(tokenizer(code, { ecmaVersion: 2023, sourceType: 'module' }), ({ start, end }) => ({ start, end }))
  const parts = tokens.map(({ start, end }, index) => {
    const gap = code.slice(tokens[index - 1]?.end ?? 0, start)
    const parted = gap !== '' || /^[<>!=+-]+$/.test(code.slice(tokens[index - 1]?.start, end)) ? ' ' : ''
    return (/[\n\u2028]/.test(gap) ? '\n' : parted) + code.slice(start, end)
  })
  return parts.join('')
}

test('the sandbox runs what the static check sees', async () => {
  const sandbox = new QuickJsSandbox(sandboxModule)
  const pieces = '<!-- --> // /* */ ` ${ } { ( ) [ ] " / x y 0 1 ; , + - ! < > = => . ?. : eval 010 x<!--y this'.split(' ')
  const piece = fc.constantFrom(...pieces, 'let ', 'var ', 'return ', ' ', '\n', '\u2028', '\u00a0')
  const body = fc.array(piece, { maxLength: 10 }).map((list) => list.join(''))
  const hidden = body.map((text) => `x<!--${text}`)
  await assertProperty(
    'reflexes/random-programs: seen by the check',
    fc.asyncProperty(fc.oneof(body, hidden), async (text) => {
      const code = `let x = 1, y = 2\nfunction reflex(context) {\n${text}\nreturn { action_type: 'reply', content: String(x) + y }\n}`
      const { ok } = await checkReflex(code)
      const seen = sandbox.run(program(code), null)
      // Registration rejects programs that the sandbox does not accept, by running them once.
      if (!ok || seen.error?.startsWith('SyntaxError')) return
      const { value } = sandbox.run(program(asChecked(code)), null)
      expect({ code, value: seen.value }).toEqual({ code, value })
    }),
    { numRuns: 1000 },
  )
}, 600_000)
