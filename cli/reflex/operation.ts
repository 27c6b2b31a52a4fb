import { Option, type Command } from 'commander'
import type { AnyOperation, CommandOf, Resource } from '../../src/contract/operation.ts'
import type { Flag, OperationFields, PrintedValue } from '../../src/contract/shown.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import { nearTo } from '../../src/base/nearest.ts'
import { CliError, UsageError } from '../lib/cli-error.ts'
import type { Paint } from '../lib/paint.ts'
import { harmless } from '../lib/text.ts'
import { ask, askPages } from './ask.ts'
import { handler, type ExitOutcome, type Session } from './session.ts'
import { fields, linesOf, safeJson, table as tableLines } from './table.ts'
import { instant, isoTime, limitOption, several, wholeNumber } from './values.ts'

/** The noun of a resource, without its verbs. */
export const addNoun = (program: Command, { noun, help, examples = '' }: Omit<Resource, 'verbs'>): Command =>
  program.command(noun).description(help).addHelpText('after', examples).helpCommand(false)

export function addResource(program: Command, resource: Resource): void {
  const noun = addNoun(program, resource)
  for (const verb of resource.verbs) {
    if ('noun' in verb) addResource(noun, verb)
    else addOperation(noun, verb)
  }
}

/** Sends no request where it returns true: for options of the command alone. */
type Instead = (session: Session, options: { file?: string; limit: number }) => Promise<boolean>

export function addOperation(parent: Command, op: AnyOperation, instead?: Instead): Command {
  const declared = op.command
  if (!declared) throw new Error(`${op.id} has no command`)
  const { usage, help = op.summary, flags = [], table, arguments: about = {} } = declared
  const command = parent.command(usage).description(help)
  for (const argument of command.registeredArguments) {
    const [says = '', is] = about[argument.name()] ?? []
    argument.description = says
    if (is) argument.argParser<unknown>(parsers[is])
  }
  for (const flag of flags) command.addOption(optionOf(flag))
  if (table && table.most !== null) command.addOption(limitOption(table.limit))
  return command.action(
    handler(async (session, ...all: (string | string[] | object)[]) => {
      if (await instead?.(session, all.at(-1) as never)) return
      return run({ session, op, declared }, givenIn(command, op, all))
    }),
  )
}

const parsers = {
  whole: wholeNumber,
  whole_or_any: (text: string) => (text === 'any' ? text : wholeNumber(text)),
  instant: (text: string) => instant(text),
  time: isoTime,
  several,
}

export function optionOf([flags, help, { is, choices, standard, required } = {}]: Flag): Option {
  const option = new Option(flags, help).makeOptionMandatory(required === true)
  if (choices) option.choices(choices)
  if (is) option.argParser<unknown>(parsers[is])
  return standard === undefined ? option : option.default(standard)
}

type Given = { path: (string | string[])[]; fields: OperationFields; limit: number }

/** The arguments of the path, in order, and the fields of the request by name. */
function givenIn(command: Command, op: AnyOperation, all: readonly (string | string[] | object)[]): Given {
  const names = command.registeredArguments.map((argument) => argument.name())
  const in_path = op.at.split('{').length - 1
  const options = all[names.length] as Record<string, unknown> & { limit: number }
  const named = (op.command?.flags ?? []).map(([text, , { field } = {}]) => {
    const option = new Option(text)
    return [field ?? option.name().replaceAll('-', '_'), options[option.attributeName()]] as const
  })
  const further = names.slice(in_path).map((name, index) => [name, all[in_path + index]] as const)
  const known = [...further, ...named].filter(([, value]) => value !== undefined)
  return { path: all.slice(0, in_path) as Given['path'], fields: Object.fromEntries(known), limit: options.limit }
}

type Run = { session: Session; op: AnyOperation; declared: CommandOf<never> }

async function run({ session, op, declared }: Run, { path, fields: given, limit }: Given): Promise<ExitOutcome> {
  const { fills, asks = (asked) => asked, wrong, table } = declared
  const flaw = wrong?.(given) ?? null
  if (flaw !== null) throw new UsageError(flaw)
  const asked = asks({ ...(fills !== undefined && { [fills]: crypto.randomUUID() }), ...given })
  if (table) {
    const request = { path: path.map(String), fields: asked }
    const { columns, empty, most = 1000 } = table
    const found = most === null ? ask(session, op, request) : askPages(session, op, { ...request, limit, most })
    const shown = columns.filter(({ only }) => only !== 'page')
    return session.print.page((await found) as Page<never>, shown, typeof empty === 'string' ? empty : harmless(empty(request.path, asked)))
  }
  const several = path.findIndex(Array.isArray)
  const sent = { session, op, declared, given, asked }
  if (several === -1) return one(sent, path.map(String))
  for (const id of [path[several] ?? []].flat()) await one({ ...sent, each: true }, path.with(several, id).map(String))
}

type One = Run & { given: OperationFields; asked: OperationFields; each?: true }

async function one({ session, op, declared, given, asked, each }: One, path: string[]): Promise<ExitOutcome> {
  const { shows, notes, done, failed, absent, among } = declared
  const answer = (await ask(session, op, { path, fields: asked })) as never
  const why = absent?.(answer) ?? null
  if (why !== null) throw new CliError(why, among ? await nearNames(session, path.at(-1) ?? '', among) : null)
  const lines = (paint: Paint) => shows?.(answer, path).flatMap((part) => printed(part, paint)) ?? []
  const result: unknown = done === undefined ? answer : { [done]: path.at(-1) }
  if (each) session.print.item(result, (paint) => lines(paint).join('\n'))
  else session.print.result(result, lines)
  for (const note of notes?.(answer, given) ?? []) session.print.note(harmless(note))
  return failed?.(answer) ? 1 : undefined
}

/** Names that a person reads at a glance. */
const MOST_NEAR = 3

/**
 * Names that may have been meant. A name with one mistake has a half that is right, by which the
 * server finds it. Null if the names are not known.
 */
async function nearNames(
  session: Session,
  name: string,
  { list, name: field }: NonNullable<CommandOf<never>['among']>,
): Promise<string | null> {
  const middle = Math.ceil(name.length / 2)
  const searches = [undefined, name.slice(0, middle), name.slice(middle) || undefined]
  const found = searches.map(async (search) => {
    const page = (await ask(session, list, { fields: { limit: 1000, search } })) as unknown as Page<Record<string, unknown>>
    return page.items.map((item) => String(item[field]))
  })
  // The answer stands without names: a list that fails must not hide it.
  const answers = await Promise.allSettled(found)
  const names = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const near = nearTo(name, [...new Set(names)]).slice(0, MOST_NEAR)
  if (near.length > 0) return `Did you mean ${near.map(harmless).join(', ')}?`
  return answers.every(({ status }) => status === 'fulfilled') ? 'No other name is like it.' : null
}

function printed(part: PrintedValue, paint: Paint): string[] {
  if (typeof part === 'string') return [harmless(part)]
  if (isLine(part))
    return [part.map((piece) => (typeof piece === 'string' ? harmless(piece) : paint(piece.colour, harmless(piece.text)))).join('')]
  if (part.as === undefined) return fields(part, paint)
  if (part.as === 'json') return linesOf(safeJson(part.value, part.indent))
  return part.as === 'text' ? linesOf(part.value) : tableLines(part.rows as never[], part.columns, { paint })
}

const isLine = (part: Exclude<PrintedValue, string>): part is Extract<PrintedValue, readonly unknown[]> => Array.isArray(part)
