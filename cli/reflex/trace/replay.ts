import path from 'node:path'
import { Option, type Command } from 'commander'
import { isJsonFields } from '../../../src/base/json.ts'
import { replay as replayTrace, replayFile } from '../../../src/features/replay/operations/replay.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import { ask } from '../ask.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { isStandaloneFile } from '../standalone-file.ts'
import { fileText, jsonArgument, jsonObject, positive, several, timeOption, wholeNumber } from '../values.ts'
import { replayRange, type Body } from './replay-range.ts'
import { reportLines } from './replay-report.ts'
import { standaloneRecording } from './standalone.ts'

type Changes = {
  set?: string[]
  reflexes?: string
  reflexCode?: string[]
  manifest?: string[]
  instructions?: string
  model?: string
}
type Flags = Changes & {
  scope?: string
  file?: string
  mode?: 'pinned' | 'what-if'
  budgetUsd?: number
  budgetCalls?: number
  since?: string
  until?: string
}

const TRACE_ID = /^[0-9a-f]{32}$/

/** `reflex replay` is short for `reflex trace replay`. */
export function addReplay(parent: Command): void {
  parent
    .command('replay [id]')
    .description('Decide again, and compare every decision; exit with 1 at a divergence. [id] is a trace or an exported file')
    .option('--file <file>', 'an exported file, or that of a standalone process, whose trace is [id]')
    .option('--scope <scope>', 'the scope whose log has the trace, or whose range is replayed')
    .addOption(timeOption('since', 'replay all traces of the scope from a time on'))
    .addOption(timeOption('until', 'up to a time; now by default'))
    .addOption(new Option('--mode <mode>', 'what-if if a change is named').choices(['pinned', 'what-if']))
    .option('--set <setting=value>', 'change a setting, such as gate.tau=0.9 or overlap=interrupt; repeatable', several)
    .option('--reflexes <json>', 'change the chain of reflexes: a JSON list, or @file')
    .option('--reflex-code <id=file>', 'change the code of a reflex; the id defaults to the name of the file; repeatable', several)
    .option('--manifest <file>', 'change a skill; repeatable', several)
    .option('--instructions <file>', 'change the instructions')
    .option('--model <name>', 'change the model')
    .addOption(new Option('--budget-usd <usd>', 'ask the model for answers that are not recorded, up to this cost').argParser(positive))
    .addOption(new Option('--budget-calls <n>', 'ask it this often at most').argParser(wholeNumber))
    .action(handler(replay))
}

async function replay(session: Session, id: string | undefined, flags: Flags): Promise<ExitOutcome> {
  const body = bodyOf(flags)
  const { scope, since, until } = flags
  if (flags.file !== undefined && isStandaloneFile(flags.file)) return replayInFile(session, body, { id, file: flags.file })
  if (id !== undefined && flags.file !== undefined) throw new UsageError('Name a trace or a --file, not both.')
  const file = flags.file ?? (id === undefined || TRACE_ID.test(id) ? undefined : id)
  if (since !== undefined) {
    if (scope === undefined) throw new UsageError('A time range is one of a scope: add --scope.')
    if (id !== undefined || file !== undefined) throw new UsageError('A time range has all traces of a scope: name no trace and no file.')
    return replayRange(session, body, { scope, since, until })
  }
  if (until !== undefined) throw new UsageError('A time range needs its begin: add --since.')
  if (id === undefined && file === undefined) throw new UsageError('Name a trace, an exported file, or a scope with --since.')
  if (file !== undefined && scope !== undefined)
    throw new UsageError('--scope is for a trace of the server: a file is replayed as a whole.')
  const report =
    file === undefined
      ? await ask(session, replayTrace, { path: [id ?? ''], fields: { ...body, scope: flags.scope } })
      : await ask(session, replayFile, { fields: { ...body, recording: recordingIn(file) } })
  session.print.result(report, (paint) => reportLines(report, paint))
  return report.mode === 'what_if' || report.equivalent !== false ? undefined : 1
}

/** Needs no server: the process's decisions need no more than its file. */
async function replayInFile({ print }: Session, { mode, changes, budget }: Body, { id, file }: { id: string | undefined; file: string }) {
  if (id === undefined) throw new UsageError('Name a trace of the file.', `reflex trace list --file ${file} lists them.`)
  if (budget) throw new UsageError('A file of a standalone process has no model to ask: leave out the budget.')
  const { replayRecording } = await import('../../../src/standalone/replay.ts')
  const report = await replayRecording(await standaloneRecording(file, id), { mode, ...(changes && { changes }) })
  print.result(report, (paint) => reportLines(report, paint))
  return report.mode === 'what_if' || report.equivalent !== false ? undefined : 1
}

function recordingIn(file: string): unknown {
  const text = fileText(file)
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new CliError(
      `${file} is not JSON: it is cut off, or not an exported trace.`,
      'reflex trace export ID --output FILE writes one.',
      error,
    )
  }
}

/** `gate.tau` is the name that the statistics have for the setting `tau`. */
export function bodyOf({ mode, budgetUsd, budgetCalls, ...flags }: Flags): Body {
  const changes = changesOf(flags)
  const is_changed = Object.keys(changes).length > 0
  if (mode === 'pinned' && is_changed) throw new UsageError('A pinned replay takes no changes: leave out --mode.')
  if (mode === 'what-if' && !is_changed) throw new UsageError('A what-if needs a change, such as --set gate.tau=0.9.')
  const budget = { ...(budgetUsd !== undefined && { usd: budgetUsd }), ...(budgetCalls !== undefined && { calls: budgetCalls }) }
  if (!is_changed && Object.keys(budget).length > 0) throw new UsageError('Only a what-if asks a model: a budget needs a change.')
  if (!is_changed) return { mode: 'pinned' }
  return { mode: 'what_if', changes, ...(Object.keys(budget).length > 0 && { budget }) }
}

function changesOf({ set, reflexes, reflexCode, manifest, instructions, model }: Changes): Record<string, unknown> {
  const code = reflexCode?.map((text) => {
    const at = text.indexOf('=')
    const file = text.slice(at + 1)
    return [at === -1 ? path.parse(file).name : text.slice(0, at), fileText(file)] as const
  })
  return {
    ...(set && { settings: settingsOf(set) }),
    ...(reflexes !== undefined && { reflexes: jsonList(reflexes) }),
    ...(code && { reflex_code: Object.fromEntries(code) }),
    ...(manifest && { manifest: manifest.map((file) => jsonObject(`@${file}`, file)) }),
    ...(instructions !== undefined && { instructions: fileText(instructions) }),
    ...(model !== undefined && { model }),
  }
}

function jsonList(text: string): unknown[] {
  const list = jsonArgument(text, '--reflexes')
  if (!Array.isArray(list)) throw new UsageError('--reflexes is a JSON list, such as [{"id": "greet"}].')
  return list as unknown[]
}

function settingsOf(pairs: readonly string[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {}
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`${pair} is not a setting with a value.`, 'Write it as --set gate.tau=0.9')
    const names = pair
      .slice(0, at)
      .replace(/^gate\./, '')
      .split('.')
    const last = names.pop() ?? ''
    let inner = settings
    for (const name of names) {
      const next = (inner[name] ??= {})
      if (!isJsonFields(next)) throw new UsageError(`${pair} changes a part of ${name}, which another --set replaces.`)
      inner = next
    }
    inner[last] = valueOf(pair.slice(at + 1))
  }
  return settings
}

/** JSON, else text. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}
