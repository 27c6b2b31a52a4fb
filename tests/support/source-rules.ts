import { FUNCTIONS, isNode, nodesIn, type SourceFile, type SyntaxNode } from './syntax.ts'

const TYPES = new Set(['TSTypeAliasDeclaration', 'TSInterfaceDeclaration', 'TSEnumDeclaration', 'ClassDeclaration'])
const MOST_FILES = 6

type Declared = { file: string; name: string; isExported: boolean }

const nameOf = (node: unknown): string => (isNode(node) ? String(node['name']) : '')

/** The types and classes that a file declares. */
function declaredIn({ file, program }: SourceFile): Declared[] {
  return [...nodesIn(program)].flatMap(([node, above]) => {
    // An interface within `declare module` adds to the interface of another file.
    if (!TYPES.has(node.type) || !isNode(node['id']) || above.some(({ type }) => type === 'TSModuleDeclaration')) return []
    return [{ file, name: nameOf(node['id']), isExported: above.at(-1)?.type === 'ExportNamedDeclaration' }]
  })
}

/** The names with too many files: an exported type has one, a local one at most six. */
export function namesakesIn(sources: readonly SourceFile[], exported: boolean): [name: string, files: string[]][] {
  const most = exported ? 1 : MOST_FILES
  const declared = sources.flatMap(declaredIn).filter(({ isExported }) => isExported === exported)
  const files = Map.groupBy(declared, ({ name }) => name)
  return [...files]
    .map(([name, places]): [string, string[]] => [name, [...new Set(places.map(({ file }) => file))]])
    .filter(([, places]) => places.length > most)
}

/** The types that are a context: what a class or a wiring is made from. */
const CONTEXT = /Parts$|^(?:ScopeHost|Ground|Reflexes|Lanes|Skilled|Live|Looped)$/

const typeNameOf = (node: unknown): string => (isNode(node) && node.type === 'TSTypeReference' ? nameOf(node['typeName']) : '')
const isContext = (annotation: unknown): boolean => isNode(annotation) && CONTEXT.test(typeNameOf(annotation['typeAnnotation']))

/** The keys of `Pick<Context, 'a' | 'b'>`. */
function picked(node: SyntaxNode): number {
  if (typeNameOf(node) !== 'Pick' || !isNode(node['typeArguments'])) return 0
  const [context, keys] = node['typeArguments']['params'] as SyntaxNode[]
  if (!CONTEXT.test(typeNameOf(context))) return 0
  return keys?.type === 'TSUnionType' ? (keys['types'] as SyntaxNode[]).length : 1
}

/** True for members of a context that is a parameter, and of a field such as `this.#parts`. */
function takesFromContext(pattern: SyntaxNode, above: readonly SyntaxNode[]): boolean {
  const parent = above.at(-1)
  if (isContext(pattern['typeAnnotation'])) return true
  if (parent?.type !== 'VariableDeclarator' || !isNode(parent['init'])) return false
  const { init } = parent
  if (init.type === 'MemberExpression') return isNode(init['object']) && init['object'].type === 'ThisExpression'
  const parameters = above.flatMap(({ type, params }) => (FUNCTIONS.has(type) ? (params as SyntaxNode[]) : []))
  return parameters.some((parameter) => nameOf(parameter) === nameOf(init) && isContext(parameter['typeAnnotation']))
}

/** Finds places, `file:line`, that take more than `most` members from a context, or by `Pick`. */
export function takingTooMuch({ file, code, program }: SourceFile, most: number): string[] {
  return [...nodesIn(program)].flatMap(([node, above]) => {
    const isPattern = node.type === 'ObjectPattern' && takesFromContext(node, above)
    const taken = isPattern ? (node['properties'] as SyntaxNode[]).length : picked(node)
    return taken > most ? [`${file}:${code.slice(0, node.start).split('\n').length} (${taken})`] : []
  })
}

const linesOf = ({ code }: SourceFile, { start, end }: SyntaxNode): number => code.slice(start, end).split('\n').length
const median = (numbers: readonly number[]): number => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0

/** A line with the median lengths of the files and of their functions. */
export function mediansOf(sources: readonly SourceFile[]): string {
  const functions = sources.flatMap((source) =>
    [...nodesIn(source.program)].flatMap(([node]) => (FUNCTIONS.has(node.type) ? [linesOf(source, node)] : [])),
  )
  const files = sources.map((source) => linesOf(source, source.program))
  return `median lines: ${median(functions)} of ${functions.length} functions, ${median(files)} of ${files.length} files`
}
