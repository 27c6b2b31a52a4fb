import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildSandbox } from '../../../cli/sandbox/build-sandbox.ts'
import { compile } from '../../../cli/sandbox/compile.ts'
import { recursiveFunctions } from '../../../cli/sandbox/call-graph.ts'
import { meterWasm } from '../../../cli/sandbox/meter-wasm.ts'

const engine = path.join(import.meta.dirname, '../../../src/reflexes/engine')
const { resolve } = createRequire(import.meta.url)

test('sandbox.wasm is what its sources give', async () => {
  const built = await buildSandbox({
    quickjs: readFileSync(resolve('@jitl/quickjs-wasmfile-release-sync/wasm')),
    glue: readFileSync(resolve('@jitl/quickjs-wasmfile-release-sync/emscripten-module'), 'utf8'),
    realm: readFileSync(path.join(engine, 'realm.js'), 'utf8'),
  })
  expect(Buffer.from(built).equals(readFileSync(path.join(engine, 'sandbox.wasm')))).toBe(true)
})

describe('metering', () => {
  const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
  /** A module with a stack global, an empty table, and one function of type (i32) -> i32. */
  const moduleOf = (...body: number[]) => {
    const section = (id: number, ...bytes: number[]) => [id, bytes.length, ...bytes]
    const code = [0x00, ...body, 0x0b]
    return Uint8Array.from([
      ...HEADER,
      ...section(1, 1, 0x60, 1, 0x7f, 1, 0x7f),
      ...section(2, 0),
      ...section(3, 1, 0),
      ...section(6, 1, 0x7f, 0x01, 0x41, 0, 0x0b),
      ...section(7, 1, 1, 0x66, 0x00, 0),
      ...section(9, 0),
      ...section(10, 1, code.length, ...code),
    ])
  }
  const start = (...body: number[]) => {
    const { exports } = new WebAssembly.Instance(compile(meterWasm(moduleOf(...body))))
    const { f, fuel, depth } = exports as unknown as { f: (n: number) => number; fuel: { value: number }; depth: { value: number } }
    fuel.value = 1000
    depth.value = 10_000
    return { f, fuel, depth }
  }
  const FOREVER = [0x03, 0x40, 0x0c, 0, 0x0b, 0x00]
  /** n === 0 ? 7 : f(n - 1), left by `return`. */
  const DESCEND = [0x20, 0, 0x45, 0x04, 0x40, 0x41, 7, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0]

  test('stops a loop', () => {
    const { f, fuel } = start(...FOREVER)
    expect(() => f(0)).toThrow(WebAssembly.RuntimeError)
    expect(fuel.value).toBe(-1)
  })

  test('stops a recursion, and gives back what a call that returns had taken', () => {
    const { f, depth } = start(...DESCEND)
    expect(f(50)).toBe(7)
    expect(depth.value).toBe(10_000)
    expect(() => f(500)).toThrow(WebAssembly.RuntimeError)
    expect(depth.value).toBeLessThan(0)
  })

  test('counts the calls of a recursion', () => {
    const { f, fuel } = start(...DESCEND)
    f(50)
    expect(fuel.value).toBe(1000 - 51)
  })

  test('refuses an instruction that it does not know', () => {
    expect(() => meterWasm(moduleOf(0xfd, 0))).toThrow(/the instruction 0xfd, which the sandbox's build does not know/)
  })

  test.each([
    ['a call of itself', [[0]], [0]],
    ['two that call each other', [[1], [0]], [0]],
    ['a chain', [[1], [2], []], []],
    ['a cycle behind a chain', [[1], [2], [1]], [1]],
    ['a diamond', [[1, 2], [3], [3], []], []],
  ])('of %s finds what closes it', (_, direct, closing) => {
    expect([
      ...recursiveFunctions(
        direct.map((calls) => ({ direct: calls, byType: [] })),
        new Map(),
      ),
    ]).toEqual(closing)
  })

  test('a call through the table may reach whatever has its type', () => {
    expect([
      ...recursiveFunctions(
        [
          { direct: [], byType: [5] },
          { direct: [0], byType: [] },
        ],
        new Map([[5, [1]]]),
      ),
    ]).toEqual([0])
  })
})
