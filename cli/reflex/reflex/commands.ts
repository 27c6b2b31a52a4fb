import { basename, extname } from 'node:path'
import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { reflexItem, reflex as reflexSchema, registeredReflex, ReflexState } from '../../../src/contract/reflex.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { pages, route } from '../pages.ts'
import type { Page } from '../../../src/contract/scope-api.ts'
import { handler, type Session } from '../session.ts'
import { linesOf, safeJson, written, type Column } from '../table.ts'
import { fileText, jsonObject, limitOption, writeOutput } from '../values.ts'
import { show } from './show.ts'
import { addReflexTests } from './test.ts'

type ReflexItem = z.infer<typeof reflexItem>
type Reflex = z.infer<typeof reflexSchema>
type Registered = z.infer<typeof registeredReflex>
type Template = { name: string; description: string; params: Record<string, unknown> }

const states = ['draft', 'shadow', 'active', 'retired'] as const
const columns: Column<ReflexItem>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'VERSION', of: ({ version }) => version },
  {
    title: 'STATE',
    of: ({ state, idle, acts, version }) =>
      idle ? `${state}, does not act` : acts === null || acts === version ? state : `${state}, version ${acts} acts`,
    colour: ({ idle, acts }) => (idle ? 'yellow' : acts === null ? 'dim' : 'green'),
  },
  { title: 'OWNER', of: ({ owner }) => owner },
  { title: 'DESCRIPTION', of: ({ description }) => description },
]

export function addReflex(program: Command): void {
  const reflex = program.command('reflex').description('Register, test, evaluate and promote reflexes')
  reflex
    .command('list')
    .description('List reflexes, by id')
    .option('--search <text>', 'search ids and descriptions')
    .addOption(new Option('--state <state>', 'in one state').choices(states))
    .addOption(limitOption())
    .action(
      handler(async ({ api, print, signal }, { limit, search: q, state }: { limit: number; search?: string; state?: string }) => {
        const query = { q, state }
        print.page(await pages<ReflexItem>(api(), { parts: ['reflexes'], query, limit, most: 1000, signal }), columns, 'No reflex matches.')
      }),
    )
  reflex.command('templates').description('List templates with their parameters').action(handler(templates))
  addPush(reflex)
  reflex
    .command('pull <ref>')
    .description('Print the code of a reflex (id or id@version)')
    .option('--output <file>', 'write it to a file')
    .action(handler(pull))
  reflex.command('show <ref>').description('Print the versions of a reflex with their certificates').action(handler(show))
  addReflexTests(reflex)
  reflex
    .command('promote <ref>')
    .description('Change the state of a version: to the next one, draft to shadow to active, or to --state')
    .addOption(new Option('--state <state>', 'the new state').choices(states))
    .option('--reason <text>', 'why, for the list of versions')
    .option('--force', 'skip the proof that a version of an agent needs')
    .action(handler(promote))
}

/** `reflex push` is short for `reflex reflex push`, the first command that most people need. */
export function addPush(parent: Command): void {
  parent
    .command('push [file]')
    .description('Register a reflex, or a new version of it, from a file or a template')
    .option('--id <id>', "its id; the file's name by default")
    .option('--template <name>', 'a template, in place of a file')
    .option('--params <json>', 'the parameters of the template; @file reads a file')
    .option('--description <text>', 'what it does')
    .addOption(new Option('--state <state>', 'its state').choices(['draft', 'shadow', 'active']).default('draft'))
    .option('--sample <json>', 'fields of a sample event, for a reflex that reads its own event type')
    .action(handler(push))
}

/** `reflex off` and `reflex rollback`: short, since they are needed in a hurry. */
export function addSwitches(program: Command): void {
  program
    .command('off <id>')
    .description('Switch a reflex off: no version of it acts in any scope')
    .option('--reason <text>', 'why, for the list of versions')
    .action(handler((session: Session, id: string, { reason }: Switching) => switched(session, id, { to: 'off', body: { reason } })))
  program
    .command('rollback <id>')
    .description('Let the earlier version of a reflex act in place of the one that acts')
    .option('--reason <text>', 'why, for the list of versions')
    .option('--force', 'skip the proof that a version of an agent needs')
    .action(handler(rollback))
}

type Switching = { reason?: string; force?: true }
type Switched = { id: string; changed: { version: number; from: string; to: string }[]; acts: number | null }

async function rollback(session: Session, id: string, { reason, force }: Switching): Promise<void> {
  const { acts } = await session.api().json<Reflex>(route(['reflexes', id]), { signal: session.signal })
  await switched(session, id, { to: 'rollback', body: { reason, ...(acts !== null && { from: acts }), ...(force && { force }) } })
}

async function switched({ api, print, signal }: Session, id: string, { to, body }: { to: string; body: object }): Promise<void> {
  const done = await api().json<Switched>(route(['reflexes', id, to]), { method: 'POST', body, signal })
  print.result(done, () => [
    ...done.changed.map(({ version, from, to: state }) => `${written(id)}@${version} was ${from} and is ${state}.`),
    `${done.changed.length === 0 ? 'Nothing changed. ' : ''}${actsText(id, done.acts)}`,
  ])
}

const actsText = (id: string, acts: number | null): string =>
  acts === null ? `No version of ${written(id)} acts.` : `${written(id)}@${acts} acts, where a chain follows the reflex.`

async function templates({ api, print, signal }: Session): Promise<void> {
  const page = await api().json<Page<Template>>(route(['reflexes', 'templates']), { signal })
  print.result(page, (paint) =>
    page.items.flatMap(({ name, description, params }) => [
      `${paint('bold', written(name))}  ${written(description)}`,
      ...parameterLines(params).map((line) => paint('dim', line)),
    ]),
  )
}

/** A line for each parameter. `--json` has their whole schemas. */
export function parameterLines(params: Record<string, unknown>): string[] {
  const { properties = {}, required = [] } = params as { properties?: Record<string, Parameter>; required?: string[] }
  return Object.entries(properties).map(([name, { type, enum: values, oneOf, default: standard }]) => {
    const kind = values ? values.map((value) => safeJson(value)).join(' or ') : (type ?? (oneOf ? 'object' : 'JSON'))
    const rest = standard !== undefined ? `, ${safeJson(standard)} by default` : required.includes(name) ? ', required' : ''
    return `  ${written(name)}: ${written(kind + rest)}`
  })
}
type Parameter = { type?: string; enum?: unknown[]; oneOf?: unknown[]; default?: unknown }

type Push = { id?: string; template?: string; params?: string; description?: string; state: string; sample?: string }

async function push({ api, print, signal }: Session, file: string | undefined, options: Push): Promise<void> {
  const { template, params, description, state, sample } = options
  if ((file === undefined) === (template === undefined)) throw new UsageError('Name a file or a --template.')
  const id = options.id ?? (file === undefined || file === '-' ? undefined : basename(file, extname(file)))
  if (id === undefined) throw new UsageError('Name the reflex with --id.')
  const source =
    file === undefined ? { template, params: params === undefined ? {} : jsonObject(params, '--params') } : { code: fileText(file) }
  const more = {
    ...(description !== undefined && { description }),
    ...(sample !== undefined && { sample: jsonObject(sample, '--sample') }),
  }
  const reflex = await api().json<Registered>(route(['reflexes']), { method: 'POST', body: { id, ...source, state, ...more }, signal })
  print.result(reflex, () => [
    `${written(reflex.id)}@${reflex.version} is ${reflex.state}.`,
    ...(reflex.next === null ? [] : [written(reflex.next)]),
  ])
}

async function pull({ api, print, signal }: Session, ref: string, { output }: { output?: string }): Promise<void> {
  const reflex = await api().json<Reflex>(route(['reflexes', ref]), { signal })
  const { id, version, code } = reflex
  if (code === null) throw new CliError(`${id}@${version} is for sale, and this key may not read its code.`, 'Buy a licence or a copy.')
  if (output !== undefined) writeOutput(output, code)
  if (print.json || output !== undefined)
    print.result(output === undefined ? reflex : { id, version, output }, () => [`${id}@${version} is in ${output}.`])
  else print.raw(process.stdout.isTTY ? `${linesOf(code).join('\n')}\n` : code)
}

type Promotion = { state?: ReflexState; reason?: string; force?: true }
const next: Partial<Record<ReflexState, ReflexState>> = { draft: 'shadow', shadow: 'active' }

async function promote({ api, print, signal }: Session, ref: string, { state, reason, force }: Promotion): Promise<void> {
  const { id, version, state: from } = await api().json<Reflex>(route(['reflexes', ref]), { signal })
  const to = state ?? next[from]
  if (to === undefined) throw new UsageError(`${id}@${version} is ${from}; name the new state with --state.`)
  const body = { state: to, ...(reason !== undefined && { reason }), ...(force && { force }) }
  type Changed = ReflexItem & { changed: boolean; acts: number | null }
  const changed = await api().json<Changed>(route(['reflexes', `${id}@${version}`, 'state']), { method: 'POST', body, signal })
  const what = changed.changed ? `was ${from} and is ${changed.state}.` : `was ${changed.state} already: nothing changed.`
  const instead = to === 'active' && changed.acts !== version ? ` To let ${version} act, run reflex rollback ${written(id)}.` : ''
  print.result(changed, () => [`${written(id)}@${version} ${what}`, `${actsText(id, changed.acts)}${instead}`])
}
