/** Wrapping twice would repeat the bulletin and run each proposal twice. */
const wrapped = new WeakSet<object>()

export function markWrapped<Thing extends object>(thing: Thing): Thing {
  wrapped.add(thing)
  return thing
}

export function refuseWrapped(thing: unknown, name: string): void {
  if (typeof thing !== 'object' || thing === null || !wrapped.has(thing)) return
  throw new TypeError(`${name} is wrapped by Reflex already: wrap it once`)
}
