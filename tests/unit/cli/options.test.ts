import { Command, CommanderError } from 'commander'
import { describe, expect, test } from 'vitest'
import { help as demoHelp, parseOptions as demoOptions } from '../../../cli/demo/options.ts'
import { addDev } from '../../../cli/reflex/project/dev.ts'

/** The options that `reflex dev` runs with, and the text that commander prints. */
async function dev(args: string[]): Promise<{ options: unknown; printed: string }> {
  let options: unknown = null
  let printed = ''
  const add = (text: string) => void (printed += text)
  const program = new Command('reflex').exitOverride().configureOutput({ writeOut: add, writeErr: add })
  addDev(program, async (given) => void (options = given))
  await program.parseAsync(['dev', ...args], { from: 'user' }).catch((error: unknown) => {
    if (!(error instanceof CommanderError)) throw error
  })
  return { options, printed }
}

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

  test('the server listens on 8787 and keeps its state in .reflex', async () => {
    expect((await dev([])).options).toEqual({ port: 8787, state: '.reflex' })
    expect((await dev(['--port', '9000', '--state', '/tmp/x'])).options).toEqual({ port: 9000, state: '/tmp/x' })
  })

  test.each(['0', '65536', 'x', '1.5'])('port %s is refused', async (port) => {
    expect(await dev(['--port', port])).toEqual({ options: null, printed: expect.stringContaining(port) })
  })

  test('help fits 80 columns', async () => {
    const help = `${demoHelp}\n${(await dev(['--help'])).printed}`
    expect(help).toContain('--port')
    expect(Math.max(...help.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
  })
})
