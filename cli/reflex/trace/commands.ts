import { existsSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import type { ReplayReport } from '../../../src/contract/reports/replay.ts'
import { counted, dollars } from '../../lib/text.ts'
import { route } from '../pages.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { safeJson, written } from '../table.ts'
import { jsonObject } from '../values.ts'

type Of = { scope?: string }

export function addTrace(program: Command): void {
  const trace = program.command('trace').description('Export traces, and decide again from them')
  trace
    .command('export <id>')
    .description('Write all that the decisions of a trace were made from as one file')
    .requiredOption('--scope <scope>', 'the scope whose log has the trace')
    .option('--output <file>', 'the file; standard output by default')
    .action(handler(exported))
  trace
    .command('replay <id>')
    .description('Decide again, and compare every decision; exit with 1 at a divergence. <id> is a trace or an exported file')
    .option('--scope <scope>', 'the scope whose log has the trace')
    .action(handler(replay))
}

async function exported({ api, print, signal }: Session, id: string, { scope, output }: Of & { output?: string }): Promise<void> {
  const file = await api().json<Record<string, unknown>>(route(['traces', id, 'export'], { scope }), { signal })
  if (output === undefined) return print.raw(`${safeJson(file)}\n`)
  writeFileSync(output, `${JSON.stringify(file)}\n`, { mode: 0o600 })
  print.result({ trace_id: id, output }, () => [`The trace is in ${output}.`])
}

async function replay({ api, print, signal }: Session, id: string, { scope }: Of): Promise<Outcome> {
  const asked = existsSync(id)
    ? { path: route(['replay']), body: jsonObject(`@${id}`, id) }
    : { path: route(['traces', id, 'replay'], { scope }), body: {} }
  const report = await api().json<ReplayReport>(asked.path, { method: 'POST', body: asked.body, signal })
  const { equivalent, compared, divergences, unknown, recorded, replayed } = report
  print.result(report, (paint) => [
    `${equivalent ? paint('green', '✓') : paint('red', '✗')} ${counted(compared, 'decision')} compared, ${counted(divergences.length, 'divergence')}, ${unknown.length} unknown`,
    ...divergences.flatMap(({ kind, span_id, path, recorded: before, replayed: after }) => [
      `${paint('red', '≠')} ${written(kind)} ${written(span_id)} ${written(path)}`,
      `    recorded  ${safeJson(before)}`,
      `    replayed  ${safeJson(after)}`,
    ]),
    ...unknown.map(({ kind, span_id, reason }) => `${paint('yellow', '?')} ${written(kind)} ${written(span_id)}: ${written(reason)}`),
    ...[
      { name: 'recorded', side: recorded },
      { name: 'replayed', side: replayed },
    ].map(({ name, side: { usage, effects, duration_ms } }) =>
      paint(
        'dim',
        `${name}: ${counted(usage.model_calls, 'model call')}, ${counted(usage.input_tokens + usage.output_tokens, 'token')}, ${dollars(usage.cost_usd)}, ${counted(effects, 'effect')}, ${Math.round(duration_ms)} ms`,
      ),
    ),
  ])
  return equivalent ? undefined : 1
}
