import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { messageOf } from '../../../src/base/error-text.ts'
import { INCIDENT } from '../../../src/contract/lists/incident.ts'
import { isJsonFields, jsonValue } from '../../../src/base/json.ts'
import type { DecidedAgain, Judgement } from '../../../src/features/receipts/judge.ts'
import type { ArchiveFiles } from '../../../src/features/receipts/verify-archive.ts'
import type { Checked } from '../../../src/features/receipts/verify.ts'
import type { Paint } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { CliError } from '../../lib/cli-error.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { table, written } from '../table.ts'
import { fileText } from '../values.ts'
import { readKeys } from './read-keys.ts'

const HELP = `
Neither a server nor the network is used. The keys come from --keys, which you got by another way than
the file: without it, the file only says that it fits itself. Exit with 1 at a flaw or a difference.

Example:
  reflex verify receipt.json --keys reflex-receipts.json
  reflex verify archive/log --keys reflex-receipts.json`

export function addVerify(program: Command): void {
  program
    .command('verify <file> [others...]')
    .description(
      'Check the receipt of a trace: signatures, chain and hashes, then each decision again. [others] are files whose logs it must not contradict. ' +
        'Of an exported trace it checks the chain alone, of an incident all receipts, of files of an archive (or folders of them) the chain of the log',
    )
    .option('--keys <file>', 'the trusted keys, a copy of /.well-known/reflex-receipts.json')
    .addHelpText('after', HELP)
    .action(handler(verify))
}

type Outcome = { ok: boolean; flaws: string[]; judgement: Judgement | null; checked: Checked | null; trusted: boolean; is_export: boolean }
type Given = { name: string; text: string }

/** The file, or the receipts of an incident. */
function filesIn(name: string): Given[] {
  const text = fileText(name)
  const value = jsonValue(text)
  if (!isJsonFields(value) || value['schema'] !== INCIDENT) return [{ name, text }]
  const traces = value['traces'] as { summary: { trace_id: string }; receipt: string | null }[]
  return traces.map(({ summary: { trace_id }, receipt }) => ({ name: `${name}, ${trace_id}`, text: receipt ?? 'no receipt' }))
}

const isExport = (text: string): boolean => {
  const value = jsonValue(text)
  return isJsonFields(value) && !('receipt' in value) && ('recordings' in value || 'entries' in value)
}

async function verify(session: Session, file: string, others: string[], { keys }: { keys?: string }): Promise<ExitOutcome> {
  if (isArchive(file)) return verifyArchive(session, [file, ...others], keys)
  const [{ checkExport, checkReceipt, forksIn }, { judge }, { compile }, { QuickJsSandbox }] = await Promise.all([
    import('../../../src/features/receipts/verify.ts'),
    import('../../../src/features/receipts/judge.ts'),
    import('../../sandbox/compile.ts'),
    import('../../../src/reflexes/quickjs-sandbox.ts'),
  ])
  const trusted = keys === undefined ? null : readKeys(keys)
  const [first, ...rest] = [file, ...others].flatMap(filesIn)
  if (!first) throw new CliError(`${file} has no trace.`)
  const check = ({ text }: Given) => (isExport(text) ? checkExport : checkReceipt)(text, trusted)
  const { flaws, checked } = check(first)
  const beside = rest.map((one) => ({ name: one.name, ...check(one) }))
  const is_export = isExport(first.text)
  flaws.push(...beside.flatMap((other) => other.flaws.map((flaw) => `${other.name}: ${flaw}`)))
  flaws.push(...forksIn([checked, ...beside.map((other) => other.checked)].filter((one) => one !== null)))
  const sandbox = new QuickJsSandbox(compile(await readFile(join(import.meta.dirname, '../../../src/reflexes/engine/sandbox.wasm'))))
  // Code of a file that was changed is not run.
  const judgement = checked && flaws.length === 0 && !is_export ? await judge(checked, sandbox).finally(() => sandbox.dispose()) : null
  const differs = judgement?.decisions.some(({ verdict }) => verdict === 'differs') ?? false
  const outcome = { ok: flaws.length === 0 && !differs, flaws, judgement, checked, trusted: keys !== undefined, is_export }
  session.print.result(shown(outcome), (paint) => linesOf(outcome, paint))
  return outcome.ok ? undefined : 1
}

function shown({ ok, flaws, judgement, checked, trusted }: Outcome): object {
  const { trace_id, made_at, neighbours, keys = [] } = checked ?? {}
  return { ok, trace_id, made_at, neighbours, keys, trusted, flaws, tallies: judgement && talliesOf(judgement.decisions), ...judgement }
}

type Tally = { kind: string; proved: number; signed: number; differs: number; unsigned: number }

function talliesOf(decisions: readonly DecidedAgain[]): Tally[] {
  return Array.from(
    Map.groupBy(decisions, ({ kind }) => kind),
    ([kind, some]) => {
      const of = (verdict: DecidedAgain['verdict']) => some.filter((one) => one.verdict === verdict).length
      return { kind, proved: of('proved'), signed: of('signed'), differs: of('differs'), unsigned: of('unsigned') }
    },
  )
}

function linesOf({ ok, flaws, judgement, checked, trusted, is_export }: Outcome, paint: Paint): string[] {
  if (!checked || flaws.length > 0) return flaws.map((flaw) => `${paint('red', '✗')} ${written(flaw)}`)
  const entries = checked.scopes.flatMap(({ standing }) => [...standing.values()])
  const heads = checked.scopes.flatMap((scope) => scope.heads)
  const first = [
    `${ok ? paint('green', '✓') : paint('red', '✗')} trace ${written(checked.trace_id)}, ${is_export ? 'signed up to' : 'receipt of'} ${written(checked.made_at)}`,
    `${counted(entries.length, 'entry', 'entries')} of the log, ${counted(heads.length, 'signed head')}, key ${checked.keys.join(', ')}${trusted ? '' : paint('yellow', ' (from the file itself: --keys names keys that you trust)')}`,
  ]
  if (is_export) {
    const unsigned = entries.filter((one) => one === 'unsigned').length
    const lacking = `${counted(unsigned, 'entry', 'entries')} without a signed head.`
    return [
      ...first,
      ...(unsigned === 0 ? [] : [paint('yellow', lacking)]),
      'Decisions are made again from a receipt alone: reflex trace receipt.',
    ]
  }
  const { decisions, divergences, missing } = judgement ?? { decisions: [], divergences: [], missing: [] }
  const why = Map.groupBy(
    decisions.filter((one) => one.why !== null),
    (one) => `${one.kind}: ${one.why}`,
  )
  return [
    ...first,
    '',
    ...table(
      talliesOf(decisions),
      [
        { title: 'DECISION', of: ({ kind }) => kind },
        { title: 'PROVED', of: ({ proved }) => proved },
        { title: 'ONLY SIGNED', of: ({ signed }) => signed },
        { title: 'DIFFERS', of: ({ differs }) => differs, colour: ({ differs }) => (differs > 0 ? 'red' : null) },
        { title: 'NOT SIGNED', of: ({ unsigned }) => unsigned },
      ],
      { paint },
    ),
    ...divergences.map(
      ({ kind, path, recorded, replayed }) =>
        `${paint('red', '≠')} ${written(kind)} ${written(path)}: signed ${written(JSON.stringify(recorded))}, decided again ${written(JSON.stringify(replayed))}`,
    ),
    ...Array.from(why, ([reason, some]) => `${paint('yellow', '?')} ${counted(some.length, 'time')} ${written(reason)}`),
    ...missing.map((what) => `${paint('yellow', '–')} missing: ${written(what)}`),
    checked.neighbours
      ? 'Events of other traces are in the file.'
      : 'Events of other traces are not in the file; entries have their hashes.',
  ]
}

const ENTRIES = '.jsonl.gz'
/** The files of one part of an archive have one name before these. */
const ENDING = /\.(?:jsonl\.gz|chain\.json|parquet)$/

export const isArchive = (name: string): boolean => ENDING.test(name) || (existsSync(name) && statSync(name).isDirectory())

/**
 * Files of entries, also where another file of the part is named. Files of events and parts have no
 * chain: their hashes stand in the log.
 */
function namesIn(name: string): string[] {
  if (ENDING.test(name)) return [name.replace(ENDING, ENTRIES)]
  const all = readdirSync(name, { recursive: true, encoding: 'utf8' }).map((one) => join(name, one))
  const isOfLog = (one: string) => existsSync(chainOf(one)) || /(?:^|[\\/])log[\\/]day=/.test(one)
  return all.filter((one) => one.endsWith(ENTRIES) && isOfLog(one)).toSorted()
}

const beside = (name: string, ending: string): string => `${name.slice(0, -ENTRIES.length)}${ending}`
const chainOf = (name: string): string => beside(name, '.chain.json')

/** Returns the error of a file that cannot be read: the others are checked. */
function archiveFiles(name: string): ArchiveFiles | string {
  const [chain, parquet] = [chainOf(name), beside(name, '.parquet')]
  try {
    return {
      name,
      jsonl: readFileSync(name),
      parquet: existsSync(parquet) ? readFileSync(parquet) : null,
      chain: existsSync(chain) ? readFileSync(chain, 'utf8') : null,
    }
  } catch (error) {
    return `It cannot be read: ${messageOf(error)}.`
  }
}

/** Checks files of an archive, and that files of one log follow each other. */
export async function verifyArchive({ print }: Session, given: readonly string[], keys: string | undefined): Promise<ExitOutcome> {
  const { checkArchive, gapsIn } = await import('../../../src/features/receipts/verify-archive.ts')
  const trusted = keys === undefined ? null : readKeys(keys)
  const names = Array.from(new Set(given.flatMap(namesIn)))
  if (names.length === 0) throw new CliError(`${given.join(', ')} has no files of a log (log/day=…/….jsonl.gz).`)
  const checks = names.map((name) => {
    const files = archiveFiles(name)
    return { name, ...(typeof files === 'string' ? { flaws: [files], checked: null } : checkArchive(files, trusted)) }
  })
  const files = checks.flatMap(({ checked }) => (checked ? [checked] : []))
  const flaws = [...checks.flatMap(({ name, flaws: own }) => own.map((flaw) => `${name}: ${flaw}`)), ...gapsIn(files)]
  const ok = flaws.length === 0
  const good = checks.flatMap(({ flaws: own, checked }) => (checked && own.length === 0 ? [checked] : []))
  print.result({ ok, trusted: keys !== undefined, flaws, files }, (paint) => [
    ...flaws.map((flaw) => `${paint('red', '✗')} ${written(flaw)}`),
    ...good.map(
      ({ name, scope, first, last, signed, unsigned }) =>
        `${paint('green', '✓')} ${written(name)}: ${written(scope)}, entries ${first} to ${last}, ${counted(signed, 'entry', 'entries')} signed` +
        (unsigned > 0 ? paint('yellow', `, ${unsigned} older than the chain`) : ''),
    ),
    ...(keys === undefined ? [paint('yellow', 'The keys are from the files themselves: --keys names keys that you trust.')] : []),
  ])
  return ok ? undefined : 1
}
