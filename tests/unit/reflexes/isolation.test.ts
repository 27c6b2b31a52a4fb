import { describe, expect, test } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../src/reflexes/reflex-context.ts'
import { hostilePrograms } from '../../support/hostile-programs.ts'
import { bystander, BYSTANDER_FUEL, program, reflexOf } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })

describe('no state from one run to the next', () => {
  test.each([
    ['a variable at the top level', 'let n = 0; function reflex(context) { return { n: ++n } }'],
    ['a property of its function', 'function reflex(context) { reflex.n = (reflex.n || 0) + 1; return { n: reflex.n } }'],
    [
      'a property of a helper',
      'const helper = () => 1; function reflex(context) { helper.n = (helper.n || 0) + 1; return { n: helper.n } }',
    ],
    ['the prototype of its function', 'function reflex(context) { const p = reflex.prototype; p.n = (p.n || 0) + 1; return { n: p.n } }'],
    ['lastIndex of an expression', 'const r = /a/g; function reflex(context) { r.test("aaa"); return { n: r.lastIndex } }'],
    ['a list at the top level', 'const all = []; function reflex(context) { all.push(1); return { n: all.length } }'],
    ['a Map', 'const m = new Map(); function reflex(context) { m.set("n", (m.get("n") || 0) + 1); return { n: m.get("n") } }'],
    [
      'a WeakMap on what is frozen',
      'const m = new WeakMap(); function reflex(context) { m.set(Array, (m.get(Array) || 0) + 1); return { n: m.get(Array) } }',
    ],
    [
      'a template object',
      'const of = (t) => t; const m = new Map(); function reflex(context) { const t = of`a`; m.set(t, (m.get(t) || 0) + 1); return { n: m.get(t) } }',
    ],
    [
      'a generator that waits',
      'const g = (function* () { let n = 1; for (;;) yield n++ })(); function reflex(context) { return { n: g.next().value } }',
    ],
    ['a private field', 'class A { static #n = 0; static next() { return ++A.#n } } function reflex(context) { return { n: A.next() } }'],
    ['the entry itself', 'function reflex(context) { const n = 1; reflex = () => ({ n: 2 }); return { n } }'],
    [
      'the registry of symbols',
      'function reflex(context) { const s = Symbol.for("n"); const o = Array[s]; try { Array[s] = 1 } catch {} return { n: o === undefined ? 1 : 2 } }',
    ],
    [
      'getters',
      'const o = { get n() { Object.defineProperty(o, "n", { value: 2 }); return 1 } }; function reflex(context) { return { n: o.n } }',
    ],
  ])('%s', (_, code) => {
    const runs = [1, 2, 3].map(() => sandbox.run(program(code), sampleContext))
    expect(runs[0]).toMatchObject({ reason: 'fired', value: { n: 1 } })
    expect(runs[1]).toEqual(runs[0])
    expect(runs[2]).toEqual(runs[0])
  })

  test('a change of the realm by one program is not visible to another', () => {
    const tamper = `
      const tries = [
        () => { Array.prototype.filter = () => [1, 2, 3] },
        () => { Object.prototype.leak = 1 },
        () => { Object.defineProperty(globalThis, 'leak', { value: 1 }) },
        () => { JSON.stringify = () => '{}' },
        () => { Error.prepareStackTrace = () => 'x' },
        () => { Symbol.prototype.leak = 1 },
        () => { Object.getPrototypeOf(function* () {}).leak = 1 },
        () => { [].values().__proto__.next = () => ({ done: true }) },
        () => { RegExp.prototype.exec = () => null },
        () => { Map.prototype.get = () => 1 },
        () => { Math.max = () => 1 },
        () => { Object.setPrototypeOf(Array.prototype, null) },
        () => { delete globalThis.Array },
        () => { globalThis.undefined = 1 },
      ]
      const failed = tries.filter((attempt) => { try { attempt(); return false } catch { return true } })
      return { failed: failed.length }`
    expect(sandbox.run(reflexOf(tamper), sampleContext).value).toEqual({ failed: 14 })
    expect(sandbox.run(bystander, sampleContext)).toMatchObject({ value: { content: 'seen: 1' }, fuel: BYSTANDER_FUEL })
  })

  test('every object of the realm is frozen, those that only syntax reaches too', () => {
    const search = `
      const seen = new Set()
      const loose = []
      const waiting = [[globalThis, 'globalThis'], [[].values(), 'values'], [''[Symbol.iterator](), 'text'], [new Map().keys(), 'map'], ['a'.matchAll(/a/g), 'matchAll'],
        [[].values().take(1), 'take'], [Object.getPrototypeOf((function* () {})()), 'generator'], [async () => 1, 'async']].map(([o, name]) => [name === 'globalThis' ? o : Object.getPrototypeOf(o), name])
      for (const next of waiting) {
        const [object, path] = next
        if (Object(object) !== object || seen.has(object)) continue
        seen.add(object)
        if (!Object.isFrozen(object)) loose.push(path)
        waiting.push([Object.getPrototypeOf(object), path + '.__proto__'])
        for (const key of Reflect.ownKeys(object)) {
          const { value, get, set } = Object.getOwnPropertyDescriptor(object, key)
          for (const found of [value, get, set]) waiting.push([found, path + '.' + String(key)])
        }
      }
      return { loose, many: seen.size > 300 }`
    expect(sandbox.run(reflexOf(search), {}).value).toEqual({ loose: [], many: true })
  })

  test('the context is a copy', () => {
    const context = { scratch: { n: 1 } }
    expect(
      sandbox.run(reflexOf('context.scratch.n++; context.scratch.__proto__ = null; return { n: context.scratch.n }'), context).value,
    ).toEqual({ n: 2 })
    expect(context).toEqual({ scratch: { n: 1 } })
  })
})

describe('fuel', () => {
  test('is the same over 100 runs between others', () => {
    const programs = [
      reflexOf('let n = 0; for (let i = 0; i < 500; i++) n += i; return { n }'),
      bystander,
      reflexOf('throw new Error("x")'),
    ]
    const first = programs.map((each) => sandbox.run(each, sampleContext))
    for (let round = 0; round < 100; round += 1) {
      const between = hostilePrograms[(round * 7) % hostilePrograms.length]
      if (between) sandbox.run(program(between.code), { round })
      expect(programs.map((each) => sandbox.run(each, sampleContext))).toEqual(first)
    }
  })

  test('is the same in another sandbox, in another order, and whatever has been compiled before', () => {
    const own = new QuickJsSandbox(sandboxModule, { now: () => 0 })
    own.run(reflexOf('return { a: "something else" }'), { other: 1 })
    expect(own.run(bystander, sampleContext).fuel).toBe(BYSTANDER_FUEL)
  })

  test('grows with the work', () => {
    const loops = [10, 100, 1000].map((n) => sandbox.run(reflexOf(`for (let i = 0; i < ${n}; i++); return null`), {}).fuel)
    const [ten = 0, hundred = 0, thousand = 0] = loops
    expect((thousand - hundred) / (hundred - ten)).toBeCloseTo(10, 1)
  })

  test('a tighter limit stops at that limit', () => {
    const tight = new QuickJsSandbox(sandboxModule, { fuel: 50_000 })
    expect(tight.run(reflexOf('for (;;);'), {})).toMatchObject({ reason: 'limit', fuel: 50_000 })
    expect(tight.run(reflexOf('return { a: 1 }'), {})).toMatchObject({ reason: 'fired' })
  })
})
