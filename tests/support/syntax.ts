import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseSync } from 'vite'

/** A node of a syntax tree, as the parser gives it. */
export type SyntaxNode = { type: string; start: number; end: number } & Record<string, unknown>
export type SourceFile = { file: string; code: string; program: SyntaxNode }

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value && 'end' in value
export const childrenOf = (node: SyntaxNode): SyntaxNode[] => Object.values(node).flat().filter(isNode)

/** All nodes below a node, each with those above it, the nearest last. */
export function* nodesIn(node: SyntaxNode, above: readonly SyntaxNode[] = []): Generator<[SyntaxNode, readonly SyntaxNode[]]> {
  yield [node, above]
  for (const child of childrenOf(node)) yield* nodesIn(child, [...above, node])
}

export const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])

/** The TypeScript files below a folder, with their syntax trees. Throws if one cannot be parsed. */
export function sourcesIn(root: string): SourceFile[] {
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  return names.map((name) => {
    const file = path.join(root, name)
    const code = readFileSync(file, 'utf8')
    const { program, errors } = parseSync(file, code)
    if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
    return { file, code, program: program as unknown as SyntaxNode }
  })
}
