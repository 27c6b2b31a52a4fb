/**
 * The environment of a reflex. `node cli/build-sandbox.ts` evaluates it once and stores the
 * resulting memory image in sandbox.wasm.
 *
 * 1. Everything that a reflex must not have (clock, randomness, input and output, code from text,
 *    promises) throws an error that gives the reason.
 * 2. All other globals are frozen.
 * 3. Values cross the boundary as JSON text.
 */
;(() => {
  'use strict'
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, values } = Object
  const { ownKeys } = Reflect
  const { parse, stringify } = JSON
  const { InternalError } = globalThis
  const LONGEST_OUTPUT = 16_384
  const LONGEST_REASON = 500

  const absent = {
    'a reflex has no clock: use context.event.timestamp': ['Date', 'performance', 'Temporal'],
    'a reflex has no randomness: the same context gives the same action': ['crypto'],
    'a reflex has no access to the outside: return an action instead': [
      'fetch',
      'XMLHttpRequest',
      'WebSocket',
      'require',
      'process',
      'caches',
    ],
    'a reflex has no console: return an action instead': ['console'],
    'a reflex runs synchronously: nothing can run later': [
      'Promise',
      'setTimeout',
      'setInterval',
      'setImmediate',
      'queueMicrotask',
      'requestAnimationFrame',
    ],
    'a reflex has no access to raw memory or threads': ['SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry', 'WebAssembly'],
  }
  const lacking = ['Proxy', 'ArrayBuffer', 'DataView', 'Intl', 'structuredClone', 'TextEncoder', 'TextDecoder', 'URL', 'Buffer', 'Iterator']
  for (const [reason, names] of Object.entries(absent)) for (const name of names) refuse(name, reason)
  for (const name of lacking) refuse(name, `a reflex has no ${name}`)
  delete globalThis.InternalError
  defineProperty(Math, 'random', { value: refusal('random', 'a reflex has no randomness: the same context gives the same action') })
  refuseCode()

  // A frozen `name`, `toString` or `constructor` of a prototype cannot be shadowed by assignment.
  const errors = ownKeys(globalThis).filter((name) => typeof name === 'string' && name.endsWith('Error'))
  for (const prototype of [Object.prototype, ...errors.map((name) => globalThis[name].prototype)]) allowOwn(prototype)
  harden([globalThis, ...fromSyntax()])

  function refuse(name, reason) {
    const get = () => {
      throw new ReferenceError(reason)
    }
    defineProperty(globalThis, name, { get, enumerable: false, configurable: true })
  }

  function refusal(name, reason) {
    const refusing = function () {
      throw new TypeError(reason)
    }
    return defineProperty(refusing, 'name', { value: name })
  }

  function refuseCode() {
    const reason = 'a reflex cannot evaluate code from text'
    const constructor = refusal('Function', reason)
    defineProperty(constructor, 'prototype', { value: Function.prototype })
    defineProperty(globalThis, 'Function', { value: constructor })
    defineProperty(globalThis, 'eval', { value: refusal('eval', reason) })
    for (const made of functionsFromSyntax()) {
      const prototype = getPrototypeOf(made)
      if (prototype !== null) defineProperty(prototype, 'constructor', { value: constructor })
    }
  }

  function functionsFromSyntax() {
    // oxlint-disable-next-line require-yield, no-empty-function -- only their prototypes matter
    return [function () {}, function* () {}, async function () {}, async function* () {}]
  }

  /** Objects that no global names but that syntax reaches. */
  function fromSyntax() {
    const iterators = [[].values(), ''[Symbol.iterator](), new Map().entries(), new Set().entries(), 'a'.matchAll(/a/g)]
    return [...functionsFromSyntax(), ...iterators, [].values().map((item) => item), functionsFromSyntax()[1].prototype]
  }

  function allowOwn(prototype) {
    for (const key of ownKeys(prototype)) {
      const { value, writable, enumerable } = getOwnPropertyDescriptor(prototype, key)
      if (!writable) continue
      const set = function (own) {
        if (this === prototype) throw new TypeError(`${String(key)} is frozen`)
        defineProperty(this, key, { value: own, writable: true, enumerable: true, configurable: true })
      }
      defineProperty(prototype, key, { get: () => value, set, enumerable, configurable: true })
    }
  }

  function harden(roots) {
    const seen = new Set()
    const waiting = [...roots]
    while (waiting.length > 0) {
      const next = waiting.pop()
      if ((typeof next !== 'object' && typeof next !== 'function') || next === null || seen.has(next)) continue
      seen.add(next)
      freeze(next)
      waiting.push(getPrototypeOf(next))
      for (const key of ownKeys(next)) waiting.push(...values(getOwnPropertyDescriptor(next, key)))
    }
  }

  /**
   * The first word of the answer is its kind: `fired {json}`, `null`, `invalid why`, `error why`,
   * `limit why`.
   */
  function run(reflex, text, ...late) {
    if (typeof reflex !== 'function') return 'error there is no function reflex(context)'
    if (reflex.length !== 1) return `error reflex must take one argument, context, not ${reflex.length}`
    const action = reflex(contextOf(text, late))
    if (action === null || action === undefined) return 'null'
    if (typeof action !== 'object') return `invalid a reflex must return an action or null, not a ${typeof action}`
    return outputOf(action)
  }

  /**
   * `late`: names and JSON of large fields, parsed on first read. Most reflexes never read them,
   * and parsing 4 kB costs more than the rest of a run.
   */
  function contextOf(text, late) {
    const context = parse(text)
    for (let at = 0; at < late.length; at += 2) parseWhenRead(context, late[at], late[at + 1])
    return context
  }

  function parseWhenRead(context, name, json) {
    const keep = (value) => defineProperty(context, name, { value, writable: true, enumerable: true, configurable: true })
    const get = () => {
      const value = parse(json)
      keep(value)
      return value
    }
    defineProperty(context, name, { get, set: (value) => void keep(value), enumerable: true, configurable: true })
  }

  function outputOf(action) {
    let json
    try {
      json = stringify(action)
    } catch (error) {
      const reason = describe(error)
      return reason.startsWith('limit ') ? reason : `invalid the action is not JSON: ${reason.slice('error '.length)}`
    }
    if (json === undefined || json[0] !== '{') return 'invalid a reflex must return an action object or null'
    return json.length > LONGEST_OUTPUT ? `limit the action takes more than ${LONGEST_OUTPUT} bytes as JSON` : `fired ${json}`
  }

  function describe(error) {
    if (!(error instanceof Error))
      return `error it threw a value that is not an Error: ${typeof error === 'string' ? `'${short(error)}'` : `something of type ${typeof error}`}`
    const message = short(error.message)
    if (error instanceof InternalError && message === 'out of memory') return 'limit out of memory'
    if (error instanceof InternalError && message === 'stack overflow') return 'limit the calls are nested too deeply'
    return `error ${short(error.name)}: ${message}\n${short(error.stack)}`
  }

  function short(text) {
    return typeof text === 'string' ? text.slice(0, LONGEST_REASON) : ''
  }

  return [run, describe]
})()
