import { expect, test } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../../src/reflexes/run-reflex.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'
import { NUMBERS_SOURCE, numbersIn } from '../../../src/evidence/numbers.ts'

const sandbox = new QuickJsSandbox(sandboxModule)

function inLearnedCode(content: string): unknown {
  const code = `function reflex(context) { return { action_type: 'set_scratch', key: 'n', value: numbersIn(context.event.content) } }\n${NUMBERS_SOURCE}`
  const { action } = runReflex(sandbox, { code, hash: 'numbers' }, { ...sampleContext, event: { ...sampleContext.event, content } })
  return action?.action_type === 'set_scratch' ? action.value : null
}

test.each<[string, [string, number][]]>([
  [
    'a refund of 57 euro for order k123',
    [
      ['of', 57],
      ['k', 123],
    ],
  ],
  [
    'a refund of 1,250 or 1.250 or 12.50 euro',
    [
      ['of', 1250],
      ['or', 1250],
      ['or', 12.5],
    ],
  ],
  [
    '€150 and 150eur',
    [
      ['€', 150],
      ['and', 150],
    ],
  ],
  [
    'claim CLM-2025-0017 for 57 euro',
    [
      ['clm-', 2025],
      ['clm-', 17],
      ['for', 57],
    ],
  ],
  [
    'INV2025-17 9, A/3_4 and ORD-20250017',
    [
      ['inv-', 2025],
      ['inv-', 17],
      ['inv-#', 9],
      ['a-', 3],
      ['a-', 4],
      ['ord-', 20_250_017],
    ],
  ],
  [
    'of-150 and v-1.5 and of-1-900.50',
    [
      ['of', 150],
      ['v', 1.5],
      ['of', 1],
      ['of#', 900.5],
    ],
  ],
  [
    'sizes 10 20 30',
    [
      ['sizes', 10],
      ['sizes#', 20],
      ['sizes##', 30],
    ],
  ],
  [
    'Dec 10 06:55:46 LabSZ sshd[24200]: from 192.0.2.77 port 5',
    [
      ['sshd', 24_200],
      ['port', 5],
    ],
  ],
  ['on 2025-12-10T06:55:46Z, 10.12.2025 and 1/2/25', []],
  ['in May 2026, but may 990', [['may', 990]]],
  [
    'may 31, may 32, may 1900, may 1901, may 2099, may 2100, may 5000',
    [
      ['may', 32],
      ['may', 1900],
      ['may', 2100],
      ['may', 5000],
    ],
  ],
  [
    '1.234.56 and 1,234,567',
    [
      ['^', 1234.56],
      ['and', 1_234_567],
    ],
  ],
  ['version 1.23.4, port 1.2.3.4, 1,234,567,890', []],
  [`${'a'.repeat(38)} 1 2 3 4`, ['', '#', '##', '##'].map((marks, at) => [`${'a'.repeat(38)}${marks}`, at + 1])],
  [`${' '.repeat(1999)}5`, [['^', 5]]],
  [`${' '.repeat(2000)}5`, []],
  ['7 up', [['^', 7]]],
  ['', []],
])('the numbers of a text are read with the word before them, alike here and in learned code: %s', (text, numbers) => {
  const expected = numbers.map(([place, value]) => ({ place, value }))
  expect(numbersIn(text)).toEqual(expected)
  expect(inLearnedCode(text)).toEqual(expected)
})

test('a long text is read up to a limit', () => {
  expect(numbersIn('n 1 '.repeat(10_000))).toHaveLength(64)
})
