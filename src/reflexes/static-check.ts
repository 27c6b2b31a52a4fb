import { parse, type AnyNode, type FunctionDeclaration, type Position, type Program, type Token } from 'acorn'
import { sha256, byteLength } from '../base/json.ts'
import { sandboxLimits } from './sandbox.ts'
import { partsOf } from './weights.ts'

/** Line and column count from 1. */
export type CodeError = { line: number; column: number; message: string }
type CodeCheck = { ok: true; hash: string } | { ok: false; errors: CodeError[] }

/** Checks a reflex's code without running it. `hash` is its SHA-256, as 64 hex digits. */
export async function checkReflex(code: string): Promise<CodeCheck> {
  const errors = errorsOf(code)
  return errors.length === 0 ? { ok: true, hash: await sha256(code) } : { ok: false, errors }
}

/** The hash of what runs: other spaces, comments, quotes and semicolons do not change it. */
export function hashProgram(text: string): Promise<string> {
  const parts = partsOf(text)
  if (!parts.ok) return sha256(text)
  try {
    const parsed = parseCode(parts.code)
    return sha256('error' in parsed ? text : `${JSON.stringify(parsed.program, withoutWriting)}${parts.weights ?? ''}`)
  } catch (error) {
    // Nested too deeply for JSON.
    if (error instanceof RangeError) return sha256(text)
    throw error
  }
}

const WRITING: ReadonlySet<string> = new Set(['start', 'end', 'loc', 'raw'])

function withoutWriting(name: string, value: unknown): unknown {
  if (WRITING.has(name)) return undefined
  if (Array.isArray(value)) return (value as (AnyNode | null)[]).filter((node) => node?.type !== 'EmptyStatement')
  return typeof value === 'bigint' ? `${value}n` : value
}

function errorsOf(text: string): CodeError[] {
  const parts = partsOf(text)
  const { code } = parts
  if (!parts.ok) return [{ line: code.split('\n').length + 1, column: 1, message: parts.error }]
  const bytes = byteLength(code)
  if (bytes > sandboxLimits.code_bytes) {
    return [{ line: 1, column: 1, message: `the code is ${bytes} bytes long; ${sandboxLimits.code_bytes} are allowed` }]
  }
  const parsed = parseCode(code)
  return 'error' in parsed ? [parsed.error] : [...entryErrors(parsed.program), ...forbiddenParts(parsed.program)]
}

/**
 * As the sandbox reads it: the body of a function in a strict script. A module has the same rules
 * except for three things. What only a module may have is refused afterwards. A script knows `<!--`
 * as the beginning of a comment, where a module has three operators: refused, for code must not run
 * that nobody sees. (`-->` at the beginning of a line, the other such comment, is an error in a
 * module.) A line `#!` is a comment at the beginning of a file only, which a function's body is
 * not.
 */
function parseCode(code: string): { program: Program } | { error: CodeError } {
  const tokens: Token[] = []
  try {
    const program = parse(code, { ecmaVersion: 2023, sourceType: 'module', locations: true, allowHashBang: false, onToken: tokens })
    const comment = tokens.find(({ start, type }) => type.label === '</>/<=/>=' && code.startsWith('<!--', start))
    return comment ? { error: errorAt(comment.loc?.start, HTML_COMMENT) } : { program }
  } catch (error) {
    if (!(error instanceof SyntaxError)) return { error: { line: 1, column: 1, message: TOO_DEEP } }
    const { loc, pos } = error as SyntaxError & { loc: Position; pos: number }
    const message = error.message.replace(/ \(\d+:\d+\)$/, '').replace('Not enough stack space to parse input', TOO_DEEP)
    return { error: errorAt(loc, isTypeScript(code, pos) ? `${message}. ${NO_TYPESCRIPT}` : message) }
  }
}

const HTML_COMMENT = '`<!--` begins a comment in a script: write `< !--x` with a space, or leave it out'
const TOO_DEEP = 'the code is nested too deeply'
const NO_TYPESCRIPT = 'This looks like TypeScript, which is not accepted: leave the types out, a reflex is plain JavaScript'
const TYPE_WORD = /^(?:as|satisfies|type|interface|enum|namespace|declare|abstract|implements|public|private|protected|readonly|is)\b/
const TYPE_SIGN = /^(?::|<\w|\?\s*[:)]|![.;)[])/

const LONGEST_WORD = 100

function isTypeScript(code: string, position: number): boolean {
  // A word of types is short: a search through all of the code would grow with its square.
  const word = /[\w$]+\s*$/.exec(code.slice(Math.max(0, position - LONGEST_WORD), position))?.[0] ?? ''
  return TYPE_SIGN.test(code.slice(position)) || TYPE_WORD.test(code.slice(position)) || TYPE_WORD.test(word)
}

function entryErrors(program: Program): CodeError[] {
  const entry = program.body.find((node): node is FunctionDeclaration => node.type === 'FunctionDeclaration' && node.id.name === 'reflex')
  if (!entry)
    return [
      errorAt(program.loc?.start, 'there is no function reflex(context) at the top level: declare it as `function reflex(context) { … }`'),
    ]
  const errors: CodeError[] = []
  if (entry.async) errors.push(errorAt(entry.loc?.start, 'reflex must not be async: it answers at once'))
  if (entry.generator) errors.push(errorAt(entry.loc?.start, 'reflex must not be a generator: it returns one action or null'))
  const [parameter, ...more] = entry.params
  if (!parameter || more.length > 0) {
    errors.push(errorAt(entry.loc?.start, `reflex takes exactly one parameter, context, not ${entry.params.length}`))
  } else if (parameter.type !== 'Identifier') {
    errors.push(errorAt(parameter.loc?.start, 'the parameter of reflex is a plain name, without a pattern, a default or `...`'))
  }
  return errors
}

function forbiddenParts(program: Program): CodeError[] {
  return nodesOf(program).flatMap((node) => {
    const reason = reasonAgainst(node)
    return reason === null ? [] : [errorAt(node.loc?.start, reason)]
  })
}

function reasonAgainst(node: AnyNode): string | null {
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- all other kinds of nodes are allowed
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ImportExpression':
      return 'a reflex imports nothing'
    case 'ExportAllDeclaration':
    case 'ExportDefaultDeclaration':
    case 'ExportNamedDeclaration':
      return 'a reflex exports nothing: its entry is the function reflex(context)'
    case 'MetaProperty':
      return node.meta.name === 'import' ? 'a reflex has no import.meta' : null
    case 'AwaitExpression':
      return 'a reflex waits for nothing'
    case 'ForOfStatement':
      return node.await ? 'a reflex waits for nothing' : null
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
      return node.async ? NO_ASYNC : null
    case 'FunctionDeclaration':
      return node.async && node.id?.name !== 'reflex' ? NO_ASYNC : null
    default:
      return null
  }
}

const NO_ASYNC = 'nothing in a reflex is asynchronous'

/** All nodes in source order. Not recursive: deep nesting would overflow the stack. */
function nodesOf(program: Program): AnyNode[] {
  const nodes: AnyNode[] = []
  const waiting: AnyNode[] = [program]
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    nodes.push(node)
    waiting.push(...Object.values(node).flat().filter(isNode).toReversed())
  }
  return nodes
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

function errorAt(position: Position | undefined, message: string): CodeError {
  return { line: position?.line ?? 1, column: (position?.column ?? 0) + 1, message }
}
