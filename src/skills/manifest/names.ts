import { z } from 'zod'

/** The names that an expression may start with. No input may have one of them. */
export const ROOTS = ['ctx', 'env', 'work', 'policy', 'inputs', 'args'] as const

/** The input for the gate, among a skill's inputs as an MCP client sees them. */
export const WHY = 'reflex_why'

/** Words of CEL and of Reflex, which no input can be called. */
const RESERVED = new Set<string>([
  ...ROOTS,
  WHY,
  ...'as break const continue else false for function if import in let loop namespace null package return true var void while'.split(' '),
  ...'cel int uint double bool string bytes list map type dyn null_type'.split(' '),
  ...'raw_text constructor __proto__ prototype toString valueOf hasOwnProperty'.split(' '),
])

export const slotName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z_]\w*$/, 'is a letter and then letters, digits and _')
  .refine((name) => !RESERVED.has(name), 'is a word that is used for something else')
/** Tools of a team may have dots in their names, as in `term.exec`. */
export const toolName = z
  .string()
  .max(128)
  .regex(/^[A-Za-z][\w.:/-]*$/, 'is the name of a tool, such as term.exec')
export const label = z.string().trim().min(1).max(64)
export const reference = z.string().min(1).max(256)
export const description = z.string().max(500)
/** A place on the blackboard, at most sixteen parts. */
export const blackboardPath = z
  .string()
  .max(256)
  .regex(/^(?:ctx|env|work|policy)(?:\.[\w-]+){1,15}$/, 'is a path on the blackboard, such as work.image_tag')
export const expressionText = z.string().trim().min(1).max(2000)
