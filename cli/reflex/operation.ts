import { Option, type Command } from 'commander'
import type { AnyOperation, CommandOf, OperationFields, Flag, Resource, PrintedValue } from '../../src/contract/operation.ts'
import type { Request } from '../lib/api.ts'
import { UsageError } from '../lib/cli-error.ts'
import type { Paint } from '../lib/paint.ts'
import { harmless } from '../lib/text.ts'
import { pages, route } from './pages.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import { handler, type ExitOutcome, type Session } from './session.ts'
import { fields } from './table.ts'
import { instant, isoTime, limitOption, wholeNumber } from './values.ts'

/** The noun of a resource, without its verbs. */
export const addNoun = (program: Command, { noun, help }: Pick<Resource, 'noun' | 'help'>): Command =>
  program.command(noun).description(help).helpCommand(false)

export function addResource(program: Command, resource: Resource): void {
  const noun = addNoun(program, resource)
  for (const op of resource.verbs) addOperation(noun, op)
}

/** Sends no request where it returns true: for options of the command alone. */
type Instead = (session: Session, options: Record<string, string | undefined>) => Promise<boolean>

export function addOperation(parent: Command, op: AnyOperation, instead?: Instead): Command {
  const declared = op.command
  if (!declared) throw new Error(`${op.id} has no command`)
  const { usage, help = op.summary, flags = [], table } = declared
  const command = parent.command(usage).description(help)
  for (const flag of flags) command.addOption(optionOf(flag))
  if (table && table.most !== null) command.addOption(limitOption(table.limit))
  return command.action(
    handler(async (session, ...all: (string | string[] | object)[]) => {
      if (await instead?.(session, all.at(-1) as Record<string, string>)) return
      return run(session, { op, declared, given: givenIn(command, op, all) })
    }),
  )
}

const parsers = {
  whole: wholeNumber,
  whole_or_any: (text: string) => (text === 'any' ? text : wholeNumber(text)),
  instant: (text: string) => instant(text),
  time: isoTime,
}

export function optionOf([flags, help, { is, choices, standard, required } = {}]: Flag): Option {
  const option = new Option(flags, help).makeOptionMandatory(required === true)
  if (choices) option.choices(choices)
  if (is) option.argParser<unknown>(parsers[is])
  return standard === undefined ? option : option.default(standard)
}

type Given = { path: (string | string[])[]; fields: OperationFields; limit: number }

/** The arguments of the path, in order, and the fields of the request by name. */
function givenIn(
  command: Command,
  { at, command: { flags = [] } = { usage: '' } }: AnyOperation,
  all: readonly (string | string[] | object)[],
): Given {
  const names = command.registeredArguments.map((argument) => argument.name())
  const in_path = at.split('{').length - 1
  const options = all[names.length] as Record<string, unknown> & { limit: number }
  const named = flags.map(([text, , { field } = {}]) => {
    const option = new Option(text)
    return [field ?? option.name().replaceAll('-', '_'), options[option.attributeName()]] as const
  })
  const further = names.slice(in_path).map((name, index) => [name, all[in_path + index]] as const)
  const known = [...further, ...named].filter(([, value]) => value !== undefined)
  return { path: all.slice(0, in_path) as Given['path'], fields: Object.fromEntries(known), limit: options.limit }
}

type Sent = { op: AnyOperation; declared: CommandOf<never>; given: Given }

async function run(session: Session, { op, declared, given }: Sent): Promise<ExitOutcome> {
  const { fills, asks = (asked) => asked, wrong } = declared
  const flaw = wrong?.(given.fields) ?? null
  if (flaw !== null) throw new UsageError(flaw)
  const own = fills === undefined ? {} : { [fills]: crypto.randomUUID() }
  const asked = asks({ ...own, ...given.fields })
  if (declared.table) return list(session, { op, declared, given: { ...given, fields: asked } })
  const several = given.path.findIndex(Array.isArray)
  if (several === -1) return one(session, { op, declared, asked, path: given.path.map(String) })
  for (const id of [given.path[several] ?? []].flat())
    await one(session, { op, declared, asked, path: given.path.with(several, id).map(String), each: true })
}

type One = { op: AnyOperation; declared: CommandOf<never>; asked: OperationFields; path: string[]; each?: true }

async function one({ api, print, signal }: Session, { op, declared, asked, path, each }: One): Promise<ExitOutcome> {
  const { shows, done, failed } = declared
  const method = op.at.split(' ')[0]?.toUpperCase() as NonNullable<Request['method']>
  const request: Request = { method, signal, ...(op.body && { body: asked }) }
  // The server's answer has the shape that the declaration says.
  const answer = (await api().json(route(partsOf(op, path), op.body ? {} : (asked as Record<string, string>)), request)) as never
  const lines = (paint: Paint) => shows?.(answer, path).flatMap((part) => linesOf(part, paint)) ?? []
  const printed: unknown = done === undefined ? answer : { [done]: path.at(-1) }
  if (each) print.item(printed, (paint) => lines(paint).join('\n'))
  else print.result(printed, lines)
  return failed?.(answer) ? 1 : undefined
}

function linesOf(part: PrintedValue, paint: Paint): string[] {
  if (typeof part === 'string') return [harmless(part)]
  if (!isLine(part)) return fields(part, paint)
  return [part.map((piece) => (typeof piece === 'string' ? harmless(piece) : paint(piece.colour, harmless(piece.text)))).join('')]
}

const isLine = (part: Exclude<PrintedValue, string>): part is Extract<PrintedValue, readonly unknown[]> => Array.isArray(part)

async function list({ api, print, signal }: Session, { op, declared: { table }, given }: Sent): Promise<void> {
  if (!table) return
  const { columns, empty, most = 1000 } = table
  const path = given.path.map(String)
  const listing = { parts: partsOf(op, path), query: given.fields as Record<string, string>, limit: given.limit, most: most ?? 0, signal }
  const page = most === null ? await api().json<Page<never>>(route(listing.parts), { signal }) : await pages<never>(api(), listing)
  const shown = columns.filter(({ only }) => only !== 'page')
  print.page(page, shown, typeof empty === 'string' ? empty : harmless(empty(path, given.fields)))
}

/** The parts of the path after `/v1/`. */
function partsOf({ at }: AnyOperation, path: readonly string[]): string[] {
  const values = [...path]
  const [, , ...parts] = (at.split(' ')[1] ?? '').split('/')
  return parts.map((part) => (part.startsWith('{') ? (values.shift() ?? '') : part))
}
