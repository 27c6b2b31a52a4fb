import { describe, expect, test } from 'vitest'
import { LiveScreen } from '../../../cli/lib/live-screen.ts'
import { isTerminal, painter } from '../../../cli/lib/paint.ts'
import { count, counted, cut, dollars, duration, harmless, wrap } from '../../../cli/lib/text.ts'

const ESC = '\u001b['

describe('colour', () => {
  const terminal = { isTTY: true, write: () => {} }
  test('is for terminals only, and not where NO_COLOR or TERM=dumb ask for none', () => {
    expect(painter(terminal, { TERM: 'xterm' })('red', 'x')).toBe(`${ESC}31mx${ESC}39m`)
    expect(painter(terminal, { TERM: 'xterm', NO_COLOR: '1' })('red', 'x')).toBe('x')
    expect(painter(terminal, { TERM: 'dumb' })('red', 'x')).toBe('x')
    expect(painter({ write: () => {} }, { TERM: 'xterm' })('red', 'x')).toBe('x')
  })

  test('a dumb terminal gets no picture', () => {
    expect(isTerminal(terminal, { TERM: 'dumb' })).toBe(false)
    expect(isTerminal(terminal, {})).toBe(true)
  })
})

describe('the live screen', () => {
  const screenOf = (columns: number) => {
    const written: string[] = []
    const output = { isTTY: true, columns, write: (text: string) => written.push(text) }
    return { written, output, screen: new LiveScreen(output) }
  }

  test('draws each frame in one piece over the one before', () => {
    const { written, screen } = screenOf(80)
    screen.draw(['a', 'b'])
    screen.draw(['a', 'c'])
    expect(written).toEqual([
      `${ESC}?25l${ESC}?2026ha${ESC}K\nb${ESC}K\n${ESC}J${ESC}?2026l`,
      `${ESC}?2026h${ESC}2A\ra${ESC}K\nc${ESC}K\n${ESC}J${ESC}?2026l`,
    ])
  })

  test('writes nothing where nothing has changed', () => {
    const { written, screen } = screenOf(80)
    screen.draw(['a'])
    screen.draw(['a'])
    expect(written).toHaveLength(1)
  })

  test('finds its first line again when the terminal became narrower, colours not counted', () => {
    const { written, output, screen } = screenOf(80)
    screen.draw([`${ESC}31m${'x'.repeat(50)}${ESC}39m`, 'b'])
    output.columns = 20
    screen.draw(['c'])
    expect(written[1]).toContain(`${ESC}4A\r`)
  })

  test('erasing gives the cursor back, once', () => {
    const { written, screen } = screenOf(80)
    screen.draw(['a'])
    screen.erase()
    screen.erase()
    expect(written.slice(1)).toEqual([`${ESC}1A\r${ESC}J${ESC}?25h`])
  })
})

describe('words and numbers', () => {
  test('are cut to their place', () => {
    expect([cut('abcdef', 6), cut('abcdef', 4), cut('abcdef', 0)]).toEqual(['abcdef', 'abc…', '…'])
  })

  test('read as a person would say them', () => {
    expect([count(2000), counted(1, 'line'), counted(0, 'line'), counted(2, 'address', 'addresses')]).toEqual([
      '2,000',
      '1 line',
      '0 lines',
      '2 addresses',
    ])
    expect([duration(12.4), duration(1234), duration(59_940), duration(61_000)]).toEqual(['12 ms', '1.23 s', '59.9 s', '1 min 1 s'])
    expect([dollars(0), dollars(0.01234), dollars(null)]).toEqual(['$0', '$0.0123', 'price unknown'])
  })

  test('are wrapped at spaces; a longer word stands alone', () => {
    expect(wrap('a bb ccc dddddd e', 5)).toEqual(['a bb', 'ccc', 'dddddd', 'e'])
    expect(wrap('a b c', Number.POSITIVE_INFINITY)).toEqual(['a b c'])
  })

  test('hold nothing that a terminal obeys', () => {
    expect(harmless('a\u001b[31mb\u0007\u009b\u202ec é')).toBe('a?[31mb???c é')
  })

  test('are one line where a text had several', () => {
    expect(harmless('division by zero\n\n>    1 | 1 / 0\r\n\t  ^')).toBe('division by zero >    1 | 1 / 0 ^')
  })
})
