import { FUNCTIONS, isNode, nodesIn, type SourceFile, type SyntaxNode } from './syntax.ts'

const TYPES = new Set(['TSTypeAliasDeclaration', 'TSInterfaceDeclaration', 'TSEnumDeclaration', 'ClassDeclaration'])
const MOST_FILES = 6

type Declared = { file: string; name: string; isExported: boolean }

const nameOf = (node: unknown): string => (isNode(node) ? String(node['name']) : '')

/** The types and classes that a file declares. */
function declaredIn({ file, program }: SourceFile): Declared[] {
  return [...nodesIn(program)].flatMap(([node, above]) => {
    if (!TYPES.has(node.type) || !isNode(node['id'])) return []
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

/** The keys of `Pick<Context, 'a' | 'b'>`, summed over an intersection of several. */
function picked(node: SyntaxNode): number {
  if (node.type === 'TSIntersectionType') return (node['types'] as SyntaxNode[]).map(picked).reduce((sum, one) => sum + one, 0)
  if (node.type !== 'TSTypeReference' || nameOf(node['typeName']) !== 'Pick' || !isNode(node['typeArguments'])) return 0
  const [, keys] = node['typeArguments']['params'] as SyntaxNode[]
  return keys?.type === 'TSUnionType' ? (keys['types'] as SyntaxNode[]).length : 1
}

/** True for `({ a, b }) => …`, and for `const { a, b } = parts` where `parts` is a parameter. */
function takesFromParameter(pattern: SyntaxNode, above: readonly SyntaxNode[]): boolean {
  const parent = above.at(-1)
  const around = above.findLast(({ type }) => FUNCTIONS.has(type))
  const parameters = (around?.['params'] ?? []) as SyntaxNode[]
  if (parent && parameters.some((parameter) => parameter === pattern || parameter === parent)) return true
  if (parent?.type !== 'VariableDeclarator' || !isNode(parent['init'])) return false
  const { init } = parent
  if (init.type === 'MemberExpression') return isNode(init['object']) && init['object'].type === 'ThisExpression'
  return init.type === 'Identifier' && parameters.some((parameter) => nameOf(parameter) === init['name'])
}

/** Finds places, `file:line`, that take more than `most` members from a parameter, or by `Pick`. */
export function takingTooMuch({ file, code, program }: SourceFile, most: number): string[] {
  return [...nodesIn(program)].flatMap(([node, above]) => {
    // Counted with its intersection.
    if (above.at(-1)?.type === 'TSIntersectionType') return []
    const isPattern = node.type === 'ObjectPattern' && takesFromParameter(node, above)
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
