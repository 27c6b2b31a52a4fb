import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * A small change that breaks the code. `from` is found without regard to spaces and line breaks.
 * `tests`: the test files, of any project, that run before the unit tests that import the file.
 */
export type Break = { id: string; file: string; what: string; from: string; to: string; tests?: readonly string[] }

/** An error means that the list is out of date: the code has that place never, or several times. */
export function apply(root: string, { id, file, from, to }: Break): () => void {
  const target = path.join(root, file)
  const text = readFileSync(target, 'utf8')
  const tokens = from.match(/\w+|[^\w\s]/g) ?? []
  const place = new RegExp(tokens.map((token) => token.replace(/\W/, String.raw`\$&`)).join('\\s*'), 'g')
  const found = [...text.matchAll(place)]
  const [first] = found
  if (!first || found.length > 1) throw new Error(`${id}: ${file} has ${found.length} places like ${JSON.stringify(from)}; name one`)
  writeFileSync(target, text.slice(0, first.index) + to + text.slice(first.index + first[0].length))
  return () => writeFileSync(target, text)
}
