import { beforeAll, describe, expect, test, vi } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sandboxLimits, type Sandbox } from '../../../src/reflexes/sandbox.ts'
import { program, reflexOf } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

let sandbox: Sandbox
beforeAll(() => {
  sandbox = new QuickJsSandbox(sandboxModule)
})
const run = (body: string, context: unknown = {}) => sandbox.run(reflexOf(body), context)

describe('a run', () => {
  test('returns what the reflex returned', () => {
    expect(run('return { action_type: "reply", content: context.name }', { name: 'Ann' })).toMatchObject({
      value: { action_type: 'reply', content: 'Ann' },
      reason: 'fired',
      error: null,
    })
  })

  test.each(['return null', 'return', ''])('%j is null', (body) => {
    expect(run(body)).toMatchObject({ value: null, reason: 'null', error: null })
  })

  test('says how long it took', () => {
    const times = [5, 5, 5.25]
    const timed = new QuickJsSandbox(sandboxModule, { now: () => times.shift() ?? 5.25 })
    expect(timed.run(reflexOf('return null'), {}).duration_us).toBe(250)
  })

  test('is strict also where code breaks out of what is put around it', () => {
    const hidden =
      'const y = {}\nlet x = 0\nx<!--y[`\n})();\n(function () {\nfunction reflex(context) { return { action_type: "reply", content: (function () { return typeof this })() } }\n//`]\n'
    expect(sandbox.run(program(hidden), {})).toMatchObject({ value: { content: 'undefined' } })
    const sloppy = hidden.replace('(function () {\n', 'with ({}) {}\n(function () {\n')
    expect(sandbox.run(program(sloppy), {})).toMatchObject({ reason: 'error', error: expect.stringContaining('SyntaxError') })
  })

  test('says in which line it failed', () => {
    const { reason, error } = sandbox.run(program('const a = 1\nfunction reflex(context) {\n  return context.a.b\n}'), {})
    expect({ reason, error }).toEqual({ reason: 'error', error: "TypeError: cannot read property 'b' of undefined (line 3)" })
  })

  test('says in which line the code does not parse', () => {
    expect(sandbox.run(program('function reflex(context) {\n  return (}\n}'), {})).toMatchObject({
      reason: 'error',
      error: expect.stringMatching(/^SyntaxError: .*\(line \d\)$/),
    })
  })

  test.each([
    ['text', "throw 'no'", "it threw a value that is not an Error: 'no'"],
    ['an object', 'throw {}', 'it threw a value that is not an Error: something of type object'],
    [
      'an object that defends itself',
      'throw { get message() { throw 1 }, toString() { throw 2 } }',
      'it threw a value that is not an Error: something of type object',
    ],
    [
      'an error that defends itself',
      'const e = new Error(); Object.defineProperty(e, "message", { get() { throw e } }); throw e',
      'it threw a value that cannot be described',
    ],
    [
      'an error of its own',
      'class Refused extends Error { constructor() { super("why"); this.name = "Refused" } } throw new Refused()',
      'Refused: why (line 1)',
    ],
  ])('tells of %s that is thrown', (_, body, error) => {
    expect(run(body)).toMatchObject({ value: null, reason: 'error', error })
  })

  test('a missing function is an error', () => {
    expect(sandbox.run(program('const answer = 42'), {})).toMatchObject({ reason: 'error', error: 'there is no function reflex(context)' })
  })

  test.each(['', 'a, b', '...all', 'a = 1'])('a reflex with the parameters (%s) is an error', (parameters) => {
    expect(sandbox.run(program(`function reflex(${parameters}) { return null }`), {})).toMatchObject({
      reason: 'error',
      error: expect.stringMatching(/^reflex must take one argument/),
    })
  })

  test('text crosses both ways as it is', () => {
    const text = 'ä € 😀 \u0000 \u2028 " \\ </script> \uD800'
    expect(run('return { text: context.text }', { text }).value).toEqual({ text })
  })

  test('a context or a program that is too large is refused', () => {
    expect(run('return null', { text: 'x'.repeat(sandboxLimits.context_bytes) })).toMatchObject({
      reason: 'limit',
      error: expect.stringContaining('the context is larger than 65536 bytes'),
    })
    expect(run('return null', { text: 'x'.repeat(sandboxLimits.context_bytes - 32) })).toMatchObject({ reason: 'null' })
    expect(sandbox.run(program(`function reflex(context) { return null } //${'x'.repeat(sandboxLimits.code_bytes)}`), {})).toMatchObject({
      reason: 'limit',
      error: expect.stringContaining('the program is larger'),
    })
  })

  test('a context counts as what it takes as JSON, however many large fields it has', () => {
    const fields = (last: number) => Object.fromEntries([300, 400, 500, last].map((size, at) => [`field${at}`, 'x'.repeat(size)]))
    const rest = sandboxLimits.context_bytes - JSON.stringify(fields(0)).length
    expect(run('return { length: context.field3.length }', fields(rest)).value).toEqual({ length: rest })
    expect(run('return null', fields(rest + 1))).toMatchObject({ reason: 'limit' })
    const wide = (size: number) => ({ a: 'x'.repeat(300), b: 'é'.repeat(size) })
    const most = Math.floor((sandboxLimits.context_bytes - JSON.stringify(wide(0)).length) / 2)
    expect(run('return null', wide(most))).toMatchObject({ reason: 'null' })
    expect(run('return null', wide(most + 1))).toMatchObject({ reason: 'limit' })
  })

  test('values without a JSON form enter as JSON defines', () => {
    expect(sandbox.run(reflexOf('return { is: context === null }'), undefined).value).toEqual({ is: true })
  })

  test('stops at 100 ms where the clock runs', () => {
    const now = vi.fn<() => number>(() => 0)
    now.mockReturnValueOnce(0).mockReturnValueOnce(0).mockReturnValueOnce(0).mockReturnValueOnce(0).mockReturnValue(101)
    expect(new QuickJsSandbox(sandboxModule, { now }).run(reflexOf('for (;;);'), {})).toMatchObject({
      reason: 'limit',
      error: 'it was stopped after 100 ms',
    })
  })

  test('that breaks off in the middle of QuickJS leaves nothing broken', () => {
    let calls = 0
    const now = () => {
      calls += 1
      if (calls === 5) throw new Error('a fault of the host, in the middle of a run')
      return 0
    }
    const own = new QuickJsSandbox(sandboxModule, { now })
    const looping = reflexOf('const a = []; for (let i = 0; i < 50000; i++) a.push({ i }); return { i: a.length }')
    expect(own.run(looping, {})).toMatchObject({ reason: 'error', error: expect.stringContaining('broke the interpreter') })
    // A run that takes long ends by time: the other one has a clock that stands, too.
    expect(own.run(looping, {})).toEqual(new QuickJsSandbox(sandboxModule, { now: () => 0 }).run(looping, {}))
  })

  test('a sandbox that was disposed of starts again', () => {
    const own = new QuickJsSandbox(sandboxModule)
    const before = own.run(reflexOf('return { a: 1 }'), {})
    own.dispose()
    expect(own.run(reflexOf('return { a: 1 }'), {})).toMatchObject({ value: before.value, fuel: before.fuel })
  })

  test('the same hash with other code is another program', () => {
    const own = new QuickJsSandbox(sandboxModule)
    expect(own.run({ hash: 'same', code: 'function reflex(context) { return { a: 1 } }' }, {}).value).toEqual({ a: 1 })
    expect(own.run({ hash: 'same', code: 'function reflex(context) { return { a: 2 } }' }, {}).value).toEqual({ a: 2 })
  })

  test('more programs than are kept still run', () => {
    const own = new QuickJsSandbox(sandboxModule)
    const large = (number: number) => program(`function reflex(context) { return { number: ${number} } } //${'x'.repeat(60_000)}`)
    for (let number = 0; number < 200; number += 1) expect(own.run(large(number), {}).value).toEqual({ number })
    expect(own.run(large(0), {}).value).toEqual({ number: 0 })
  })
})

describe('memory', () => {
  const counting = (number: number) =>
    program(
      `const NAMES = ['a', 'b', 'c'].map((name) => name + ${number})\nfunction reflex(context) { return { number: ${number}, last: NAMES[2] } }`,
    )

  test('is not taken before the first run', () => {
    const own = new QuickJsSandbox(sandboxModule)
    expect(own.bytes).toBe(0)
    own.run(counting(0), {})
    expect(own.bytes).toBeGreaterThan(0)
  })

  test('of 100 reflexes is far below 64 MB, and does not grow with their runs', () => {
    const own = new QuickJsSandbox(sandboxModule)
    const runAll = () => Array.from({ length: 100 }, (_, number) => own.run(counting(number), { number }).value)
    expect(runAll()).toEqual(Array.from({ length: 100 }, (_, number) => ({ number, last: `c${number}` })))
    const { bytes } = own
    expect(bytes).toBeLessThan(16 * 1024 * 1024)
    for (let round = 0; round < 20; round += 1) runAll()
    expect(own.bytes).toBe(bytes)
  })

  test('of a program of 64 kB suffices', () => {
    const lines = Array.from({ length: 1200 }, (_, n) => `const f${n} = (a, b) => (a ? b.c${n} : { d${n}: 1 })`).join('\n')
    expect(lines.length).toBeGreaterThan(55_000)
    expect(sandbox.run(program(`${lines}\nfunction reflex(context) { return f7(false, {}) }`), {})).toMatchObject({ value: { d7: 1 } })
  })
})

describe('the globals of a reflex', () => {
  test.each([
    ['regular expressions', 'return "a1b22".match(/\\d+/g).join()', '1,22'],
    ['the letters of all languages', 'return "Straße".toUpperCase().normalize("NFC") + "ä".normalize("NFD").length', 'STRASSE2'],
    ['a Set', 'return [...new Set([1, 1, 2])].join()', '1,2'],
    ['groupBy', 'return Object.keys(Object.groupBy([1, 2], (n) => (n % 2 ? "odd" : "even"))).join()', 'odd,even'],
    ['numbers', 'return Math.round(Math.sqrt(2) * 1000) + (12345.678).toFixed(1)', '141412345.7'],
    [
      'a name of the prototype as a field',
      'const o = {}; o.constructor = 1; o.toString = 2; return Object.keys(o).join()',
      'constructor,toString',
    ],
    ['catch', 'try { null.x } catch (error) { return error.name }', 'TypeError'],
    ['generators', 'return [...(function* () { yield* [1, 2] })()].join()', '1,2'],
    ['classes with private fields', 'class A { #n = 1; get n() { return this.#n } } return new A().n', '1'],
    ['tagged templates', 'return ((parts, n) => parts.raw[0] + n)`a${1}`', 'a1'],
  ])('%s', (_, body, expected) => {
    expect(run(`return { value: String((() => { ${body} })()) }`).value).toEqual({ value: expected })
  })
})
