import { banned, flawIn, opening, pronouns } from './phrases.ts'

const MOST_COLUMNS = 100
const DIRECTIVE = /^\s*(?:oxlint-|eslint-|@ts-|<reference)/

type Position = { line: number; column: number }
type Node = { type: string; loc: { start: Position; end: Position }; value: string }
type Literal = { value: unknown }
type Quasi = { value: { cooked?: string | null } }
type Context = {
  sourceCode: { getAllComments(): Node[]; lines: readonly string[] }
  report(problem: { node?: unknown; loc?: { start: Position; end: Position }; message: string }): void
}

/** Text of a comment without its stars. */
const proseOf = (value: string): string => value.replaceAll(/^\s*\*+ ?/gm, '').trim()

/** Comments that continue one another, as `//` lines do, are read as one text. */
function paragraphs(comments: readonly Node[]): { first: Node; text: string }[] {
  const found: { first: Node; last: Node; text: string }[] = []
  for (const comment of comments) {
    if (DIRECTIVE.test(comment.value)) continue
    const open = found.at(-1)
    const continues = open?.last.type === 'Line' && comment.type === 'Line' && open.last.loc.end.line + 1 === comment.loc.start.line
    if (open && continues) Object.assign(open, { last: comment, text: `${open.text} ${proseOf(comment.value)}` })
    else found.push({ first: comment, last: comment, text: proseOf(comment.value) })
  }
  return found
}

const comments = {
  create(context: Context) {
    return {
      Program() {
        const all = context.sourceCode.getAllComments()
        for (const { first, text } of paragraphs(all)) {
          const prose = text.replaceAll(/\s+/g, ' ')
          const flaw = opening.pattern.test(prose)
            ? `the comment opens without a subject: ${opening.instead}`
            : flawIn(prose, [...banned, ...pronouns])
          if (flaw !== null) context.report({ loc: first.loc, message: flaw })
        }
        for (const { loc, value } of all) {
          if (DIRECTIVE.test(value)) continue
          for (let line = loc.start.line; line <= loc.end.line; line += 1) {
            const { length } = context.sourceCode.lines[line - 1] ?? ''
            const start = { line, column: 0 }
            if (length > MOST_COLUMNS)
              context.report({
                loc: { start, end: { line, column: length } },
                message: `a line with a comment has ${length} columns; ${MOST_COLUMNS} are allowed`,
              })
          }
        }
      },
    }
  },
}

const texts = {
  create(context: Context) {
    const judge = (node: unknown, text: unknown) => {
      const flaw = typeof text === 'string' && text.includes(' ') ? flawIn(text) : null
      if (flaw !== null) context.report({ node, message: flaw })
    }
    return {
      Literal: (node: Literal) => judge(node, node.value),
      TemplateElement: (node: Quasi) => judge(node, node.value.cooked),
    }
  },
}

export default { meta: { name: 'english' }, rules: { comments, texts } }
