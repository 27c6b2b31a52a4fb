import type { RunReason } from '../../src/reflexes/sandbox.ts'

/** Code that means no good, what must become of it, and what the reason says. */
export type Hostile = { name: string; code: string; reason: RunReason; error: RegExp }

const ANY = /^/
const hostile = (name: string, body: string, reason: RunReason, error = ANY): Hostile => ({
  name,
  code: body.startsWith('whole:') ? body.slice(6) : `function reflex(context) { ${body} }`,
  reason,
  error,
})

const FUEL = /^it was stopped after \d+ units of fuel/
const MEMORY = /^out of memory$/
const DEPTH = /^the calls are nested too deeply$/

const endless = [
  hostile('an endless loop', 'for (;;);', 'limit', FUEL),
  hostile('an endless loop that catches all', 'for (;;) try { for (;;); } catch {} finally { continue }', 'limit', FUEL),
  hostile('an endless loop at the top level', 'whole:for (;;); function reflex(context) { return null }', 'limit', FUEL),
  hostile('an endless loop in a getter', 'return { action_type: "reply", get content() { for (;;); } }', 'limit', FUEL),
  hostile('an endless loop in toJSON', 'return { toJSON() { for (;;); } }', 'limit', FUEL),
  hostile('an endless loop in a comparator', 'return [3, 1, 2].sort(() => { for (;;); })', 'limit', FUEL),
  hostile('an endless loop in a Proxy trap', 'return new Proxy({}, { get() { for (;;); } })', 'error', /a reflex has no Proxy/),
  hostile('an endless loop in toString', 'return { action_type: "reply", content: `${{ toString() { for (;;); } }}` }', 'limit', FUEL),
  hostile(
    'an endless loop in the message of what is thrown',
    'const e = new Error(); Object.defineProperty(e, "message", { get() { for (;;); } }); throw e',
    'limit',
    FUEL,
  ),
  hostile('an endless iterator', 'return [...{ *[Symbol.iterator]() { for (;;) yield* []; } }]', 'limit', FUEL),
  hostile('an endless generator in a destructuring', 'const [a, ...rest] = (function* () { for (;;) yield 1 })(); return rest', 'limit'),
  hostile('a regular expression that backtracks for ever', 'return /^(a+)+$/.test("a".repeat(50) + "b") ? {} : null', 'limit', FUEL),
  hostile('nested quantifiers', 'return /(x+x+)+y/.test("x".repeat(100)) ? {} : null', 'limit', FUEL),
  hostile('a back reference that backtracks', String.raw`return /(a*)*\1b/.test("a".repeat(60)) ? {} : null`, 'limit', FUEL),
]

/** Loops of QuickJS's own, in which it asks nobody whether it should stop. */
const native = [
  hostile('a search through 2^53 holes', 'return [].indexOf.call({ length: 2 ** 53 - 1 }, 1)', 'limit', FUEL),
  hostile('forEach over a huge sparse array', 'const a = []; a.length = 2 ** 32 - 1; a.forEach(() => 1)', 'limit', FUEL),
  hostile('reverse of what is no array', '[].reverse.call({ length: 2 ** 53 - 1 })', 'limit', FUEL),
  hostile('a join of nothing', 'return [].join.call({ length: 2 ** 32 }, "")', 'limit', FUEL),
  hostile('an iterator that drops for ever', '[].values.call({ length: 2 ** 53 - 1 }).drop(2 ** 52).next()', 'limit', FUEL),
  hostile(
    'a comparison of two ropes of 256 MB',
    'let a = "ab", b = "ab"; for (let i = 0; i < 27; i++) { a += a; b += b } return a === b ? {} : null',
    'limit',
    FUEL,
  ),
  hostile('split of a long text, again and again', 'const s = "a".repeat(3e5); for (;;) s.split("")', 'limit', MEMORY),
  hostile('a search in a long text, again and again', 'const s = "a".repeat(1e6); for (;;) s.indexOf("b")', 'limit', FUEL),
  hostile(
    'sort without a comparator, again and again',
    'const a = Array.from({ length: 5e4 }, (_, i) => (i * 7919) % 50021); for (;;) a.sort()',
    'limit',
    FUEL,
  ),
  hostile('toUpperCase, again and again', 'const s = "ſ".repeat(1e5); for (;;) s.toUpperCase()', 'limit', FUEL),
  hostile('normalize, again and again', 'const s = "ạ̈".repeat(2e4); for (;;) s.normalize("NFKD")', 'limit', FUEL),
  hostile('replace of nothing, again and again', 'const s = "a".repeat(1e5); for (;;) s.replace(/(?:)/g, "b")', 'limit', FUEL),
  hostile('the square of a number, again and again', 'let x = 3n; for (;;) x *= x', 'limit'),
  hostile('a power of two million', 'return { a: String(3n ** 2000000n).length }', 'limit'),
  hostile('digits of a long number, again and again', 'const x = 3n ** 20000n; for (;;) x.toString()', 'limit', FUEL),
  hostile(
    'a function with 65,000 arguments, again and again',
    'const f = () => 1; for (;;) f.apply(null, { length: 65000 })',
    'limit',
    FUEL,
  ),
  hostile('stringify of a sparse array', 'return JSON.stringify(new Array(2 ** 32 - 1))', 'limit'),
  hostile('a tree that is one object a level', 'let x = {}; for (let i = 0; i < 50; i++) x = { x, y: x }; return x', 'limit'),
]

/** Programs that keep something of the memory, or of the fuel, before they are ever called. */
const definitions = [
  hostile(
    'a definition that keeps 3 MB',
    'whole:const kept = Array.from({ length: 2000 }, (_, i) => ("x" + i).repeat(300)); function reflex(context) { return null }',
    'limit',
    /data that the program keeps/,
  ),
  hostile('a definition that fails', 'whole:const kept = null.x; function reflex(context) { return null }', 'error', /TypeError/),
  hostile(
    'a definition that replaces the entry',
    'whole:function reflex(context) { return {} } reflex = Array',
    'invalid_action',
    /must return an action object/,
  ),
]

const depth = [
  hostile('recursion', 'return reflex(context)', 'limit', DEPTH),
  hostile('recursion that catches itself', 'const f = () => { try { f() } finally { f() } }; f()', 'limit'),
  hostile('recursion through a getter', 'const o = { get a() { return o.a } }; return o.a', 'limit', DEPTH),
  hostile('recursion through map', 'const f = () => [1].map(f); f()', 'limit', DEPTH),
  hostile('recursion through replace', 'const f = () => "a".replace("a", f); f()', 'limit', DEPTH),
  hostile('recursion through toJSON', 'const f = () => JSON.stringify({ toJSON: f }); f()', 'limit', DEPTH),
  hostile('recursion through constructors', 'class A { constructor() { new A() } } new A()', 'limit', DEPTH),
  hostile('a list that holds itself as a text', 'const a = []; a[0] = a; return String(a)', 'limit', DEPTH),
  hostile('a list of lists of lists', 'let x = []; for (let i = 0; i < 4000; i++) x = [x]; return { x }', 'limit'),
  hostile('nested groups', 'return new RegExp("(?:".repeat(20000) + ")".repeat(20000))', 'limit', DEPTH),
  hostile('nested JSON', 'return JSON.parse("[".repeat(50000))', 'limit', DEPTH),
  hostile('nested parentheses in the source', `return ${'('.repeat(20_000)}1${')'.repeat(20_000)}`, 'limit', DEPTH),
  hostile('nested functions in the source', `return ${'(()=>'.repeat(8000)}1${')'.repeat(8000)}`, 'limit', DEPTH),
]

const memory = [
  hostile('an array that grows', 'const a = []; for (;;) a.push("x".repeat(1000) + a.length)', 'limit'),
  hostile('a string that doubles', 'let s = "x"; for (;;) s += s', 'error', /string too long/),
  hostile('a string that doubles and is read', 'let s = "ab"; for (;;) { s += s; s.charCodeAt(1) }', 'limit', MEMORY),
  hostile('repeat', 'return { action_type: "reply", content: "x".repeat(1e9) }', 'limit', MEMORY),
  hostile('padEnd', 'return { action_type: "reply", content: "x".padEnd(1e9, "ab") }', 'limit', MEMORY),
  hostile('padStart, again and again', 'for (;;) "x".padStart(1e6, "ab")', 'limit', FUEL),
  hostile('a typed array', 'return new Uint8Array(1e9)', 'error', /'Uint8Array' is not defined/),
  hostile('an ArrayBuffer', 'return new ArrayBuffer(1e9)', 'error', /a reflex has no ArrayBuffer/),
  hostile('Array(1e9).fill', 'return Array(1e9).fill(0)', 'limit', MEMORY),
  hostile('Array.from', 'return Array.from({ length: 1e9 }, (_, i) => i)', 'limit'),
  hostile('a Map that grows', 'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })', 'limit'),
  hostile('an object that grows', 'const o = {}; for (let i = 0; ; i++) o["k" + i] = "v" + i', 'limit'),
  hostile('a chain of prototypes', 'let o = {}; for (;;) o = Object.create(o)', 'limit', MEMORY),
  hostile('functions bound to functions', 'let f = () => 1; for (;;) f = f.bind(null)', 'limit'),
  hostile('memory that is used up and then caught', 'const a = []; for (;;) try { for (;;) a.push("x".repeat(1000)) } catch {}', 'limit'),
]

const output = [
  hostile('a giant output', 'return { action_type: "reply", content: "x".repeat(20000) }', 'limit', /16384 bytes/),
  hostile(
    'an output that is giant in bytes only',
    'return { action_type: "reply", content: "€".repeat(10000) }',
    'limit',
    /takes 300\d\d bytes/,
  ),
  hostile('a promise', 'return Promise.resolve({ action_type: "escalate", reason: "x" })', 'error', /runs synchronously/),
  hostile('an async entry', 'whole:async function reflex(context) { return null }', 'error', /no function reflex/),
  hostile('a thenable', 'return { then(resolve) { resolve(1) } }', 'fired'),
  hostile('a function', 'return () => 1', 'invalid_action', /not a function/),
  hostile('a symbol', 'return Symbol("x")', 'invalid_action', /not a symbol/),
  hostile('NaN', 'return NaN', 'invalid_action', /not a number/),
  hostile('text', 'return "null"', 'invalid_action', /not a string/),
  hostile('a BigInt in it', 'return { a: 1n }', 'invalid_action', /not JSON/),
  hostile('a list', 'return []', 'invalid_action', /must return an action object/),
  hostile('a cycle', 'const a = {}; a.a = a; return a', 'invalid_action', /circular/),
  hostile('toJSON to a function', 'return { toJSON: () => () => 1 }', 'invalid_action', /must return an action object/),
  hostile('toJSON that throws', 'return { toJSON() { throw 1 } }', 'invalid_action', /not JSON/),
  hostile('a getter that lies', 'let n = 0; return { get action_type() { return n++ ? "call_tool" : "escalate" }, reason: "x" }', 'fired'),
]

const escape = [
  hostile('a constructor’s constructor', 'return [].constructor.constructor("return globalThis")()', 'error', /cannot evaluate code/),
  hostile(
    'a generator’s constructor',
    'return Object.getPrototypeOf(function* () {}).constructor("yield 1")()',
    'error',
    /cannot evaluate code/,
  ),
  hostile('eval', 'return eval("1")', 'error', /cannot evaluate code/),
  hostile('indirect eval', 'return (0, eval)("1")', 'error', /cannot evaluate code/),
  hostile('new Function', 'return new Function("return 1")()', 'error', /cannot evaluate code/),
  hostile('import()', 'return import("node:fs")', 'error'),
  hostile('Date', 'return Date.now()', 'error', /no clock: use context\.event\.timestamp/),
  hostile('performance', 'return performance.now()', 'error', /no clock/),
  hostile('Math.random', 'return Math.random()', 'error', /no randomness/),
  hostile('crypto', 'return crypto.randomUUID()', 'error', /no randomness/),
  hostile('fetch', 'return fetch("https://example.com")', 'error', /has no access to the outside/),
  hostile('setTimeout', 'setTimeout(() => 1)', 'error', /runs synchronously/),
  hostile('process', 'return process.env', 'error', /has no access to the outside/),
  hostile('require', 'return require("fs")', 'error', /has no access to the outside/),
  hostile('console', 'console.log(1)', 'error', /no console/),
  hostile('globalThis', 'globalThis.leak = 1', 'error', /not extensible/),
  hostile('an undeclared name', 'leak = 1', 'error', /not defined/),
  hostile('this', 'return { action_type: "reply", content: typeof this }', 'fired'),
  hostile('the caller of its caller', 'return reflex.caller', 'error'),
  hostile('arguments.callee', 'return arguments.callee', 'error'),
  hostile('pollution of the array’s prototype', 'Array.prototype.push = () => 0', 'error', /read-only/),
  hostile('pollution of the object’s prototype', 'Object.prototype.action_type = "reply"', 'error', /not extensible/),
  hostile('pollution by __proto__', 'context.__proto__.polluted = 1', 'error', /not extensible/),
  hostile(
    'pollution by JSON',
    'const o = JSON.parse(\'{"__proto__": {"polluted": 1}}\'); return { a: String({}.polluted), o: o.polluted }',
    'fired',
  ),
  hostile('another prototype for the object’s', 'Object.setPrototypeOf(Object.prototype, { a: 1 })', 'error'),
  hostile('a way out of what stands around the code', 'whole:}); for (;;); (function () {', 'limit', FUEL),
  hostile('a way out of the strict mode', 'whole:function reflex(context) { with (context) { return null } }', 'error', /SyntaxError/),
  hostile('no program at all', 'whole:\u0000\uD800 ]]', 'error', /SyntaxError/),
]

export const hostilePrograms: readonly Hostile[] = [...endless, ...native, ...definitions, ...depth, ...memory, ...output, ...escape]
