import { describe, expect, test } from 'vitest'
import { help as demoHelp, parseOptions as demoOptions } from '../../../cli/demo/options.ts'
import { help as devHelp, parseOptions as devOptions } from '../../../cli/dev/options.ts'

describe('options', () => {
  test('the demo has defaults for all of them', () => {
    expect(demoOptions([])).toEqual({
      file: null,
      limit: 100_000,
      speed: null,
      timeout_s: 60,
      reflex: true,
      learning: true,
      keep: false,
      json: false,
      help: false,
    })
  })

  test('the demo takes each', () => {
    const args = [
      '--file',
      'a.log',
      '--limit=5',
      '--speed',
      '50',
      '--timeout',
      '9',
      '--no-reflex',
      '--no-learning',
      '--keep',
      '--json',
      '-h',
    ]
    expect(demoOptions(args)).toEqual({
      file: 'a.log',
      limit: 5,
      speed: 50,
      timeout_s: 9,
      reflex: false,
      learning: false,
      keep: true,
      json: true,
      help: true,
    })
  })

  test.each([[['--limit', '0']], [['--speed', 'fast']], [['--timeout', '1.5']], [['--nope']], [['auth.log']], [['--file']]])(
    'the demo refuses %j and names it',
    (args) => {
      expect(() => demoOptions(args)).toThrow(args[0]?.replace(/^--(?=file)/, ''))
    },
  )

  test('the server listens on 8787 and keeps its state in .reflex', () => {
    expect(devOptions([])).toEqual({ port: 8787, state: '.reflex', help: false })
    expect(devOptions(['--port', '9000', '--state', '/tmp/x'])).toMatchObject({ port: 9000, state: '/tmp/x' })
  })

  test.each(['0', '65536', 'x', '1.5'])('port %s is refused', (port) => {
    expect(() => devOptions(['--port', port])).toThrow(port)
  })

  test.each([demoHelp, devHelp])('help fits 80 columns', (help) => {
    expect(Math.max(...help.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  })
})
