import path from 'node:path'
import { parseSync } from 'vite'
import type { Vite } from 'vitest/node'
import { childrenOf, FUNCTIONS, isNode, type SyntaxNode } from '../support/syntax.ts'

type Insertion = { at: number; text: string }
type Comment = { type: string; value: string; end: number }

/** The property that names what stands in a declaration. */
const NAMED: Record<string, string> = {
  FunctionDeclaration: 'id',
  VariableDeclarator: 'id',
  MethodDefinition: 'key',
  PropertyDefinition: 'key',
  Property: 'key',
  ClassDeclaration: 'id',
}
/** Declarations whose comment is about the function in them. */
const COMMENTED = new Set(['ExportNamedDeclaration', 'VariableDeclaration', 'VariableDeclarator', 'MethodDefinition', 'PropertyDefinition'])

/** A callback without a name takes the name of the function around it: it is a part of it. */
function nameIn(node: SyntaxNode, around: string): string {
  const key = node[NAMED[node.type] ?? '']
  if (!isNode(key)) return around
  if (key.type === 'PrivateIdentifier') return `#${String(key['name'])}`
  return key.type === 'Identifier' && key['name'] !== 'constructor' ? String(key['name']) : around
}

/** The first sentence of a comment in the form of documentation. */
function sentenceOf({ value }: Comment): string {
  const text = value.replaceAll(/^\s*\*+/gm, '').replaceAll(/\s+/g, ' ')
  return /^.*?[.:](?= |$)/.exec(text.trim())?.[0].replace(/:$/, '.') ?? text.trim()
}

/** The calls by which each function of a file reports itself. They change no line number. */
export function reportsIn(file: string, code: string): Insertion[] {
  const { program, comments, errors } = parseSync(file, code)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
  const told = comments.filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
  const found: Insertion[] = []
  const visit = (node: SyntaxNode, around: string, begin: number): void => {
    const name = nameIn(node, around)
    const { body } = node
    if (FUNCTIONS.has(node.type) && isNode(body)) {
      const comment = told.find(({ end }) => end <= begin && code.slice(end, begin).trim() === '')
      const about = [file, name, code.slice(0, node.start).split('\n').length, comment ? sentenceOf(comment) : '']
      const call = `globalThis.enteredInWalk?.(${about.map((one) => JSON.stringify(one)).join(', ')})`
      if (body.type === 'BlockStatement') found.push({ at: body.start + 1, text: `${call};` })
      else found.push({ at: body.start, text: `(${call},` }, { at: body.end, text: ')' })
    }
    const isWrapped = COMMENTED.has(node.type)
    for (const child of childrenOf(node)) visit(child, name, isWrapped ? Math.min(begin, node.start) : child.start)
  }
  for (const statement of childrenOf(program as unknown as SyntaxNode)) visit(statement, 'the module', statement.start)
  return found
}

/** Lets each function of `src/` report its file, name, line and comment when it is entered. */
export const instrument: Vite.Plugin = {
  name: 'instrument',
  enforce: 'pre',
  transform(code, id) {
    const file = path.relative('.', id)
    if (!/^src\/.*\.ts$/.test(file)) return null
    const reports = reportsIn(file, code).toSorted((one, other) => one.at - other.at)
    const parts = reports.map(({ at, text }, index) => code.slice(reports[index - 1]?.at ?? 0, at) + text)
    return { code: parts.join('') + code.slice(reports.at(-1)?.at ?? 0), map: null }
  },
}
