import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { Option, type Command } from 'commander'
import type { z } from 'zod'
import { evaluate as evaluateReflex, run as runReflex } from '../../../src/contract/operations/reflexes.ts'
import type { reflexRun, ReflexRun } from '../../../src/contract/reflex.ts'
import { CliError } from '../../lib/cli-error.ts'
import { cut } from '../../lib/text.ts'
import { ask } from '../ask.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { fields, safeJson, written } from '../table.ts'
import { fileText, jsonArgument, jsonObject, share } from '../values.ts'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CodeError } from '../../../src/reflexes/static-check.ts'

type Result = { ok: true; run: ReflexRun } | { ok: false; errors: readonly CodeError[] }

/** Checks and runs code as the server does. Loaded on use, as no other command needs a sandbox. */
async function runLocally(code: string, context: Record<string, unknown>): Promise<Result> {
  const [{ compile }, { checkReflex }, { QuickJsSandbox }, { runReflex }, { sampleContext }] = await Promise.all([
    import('../../sandbox/compile.ts'),
    import('../../../src/reflexes/static-check.ts'),
    import('../../../src/reflexes/quickjs-sandbox.ts'),
    import('../../../src/reflexes/run-reflex.ts'),
    import('../../../src/reflexes/reflex-context.ts'),
  ])
  const checked = await checkReflex(code)
  if (!checked.ok) return checked
  const wasm = await readFile(join(import.meta.dirname, '../../../src/reflexes/engine/sandbox.wasm'))
  const sandbox = new QuickJsSandbox(compile(wasm))
  try {
    return { ok: true, run: runReflex(sandbox, { code, hash: checked.hash }, { ...sampleContext, ...context }) }
  } finally {
    sandbox.dispose()
  }
}

/** Characters of an action in a line; `--json` has all. */
const MOST_SHOWN = 100

type TestRun = z.infer<typeof reflexRun>
type Test = { context: string; event?: string; expect?: string }

const TEST_HELP = `
A file runs on this machine, in the sandbox of the server; a registered reflex (id or id@version)
runs on the server. Neither acts. Fields that the context leaves out come from a sample.

Examples:
  reflex reflex test greet.js --event '{"type":"ws.message","content":"hello"}'
  reflex reflex test greet.js --context @context.json --expect '{"action_type":"reply"}'`

export function addReflexTests(reflex: Command): void {
  reflex
    .command('test <ref>')
    .description('Run a file or a registered reflex on a context, without acting; exit with 1 if it fails')
    .option('--context <json>', 'the context; @file reads a file', '{}')
    .option('--event <json>', "the context's event")
    .option('--expect <json>', 'fields that the action must have, or null for no action')
    .addHelpText('after', TEST_HELP)
    .action(handler(test))
  reflex
    .command('evaluate <ref>')
    .description("Compare a reflex with a scope's past decisions, without acting")
    .requiredOption('--scope <scope>', 'the scope')
    .option('--window <time>', 'how far back, such as 10m, 24h or 7d', '24h')
    .addOption(new Option('--min-agreement <share>', 'exit with 1 if a smaller share of its fires agree').argParser(share))
    .action(handler(evaluate))
}

async function test(session: Session, ref: string, { context: text, event, expect }: Test): Promise<ExitOutcome> {
  const context = { ...jsonObject(text, '--context'), ...(event !== undefined && { event: jsonObject(event, '--event') }) }
  const wanted = expect === undefined ? undefined : jsonArgument(expect, '--expect')
  const run = existsSync(ref) ? await fileRun(ref, context) : await remoteRun(session, ref, context)
  const isExpected = wanted === undefined || matches(run.action, wanted)
  const ok = isExpected && (run.reason === 'fired' || run.reason === 'null')
  session.print.result({ ok, ...run }, (paint) => [
    `${ok ? paint('green', '✓') : paint('red', '✗')} ${run.reason === 'null' ? 'returned null' : written(run.reason)}`,
    ...fields(
      {
        action: run.action === null ? undefined : safeJson(run.action),
        expected: isExpected ? undefined : safeJson(wanted),
        error: run.error ?? undefined,
        fuel: run.fuel,
        time: `${run.duration_us} µs`,
      },
      paint,
    ),
  ])
  return ok ? undefined : 1
}

async function fileRun(file: string, context: Record<string, unknown>): Promise<TestRun> {
  const result = await runLocally(fileText(file), context)
  if (result.ok) return result.run
  throw new CliError(
    `${file} is rejected:\n${result.errors.map(({ line, column, message }) => `  line ${line}, column ${column}: ${message}`).join('\n')}`,
  )
}

const remoteRun = ({ api, signal }: Session, ref: string, context: Record<string, unknown>): Promise<TestRun> =>
  ask({ api, signal }, runReflex, { path: [ref], fields: { context } })

/** True if an object has at least the wanted fields, at every depth. */
export function matches(value: unknown, wanted: unknown): boolean {
  if (typeof value !== 'object' || value === null || typeof wanted !== 'object' || wanted === null) return Object.is(value, wanted)
  if (Array.isArray(wanted)) return isDeepStrictEqual(value, wanted)
  return Object.entries(wanted).every(([name, inner]) => Object.hasOwn(value, name) && matches(Reflect.get(value, name), inner))
}

type Evaluate = { scope: string; window: string; minAgreement?: number }

async function evaluate({ api, print, signal }: Session, ref: string, { scope, window, minAgreement }: Evaluate): Promise<ExitOutcome> {
  const report = await ask({ api, signal }, evaluateReflex, { path: [ref], fields: { scope, window } })
  const { contexts, fires, agreement, missed, errors, disagreements, truncated } = report
  const ok = minAgreement === undefined || (agreement.rate !== null && agreement.rate >= minAgreement)
  print.result({ ok, ...report }, (paint) => [
    ...fields(
      {
        contexts: contexts.recorded + contexts.rebuilt,
        fires,
        agreement:
          agreement.rate === null
            ? 'nothing to compare'
            : `${(agreement.rate * 100).toFixed(1)} %: ${agreement.agreed} agreed, ${agreement.disagreed} not`,
        missed,
        'fuel p99': report.fuel.p99,
      },
      paint,
    ),
    ...disagreements.map(
      ({ event_id, action, decided }) =>
        `${paint('yellow', '≠')} ${written(event_id)}: it would ${cut(safeJson(action), MOST_SHOWN)}; decided ${cut(safeJson(decided), MOST_SHOWN)}`,
    ),
    ...errors.map(({ event_id, message }) => `${paint('red', '✗')} ${written(event_id)}: ${written(message)}`),
    ...(truncated ? [paint('dim', 'The window held more contexts than were run.')] : []),
  ])
  return ok ? undefined : 1
}
