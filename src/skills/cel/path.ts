export type Path = readonly string[]

/** Splits `work.items.0.name` into its parts; null if it is not a path. */
export function parsePath(text: string): string[] | null {
  return /^[\w-]+(?:\.[\w-]+){0,15}$/.test(text) ? text.split('.') : null
}

const pathText = (path: Path): string => path.join('.')

/** The value at `path`, by own properties only. `at` is the first part that does not exist. */
export function readPath(root: unknown, path: Path): { found: true; value: unknown } | { found: false; at: string } {
  let value = root
  for (const [index, name] of path.entries()) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name) || isLength(value, name)) {
      return { found: false, at: pathText(path.slice(0, index + 1)) }
    }
    value = (value as Record<string, unknown>)[name]
  }
  return value === undefined ? { found: false, at: pathText(path) } : { found: true, value }
}

/** A copy of `root` with `value` at `path`. Other values on the path are replaced by objects. */
export function withPath(root: unknown, path: Path, value: unknown): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  const fields = typeof root === 'object' && root !== null && !Array.isArray(root) ? (root as Record<string, unknown>) : {}
  const inner = Object.hasOwn(fields, name) ? fields[name] : undefined
  // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
  return Object.fromEntries([...Object.entries(fields).filter(([other]) => other !== name), [name, withPath(inner, rest, value)]])
}

/** True for the own property of lists that JSON does not have. */
const isLength = (value: object, name: string): boolean => Array.isArray(value) && name === 'length'
