import { describe, expect, test } from 'vitest'
import { limits } from '../../../src/base/limits.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { checkReflex, hashProgram } from '../../../src/reflexes/static-check.ts'
import { partsOf, readableProgram, withWeights } from '../../../src/reflexes/weights.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const READS = `function reflex(context) {
  if (weights.length !== context.length) return { action_type: 'ignore', reason: String(weights.length) }
  return { action_type: 'reply', content: context.at.map((at) => weights.charCodeAt(at)).join() }
}`

const bytes = (length: number): string => Array.from({ length }, (_, at) => String.fromCharCode((at % 255) + 1)).join('')

const run = (program: string, context: unknown, sandbox = new QuickJsSandbox(sandboxModule)) =>
  sandbox.run({ hash: program.slice(0, 20), code: program }, context)

describe('weights of a program', () => {
  test.each([1, 255, 32_768, 32_769, limits.weights_bytes])('%i of them are read in place, byte for byte', (length) => {
    const at = [0, Math.floor(length / 2), length - 1]
    const { value, error } = run(withWeights(READS, bytes(length)), { length, at })
    expect(error).toBeNull()
    expect(value).toEqual({ action_type: 'reply', content: at.map((place) => (place % 255) + 1).join() })
  })

  test('use the same fuel in each run, and a program cannot change them for the next one', () => {
    const program = withWeights(
      `let seen = 0\nfunction reflex(context) { seen += 1; return { action_type: 'reply', content: seen + weights } }`,
      'abc',
    )
    const sandbox = new QuickJsSandbox(sandboxModule)
    const [one, two] = [run(program, {}, sandbox), run(program, {}, sandbox)]
    expect(one.error).toBeNull()
    expect(one.value).toEqual({ action_type: 'reply', content: '1abc' })
    expect({ ...two, duration_us: 0 }).toEqual({ ...one, duration_us: 0 })
    expect(run(`function reflex(context) { return typeof weights === 'undefined' ? null : weights }`, {}, sandbox).reason).toBe('null')
  })

  test('more than are allowed, or a damaged line, stop the program at its check and at its run', async () => {
    const damaged = withWeights(READS, 'abcdef').replace('YWJj', 'YW*j')
    const zero = `${READS}\n// weights: AAAA\n`
    for (const program of [withWeights(READS, bytes(limits.weights_bytes + 1)), damaged, zero]) {
      expect(await checkReflex(program)).toMatchObject({ ok: false, errors: [{ line: 5, message: expect.stringContaining('weights') }] })
      expect(run(program, { length: 1, at: [] })).toMatchObject({ value: null, reason: 'error', error: expect.stringContaining('weights') })
    }
  })

  test('are in the hash of the text and of the program; the code beside them is not', async () => {
    const [one, other] = [withWeights(READS, 'abc'), withWeights(READS, 'abd')]
    expect(await checkReflex(one)).not.toEqual(await checkReflex(other))
    expect(await hashProgram(one)).not.toBe(await hashProgram(other))
    expect(await hashProgram(withWeights(`// a comment\n${READS}`, 'abc'))).toBe(await hashProgram(one))
  })

  test('are shown by their size', () => {
    expect(readableProgram(withWeights(READS, bytes(3000)))).toBe(`${READS}\n// weights: 3000 bytes\n`)
    expect(readableProgram(READS)).toBe(READS)
    expect(partsOf(readableProgram(withWeights(READS, 'abc'))).ok).toBe(false)
    expect(partsOf(`${READS}\n// weights: YWJj\nlet after`)).toMatchObject({ ok: true, weights: null })
  })
})
