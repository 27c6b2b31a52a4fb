import { z } from 'zod'
import type { BaseRole } from './principal.ts'
import type { Column, Flag, FlagDetails, OperationFields, PrintedValue } from './shown.ts'

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type At = `${Method} /${string}`
/** A JSON body, or null, with a sentence, and the schemas of other forms by their media types. */
type OperationAnswer = readonly [z.ZodType | null, string, Readonly<Record<string, z.ZodType>>?]
/** The answers by their status. */
export type OperationAnswers = Readonly<Record<number, OperationAnswer>>
export type AnswerOf<Declared extends OperationAnswers> = {
  [Status in keyof Declared]: Declared[Status] extends readonly [infer Schema extends z.ZodType, ...unknown[]] ? z.infer<Schema> : null
}[keyof Declared]

export const NDJSON = 'application/x-ndjson'
/** Forms of an answer that is a text. */
export const texts = { events: { 'text/event-stream': z.string() }, lines: { [NDJSON]: z.string() }, plain: { 'text/plain': z.string() } }

/** The fields of a tool, as models are shown them. The request checks them again. */
type ToolFields = Readonly<Record<string, z.ZodType>>
/** A request that reads, as a tool for coding agents over MCP. `fixed`: fields with one value. */
type OfferedMcpTool = { name: string; title: string; description: string; input: ToolFields; fixed?: OperationFields }
/** A request as a tool of agents, which act for the account of their scope: without its fields. */
export type AgentTool<Input = unknown> = { name: string; description: string; input: z.ZodType<Input> }

type Shared = {
  tag: string
  /** Any of these is enough. Null: it needs no key. */
  roles: readonly [BaseRole, ...BaseRole[]] | null
  /** The key must cover the scope of the path, or of the query. */
  scoped?: true | 'query'
  /** True for a change, which is recorded. Unset: true if it is no `get`, and for operators. */
  change?: boolean
}
type Described<Answered extends OperationAnswers, Status extends number> = {
  mcp?: OfferedMcpTool
  description?: string
  example?: unknown
  /**
   * `json`: unless something else is said. `optional`: the body may be absent. `defaulted`: so it
   * is for a request without one, although the description does not say it. `report`: secrets in
   * it are masked instead of refused. `file`: it may be large and compressed. `own`: the route
   * reads it.
   */
  takes?: 'json' | 'optional' | 'defaulted' | 'report' | 'file' | 'own'
  /** The body holds JSON of any depth, which the document describes without references. */
  recursive?: true
  /** The body in other media types, as OpenAPI describes it. */
  forms?: { description: string; content: Readonly<Record<string, { schema: object; example: unknown }>> }
  headers?: z.ZodObject
  answers: Answered
  /** Problems beside the usual ones: of a key, of a body, and of what does not fit its schema. */
  problems?: readonly Status[]
  /** Problems with a meaning or a form of their own. */
  refusals?: OperationAnswers
}
/** `id`: the operationId. */
type Named<Where extends At> = { at: Where; id: string; summary: string }

/**
 * A request that callers may make, declared once. `src/http/describe/operation.ts` makes its route
 * and its description, `cli/reflex/operation.ts` its command. Node imports it as well as Workers.
 */
type Operation<
  Where extends At,
  Params extends z.ZodObject | undefined,
  Query extends z.ZodObject | undefined,
  Body extends z.ZodType | undefined,
  Answered extends OperationAnswers,
  Status extends number,
  Input,
> = Named<Where> & Shared & Rest<Params, Query, Body, Answered, Status, Input>

type Rest<Params, Query, Body, Answered extends OperationAnswers, Status extends number, Input> = Described<Answered, Status> & {
  params?: Params
  query?: Query
  body?: Body
  agent?: AgentTool<Input> | undefined
  command?: CommandOf<AnswerOf<Answered>>
}

/** The type of every operation. No code knows the answers of all. */
export type AnyOperation = Omit<AnyDeclared, 'command'> & { command?: CommandOf<never> }
type Schema = z.ZodObject | undefined
type AnyDeclared = Operation<At, Schema, Schema, z.ZodType | undefined, OperationAnswers, number, unknown>

/** Declares operations of a resource. `shared` holds where an operation says nothing else. */
export const operations =
  (shared: Shared) =>
  <
    const Where extends At,
    const Answered extends OperationAnswers,
    const Status extends number = never,
    Params extends z.ZodObject | undefined = undefined,
    Query extends z.ZodObject | undefined = undefined,
    Body extends z.ZodType | undefined = undefined,
    Input = never,
  >(
    at: Where,
    id: string,
    summary: string,
    rest: Partial<Shared> & Rest<Params, Query, Body, Answered, Status, Input>,
  ): Operation<Where, Params, Query, Body, Answered, Status, Input> => ({ ...shared, ...rest, at, id, summary })

type Items<Answer> = Answer extends { items: readonly (infer Item)[] } ? Item : never

/** A command that sends one operation and prints what it answers. */
export type CommandOf<Answer> = {
  /** The verb with its arguments: first the parameters of the path, in order, then fields. */
  usage: string
  /** The summary, if unset. */
  help?: string
  /** The help of arguments, and what they are. */
  arguments?: Readonly<Record<string, readonly [help: string, is?: FlagDetails['is']]>>
  flags?: readonly Flag[]
  /** A field that gets a new id where none is given. */
  fills?: string
  /** The fields of the request, where they are not those that were given. */
  asks?: (given: OperationFields) => OperationFields
  /** Says what was given wrongly; null if nothing was. */
  wrong?: (given: OperationFields) => string | null
  /** A list as a table. `most`: the largest page; null: there is one page. */
  table?: {
    columns: readonly Column<Items<Answer>>[]
    empty: string | ((path: readonly string[], fields: OperationFields) => string)
    most?: number | null
    limit?: number
  }
  shows?: (answer: Answer, path: readonly string[]) => readonly PrintedValue[]
  /** Further lines, beside the output: what to do next. */
  notes?: (answer: Answer, given: OperationFields) => readonly string[]
  /** The last part of the path is printed under this name, as JSON, in place of the answer. */
  done?: string
  /** Says that there is nothing of that name, although the request was answered. */
  absent?: (answer: Answer) => string | null
  /** The list that has the names, as a field, of which one may have been meant. */
  among?: { list: AnyOperation; name: string }
  /** The command exits with 1. */
  failed?: (answer: Answer) => boolean
}

/**
 * A noun of the command line with its verbs, in this order. The file `resources.ts` of a feature
 * exports them as `resources`: commands, tools over MCP and the typed client come from there.
 */
export type Resource = { noun: string; help: string; examples?: string; verbs: readonly (AnyOperation | Resource)[] }
export const verbsOf = ({ verbs }: Resource): AnyOperation[] => verbs.flatMap((verb) => ('noun' in verb ? verbsOf(verb) : verb))
