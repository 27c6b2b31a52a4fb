import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import type { z } from 'zod'
import type { ProposalReport, skill as skillSchema } from '../../../src/contract/skill.ts'
import { UsageError } from '../../lib/cli-error.ts'
import type { Paint } from '../../lib/paint.ts'
import { route } from '../pages.ts'
import { handler, type Outcome, type Session } from '../session.ts'
import { fields, safeJson, written } from '../table.ts'
import { jsonObject } from '../values.ts'
import { manifestErrors } from './manifest-errors.ts'

type Proposed = { inputs?: string; why?: string; dryRun?: true }
type Case = { name: string; inputs: Record<string, unknown> }

const TEST_HELP = `
A file is checked on this machine: its form, its expressions and the names in it. A registered skill
is proposed to a scope without running: its own unit cases (tests.unit_cases), or --inputs. A case
passes if the gate would allow it.

Examples:
  reflex skill test skills/block.json
  reflex skill test network.block --scope ssh/web --inputs '{"network":"203.0.113.0/24","reason":"test"}'`

export function addSkillTests(skill: Command): void {
  skill
    .command('test <ref>')
    .description('Check a manifest, or try a registered skill in a scope without running it; exit with 1 if it fails')
    .option('--scope <scope>', 'the scope to try it in')
    .option('--inputs <json>', 'inputs, in place of the unit cases; @file reads a file')
    .option('--why <text>', 'the reason, whose keywords count towards the score', 'a test')
    .addHelpText('after', TEST_HELP)
    .action(handler(test))
  skill
    .command('propose <scope> <ref>')
    .description('Propose a run: the gate decides, and it runs if allowed; exit with 1 if it did not succeed')
    .option('--inputs <json>', 'the inputs; @file reads a file', '{}')
    .option('--why <text>', 'the reason, for the log', 'proposed on the command line')
    .option('--dry-run', 'only ask the gate')
    .action(handler(propose))
}

type Test = { scope?: string; inputs?: string; why: string }

async function test(session: Session, ref: string, { scope, inputs, why }: Test): Promise<Outcome> {
  if (scope === undefined && existsSync(ref)) return checkFile(session, ref)
  if (scope === undefined) throw new UsageError(`There is no file ${ref}.`, 'To try a registered skill, name a scope with --scope.')
  const { cases, needed } = await casesOf(session, ref, inputs)
  let passed = 0
  for (const { name, inputs } of cases) {
    const report = await ask(session, scope, { skill_id: ref, inputs, why, dry_run: true })
    if (report.status === 'ok') passed += 1
    session.print.item({ case: name, ...report }, (paint) => [paint('bold', name), ...reportLines(report, paint)].join('\n'))
  }
  session.print.note(`${passed} of ${cases.length} passed.`)
  return passed / cases.length >= needed ? undefined : 1
}

async function checkFile({ print }: Session, file: string): Promise<Outcome> {
  const errors = await manifestErrors(jsonObject(`@${file}`, file))
  print.result({ ok: errors.length === 0, errors }, (paint) =>
    errors.length === 0
      ? [`${paint('green', '✓')} ${file}`]
      : errors.map(({ path, message }) => `${paint('red', '✗')} ${written(path)}: ${written(message)}`),
  )
  return errors.length === 0 ? undefined : 1
}

/** `needed`: the share that must pass. */
async function casesOf({ api, signal }: Session, ref: string, inputs: string | undefined): Promise<{ cases: Case[]; needed: number }> {
  if (inputs !== undefined) return { cases: [{ name: ref, inputs: jsonObject(inputs, '--inputs') }], needed: 1 }
  const { manifest } = await api().json<z.infer<typeof skillSchema>>(route(['skills', ref]), { signal })
  const tests = manifest['tests'] as { unit_cases?: unknown[]; expected?: { pass_rate_unit: number } } | undefined
  const cases = (tests?.unit_cases ?? []).flatMap((inputs, index) =>
    typeof inputs === 'object' && inputs !== null ? [{ name: `unit case ${index + 1}`, inputs: inputs as Case['inputs'] }] : [],
  )
  if (cases.length === 0) throw new UsageError(`${ref} has no unit cases with inputs.`, 'Pass --inputs JSON.')
  return { cases, needed: tests?.expected?.pass_rate_unit ?? 1 }
}

async function propose(session: Session, scope: string, skill_id: string, { inputs = '{}', why, dryRun }: Proposed): Promise<Outcome> {
  const report = await ask(session, scope, { skill_id, inputs: jsonObject(inputs, '--inputs'), why, dry_run: dryRun ?? false })
  session.print.result(report, (paint) => reportLines(report, paint))
  return report.status === 'ok' ? undefined : 1
}

const ask = ({ api, signal }: Session, scope: string, body: object): Promise<ProposalReport> =>
  api().json<ProposalReport>(route(['scopes', scope, 'skills', 'propose']), { method: 'POST', body, signal })

/** The end, then how each stage of the gate and each step went, and what a refused one needs. */
function reportLines({ status, reason, decision, ...report }: ProposalReport, paint: Paint): string[] {
  const colour = status === 'ok' ? 'green' : status === 'needs_approval' || status === 'clarify' ? 'yellow' : 'red'
  const score = decision.score === null ? undefined : `${decision.score} of ${decision.tau ?? '-'}`
  return [
    `${paint(colour, status)}${report.dry_run ? ' (dry run)' : ''}${reason === null ? '' : `  ${written(reason)}`}`,
    ...decision.stages.map(({ stage, verdict, reason: why }) => {
      const mark = verdict === 'passed' ? paint('green', '✓') : verdict === 'failed' ? paint('red', '✗') : paint('dim', '·')
      return `${mark} ${written(stage)}${why === null ? '' : `  ${written(why)}`}`
    }),
    ...decision.to_pass.map((advice) => `→ ${written(advice)}`),
    ...report.questions.map(({ slot, question }) => `? ${written(slot)}: ${written(question)}`),
    ...report.steps.map(({ tool, status: end, duration_ms }) => `  ${written(tool)}  ${written(end)}  ${Math.round(duration_ms)} ms`),
    ...report.compensation.map(({ tool, status: end }) => `  undo ${written(tool)}  ${written(end)}`),
    ...fields(
      {
        score,
        approval: report.approval_id ?? undefined,
        outputs: Object.keys(report.outputs).length === 0 ? undefined : safeJson(report.outputs),
        trace: report.trace_id,
      },
      paint,
    ),
  ]
}
