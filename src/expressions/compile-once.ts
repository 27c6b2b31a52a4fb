import type { Compiled } from './compile.ts'

/** Compiles a source once; the most recently compiled `most` are kept. */
export function compileOnce(most: number, compile: (source: string) => Compiled): (source: string) => Compiled {
  const known = new Map<string, Compiled>()
  return (source) => {
    const before = known.get(source)
    if (before) return before
    const fresh = compile(source)
    if (known.size >= most) known.delete(known.keys().next().value ?? '')
    known.set(source, fresh)
    return fresh
  }
}
