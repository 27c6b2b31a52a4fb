import { basename, extname } from 'node:path'
import { Option, type Command } from 'commander'
import {
  actsText,
  changesText,
  find,
  list,
  listTemplates,
  off,
  register,
  rollBack,
  setState,
} from '../../../src/contract/operations/reflexes.ts'
import { reflexStates, type ReflexState } from '../../../src/contract/reflex.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { harmless } from '../../lib/text.ts'
import { addOperation } from '../operation.ts'
import { ask } from '../ask.ts'
import { handler, type Session } from '../session.ts'
import { linesOf, written } from '../table.ts'
import { fileText, jsonObject, writeOutput } from '../values.ts'
import { show } from './show.ts'
import { addReflexTests } from './test.ts'

export function addReflex(program: Command): void {
  const reflex = program.command('reflex').description('Register, test, evaluate and promote reflexes')
  addOperation(reflex, list)
  addOperation(reflex, listTemplates)
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
    .addOption(new Option('--state <state>', 'the new state').choices(reflexStates))
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
  addOperation(program, off)
  program
    .command('rollback <id>')
    .description('Let the earlier version of a reflex act in place of the one that acts')
    .option('--reason <text>', 'why, for the list of versions')
    .option('--force', 'skip the proof that a version of an agent needs')
    .action(handler(rollback))
}

type Rollback = { reason?: string; force?: true }

async function rollback({ api, print, signal }: Session, id: string, { reason, force }: Rollback): Promise<void> {
  const { acts } = await ask({ api, signal }, find, { path: [id] })
  const done = await ask({ api, signal }, rollBack, { path: [id], fields: { reason, from: acts ?? undefined, force } })
  print.result(done, () => changesText(done).map(harmless))
}

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
  const reflex = await ask({ api, signal }, register, { fields: { id, ...source, state, ...more } })
  print.result(reflex, () => [
    `${written(reflex.id)}@${reflex.version} is ${reflex.state}.`,
    ...(reflex.next === null ? [] : [written(reflex.next)]),
  ])
}

async function pull({ api, print, signal }: Session, ref: string, { output }: { output?: string }): Promise<void> {
  const reflex = await ask({ api, signal }, find, { path: [ref] })
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
  const { id, version, state: from } = await ask({ api, signal }, find, { path: [ref] })
  const to = state ?? next[from]
  if (to === undefined) throw new UsageError(`${id}@${version} is ${from}; name the new state with --state.`)
  const changed = await ask({ api, signal }, setState, { path: [`${id}@${version}`], fields: { state: to, reason, force } })
  const what = changed.changed ? `was ${from} and is ${changed.state}.` : `was ${changed.state} already: nothing changed.`
  const instead = to === 'active' && changed.acts !== version ? ` To let ${version} act, run reflex rollback ${written(id)}.` : ''
  print.result(changed, () => [`${written(id)}@${version} ${what}`, `${harmless(actsText(id, changed.acts))}${instead}`])
}
