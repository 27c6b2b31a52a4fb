import { bodyOf, Reader, sectionId, unknown, type Section } from './wasm-binary.ts'

/** The callees of a function: by index, or by type any function of that type in the table. */
export type Calls = { direct: readonly number[]; byType: readonly number[] }

/**
 * The functions that close a cycle of calls: every recursion passes one of them. Found by one walk
 * through the graph: they are what a call leads back to while it is still open. Indexes count from
 * the first function that the module defines itself.
 */
export function recursiveFunctions(calls: readonly Calls[], table: ReadonlyMap<number, readonly number[]>): Set<number> {
  const callees = calls.map(({ direct, byType }) => [...new Set([...direct, ...byType.flatMap((type) => table.get(type) ?? [])])])
  const closing = new Set<number>()
  const open = new Set<number>()
  const done = new Set<number>()
  for (const root of callees.keys()) {
    const path = [{ at: root, next: 0 }]
    while (path.length > 0) {
      const step = path.at(-1) ?? unknown('no path')
      if (step.next === 0 && done.has(step.at)) {
        path.pop()
        continue
      }
      open.add(step.at)
      const callee = callees[step.at]?.[step.next]
      step.next += 1
      if (callee === undefined) {
        open.delete(step.at)
        done.add(step.at)
        path.pop()
      } else if (open.has(callee)) closing.add(callee)
      else if (!done.has(callee)) path.push({ at: callee, next: 0 })
    }
  }
  return closing
}

/** The functions in the table, by their type: what a call through it may reach. */
export function tableByType(sections: readonly Section[], typeOf: (index: number) => number): Map<number, number[]> {
  const imported = importedFunctions(sections)
  const segments = new Reader(bodyOf(sections, sectionId.elements)).vector((reader) => {
    if (reader.unsigned() !== 0 || reader.byte() !== 0x41) unknown('a table filled in another way')
    reader.unsigned()
    reader.byte()
    return reader.vector(() => reader.unsigned())
  })
  const defined = segments.flat().filter((index) => index >= imported)
  return Map.groupBy(
    defined.map((index) => index - imported),
    typeOf,
  )
}

export function importedFunctions(sections: readonly Section[]): number {
  const kinds = new Reader(bodyOf(sections, sectionId.imports)).vector((reader) => {
    reader.text()
    reader.text()
    return reader.kindOfImport()
  })
  return kinds.filter((kind) => kind === 0).length
}
