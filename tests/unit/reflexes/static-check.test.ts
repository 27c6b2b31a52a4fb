import { describe, expect, test } from 'vitest'
import { checkReflex } from '../../../src/reflexes/static-check.ts'

const errorsOf = async (code: string) => {
  const check = await checkReflex(code)
  return check.ok ? [] : check.errors
}

describe('a static check', () => {
  test('test_reflex_artifact_creation: code with the entry point passes, and its hash names it', async () => {
    const code =
      '// says hello\nconst GREETING = "hello"\nfunction reflex(context) {\n  return greet(context)\n}\nfunction greet({ event }) { return null }\n'
    const check = await checkReflex(code)
    expect(check).toEqual({ ok: true, hash: expect.stringMatching(/^[0-9a-f]{64}$/) })
    expect(await checkReflex(code)).toEqual(check)
    expect(await checkReflex(`${code} `)).not.toEqual(check)
  })

  test.each([
    ['nothing', '', 1, 1, /there is no function reflex\(context\)/],
    ['another name', '\nfunction reflexes(context) {}', 1, 1, /there is no function reflex/],
    ['an entry that is not at the top level', '{ function reflex(context) {} }', 1, 1, /no function reflex\(context\) at the top level/],
    ['an arrow function', 'const reflex = (context) => null', 1, 1, /declare it as `function reflex\(context\)/],
    ['no parameter', '\n  function reflex() {}', 2, 3, /exactly one parameter, context, not 0/],
    ['two parameters', 'function reflex(context, more) {}', 1, 1, /exactly one parameter, context, not 2/],
    ['a default', 'function reflex(context = {}) {}', 1, 17, /plain name/],
    ['a pattern', 'function reflex({ event }) {}', 1, 17, /plain name/],
    ['a rest', 'function reflex(...context) {}', 1, 17, /plain name/],
    ['async', 'async function reflex(context) {}', 1, 1, /must not be async/],
    ['a generator', 'function* reflex(context) {}', 1, 1, /must not be a generator/],
    ['two entries', 'function reflex(context) {}\nfunction reflex(context) {}', 2, 10, /already been declared/],
    ['an import', 'import fs from "fs"\nfunction reflex(context) {}', 1, 1, /imports nothing/],
    ['import()', 'function reflex(context) {\n  return import("fs")\n}', 2, 10, /imports nothing/],
    ['import.meta', 'function reflex(context) { return import.meta }', 1, 35, /no import.meta/],
    ['an export', 'export function reflex(context) {}\nfunction reflex2(context) {}', 1, 1, /.*/],
    ['await at the top level', 'await 1\nfunction reflex(context) {}', 1, 1, /waits for nothing/],
    ['an async helper', 'function reflex(context) {}\nconst f = async () => 1', 2, 11, /nothing in a reflex is asynchronous/],
    ['for await', 'async function f() { for await (const a of []); }\nfunction reflex(context) {}', 1, 1, /asynchronous/],
    ['for await at the top level', 'function reflex(context) { return null }\nfor await (const a of []);', 2, 1, /waits for nothing/],
    ['what the strict mode forbids', 'function reflex(context) {\n  with (context) {}\n}', 2, 3, /'with' in strict mode/],
    ['a comment that only a script knows', 'function reflex(context) {\n  let x = 0\n  x<!--x\n}', 3, 4, /begins a comment/],
    ['one that ends in a template', 'let x = 0\nx<!--y[`\n//`]\nfunction reflex(context) {}', 2, 2, /begins a comment/],
    ['its end at the beginning of a line', 'function reflex(context) {}\n--> hidden', 2, 3, /Unexpected token/],
    ['its end behind a comment', 'function reflex(context) {}\n/* */ --> hidden', 2, 9, /Unexpected token/],
    ['a line for a shell', '#!/usr/bin/env node\nfunction reflex(context) {}', 1, 2, /Unexpected/],
    ['what does not parse', 'function reflex(context) {\n  return {\n}', 3, 2, /Unexpected token/],
    [
      'code that is nested too deeply',
      `function reflex(context) { return ${'('.repeat(30_000)}1${')'.repeat(30_000)} }`,
      1,
      expect.any(Number),
      /nested too deeply/,
    ],
    [
      'code that is too long',
      `function reflex(context) {} //${'€'.repeat(30_000)}`,
      1,
      1,
      /the code is 90030 bytes long; 65536 are allowed/,
    ],
  ])('refuses %s, with its place', async (_, code, line, column, message) => {
    expect(await errorsOf(code)).toContainEqual({ line, column, message: expect.stringMatching(message) })
  })

  test.each([
    'function reflex(context) { return "<!-- a -->" }',
    'function reflex(context) { return /<!--/.test(context.text) ? `<!--${1}-->` : null } // <!-- no -->',
    'function reflex(context) { let x = 1\n  return 0 < !--x || x-->0 }',
  ])('takes what only looks like such a comment: %s', async (code) => {
    expect(await errorsOf(code)).toEqual([])
  })

  test('names all faults at once', async () => {
    expect(await errorsOf('import a from "a"\nasync function reflex() {}\n')).toHaveLength(3)
  })

  test.each([
    'function reflex(context: any) { return null }',
    'function reflex(context): Action { return null }',
    'function reflex(context) { const n: number = 1; return null }',
    'interface A { b: string }\nfunction reflex(context) { return null }',
    'type A = { b: string }\nfunction reflex(context) { return null }',
    'function reflex(context) { return context as any }',
    'function reflex(context) { return first<string>([]) }\nfunction first<T>(list) { return list[0] }',
    'function reflex(context) { return context.event!.type }',
    'enum A { B }\nfunction reflex(context) { return null }',
  ])('says of TypeScript that it is not accepted: %s', async (code) => {
    expect(await errorsOf(code)).toEqual([
      { line: expect.any(Number), column: expect.any(Number), message: expect.stringContaining('TypeScript') },
    ])
  })

  test('says where the longest word is wrong without a search through all of it', async () => {
    const from = performance.now()
    expect(await errorsOf(`${'a'.repeat(64_000)}.#`)).toHaveLength(1)
    expect(performance.now() - from).toBeLessThan(1000)
  })

  test('does not take a slip in JavaScript for TypeScript', async () => {
    expect(await errorsOf('function reflex(context) { return { a: 1, b: string }} }')).toEqual([
      expect.objectContaining({ message: 'Unexpected token' }),
    ])
  })
})
