import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { quote } from '../../../src/features/learning/reflexes/facts/text.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { call, history } from './histories.ts'
import { assertProperty } from '../../support/property.ts'

const sandbox = new QuickJsSandbox(sandboxModule)
const hostile = [
  "'",
  '"',
  '`',
  '${boom()}',
  '</script>',
  '<!--',
  '-->',
  '*/',
  '/*',
  '//',
  '\\',
  '\n',
  '\r',
  '\u2028',
  '\u2029',
  '\u202E',
  '\0',
  '\uD800',
  '__proto__',
  'constructor',
  '$&',
  '(?<x>',
  '[',
]
const text = fc
  .array(fc.oneof(fc.constantFrom(...hostile), fc.string({ maxLength: 6 }), fc.constantFrom('a', 'word', ' ')), { maxLength: 12 })
  .map((parts) => parts.join(''))
const name = fc.oneof(fc.constantFrom(...hostile), fc.string({ minLength: 1, maxLength: 8 }))

test('a quoted text is a literal of that text, without a sign that could end it', () => {
  assertProperty(
    'learning/hostile-text: skills',
    fc.property(text, (value) => {
      const code = quote(value)
      expect(code).toMatch(/^'[^'`$<>*/\p{Cc}\u2028\u2029]*'$/u)
      const run = sandbox.run({ hash: code, code: `function reflex(context) { return { value: ${code} } }` }, sampleContext)
      expect(run.value).toEqual({ value })
    }),
    { numRuns: 200 },
  )
})

test('text of events, names of fields, tools and arguments reach learned code only as literals', async () => {
  await assertProperty(
    'learning/hostile-text: reflexes',
    fc.asyncProperty(text, text, name, name, async (one, other, field, tool) => {
      const episodes = history(60, (index) => {
        const isOne = index % 2 === 0
        const fields = { type: 'said', [field]: `${isOne ? `yes ${one}` : `no ${other}`} ${index}`, text: isOne ? one : other }
        return [fields, isOne ? call(tool, { [field]: String(index), [tool]: one }) : call('none', { text: other })]
      })
      for (const { code } of learnReflexes(episodes).reflexes) {
        expect(await checkReflex(code)).toMatchObject({ ok: true })
        for (const { saw } of episodes.slice(0, 4)) {
          const { reason, error } = sandbox.run({ hash: code, code }, { ...sampleContext, ...saw })
          expect(['fired', 'null'], `${error}\n${code}`).toContain(reason)
        }
      }
    }),
    { numRuns: 60 },
  )
})
