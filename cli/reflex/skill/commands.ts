import type { Command } from 'commander'
import type { z } from 'zod'
import { list, setState, showBulletin, skillColumns, find } from '../../../src/contract/operations/skills.ts'
import type { registeredSkill, ProposalReport } from '../../../src/contract/skill.ts'
import { addOperation } from '../operation.ts'
import { requestOf, ask, type Asking } from '../ask.ts'
import { handler, type Session, type ExitOutcome } from '../session.ts'
import { openStandalone } from '../standalone-file.ts'
import { written, fields, safeJson } from '../table.ts'
import { jsonObject } from '../values.ts'
import { existsSync, readFileSync } from 'node:fs'
import type { OperationFields } from '../../../src/contract/shown.ts'
import { isJsonFields } from '../../../src/base/json.ts'
import { parseJson, type FieldError } from '../../../src/base/check-json.ts'
import type { CiReport } from '../../../src/contract/reports/skill-test.ts'
import { UsageError } from '../../lib/cli-error.ts'
import type { Paint } from '../../lib/paint.ts'

/**
 * Checks a manifest as its registration does, except for tools and probes: the deployment
 * knows which ones exist. Loaded on use, since the checks take longer to load than most commands to
 * run.
 */
async function manifestErrors(body: unknown): Promise<readonly FieldError[]> {
  const [{ parseManifest }, { checkManifest, expressionsOf }, { compileExpression }] = await Promise.all([
    import('../../../src/skills/manifest/manifest.ts'),
    import('../../../src/skills/check.ts'),
    import('../../../src/skills/cel/expression.ts'),
  ])
  const parsed = parseManifest(body)
  if (!parsed.ok) return parsed.errors
  const probes = expressionsOf(parsed.manifest).flatMap(({ source }) => {
    const compiled = compileExpression(source)
    return compiled.ok ? [...compiled.expression.functions] : []
  })
  const checked = checkManifest(parsed.manifest, { tools: null, probes })
  return checked.ok ? [] : checked.errors
}

type Proposed = { inputs?: string; why?: string; dryRun?: true }
type Case = { name: string; inputs: Record<string, unknown> }

const TEST_HELP = `
The unit cases of the manifest (tests.unit_cases) and seeded mutations of them run through the gate and
the plan runner. No tool is called: outputs are those of the cases, or made up. Without unit cases,
inputs are generated. A skill passes with 95 % of the cases and 85 % of the mutations.

A file is tested on this machine. A registered skill is tested by the deployment, which keeps the
report: a version becomes active only after it passed. With --scope, the cases (or --inputs) are
proposed to that scope without running, and pass if its gate would allow them.

Examples:
  reflex skill test skills/block.json --cases cases.json
  reflex skill test network.block@1.0.0
  reflex skill test network.block --scope ssh/web --inputs '{"network":"203.0.113.0/24","reason":"test"}'`

function addSkillTests(skill: Command): void {
  skill
    .command('test <ref>')
    .description('Test a manifest or a registered skill; exit with 1 if it fails')
    .option('--cases <file>', 'the cases that the manifest names: a JSON list')
    .option('--seed <text>', 'selects the mutations', '1')
    .option('--scope <scope>', 'a scope whose gate is asked')
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

type Test = { scope?: string; inputs?: string; why: string; cases?: string; seed: string }

async function test(session: Session, ref: string, options: Test): Promise<ExitOutcome> {
  const { scope, inputs, why } = options
  if (scope === undefined && inputs !== undefined) throw new UsageError('--inputs needs a scope.', 'Name one with --scope.')
  if (scope === undefined) return existsSync(ref) ? testFile(session, ref, options) : testRegistered(session, ref, options)
  const { cases, needed } = await casesOf(session, ref, inputs)
  let passed = 0
  for (const { name, inputs } of cases) {
    const report = await proposed(session, scope, { skill_id: ref, inputs, why, dry_run: true })
    if (report.status === 'ok') passed += 1
    session.print.item({ case: name, ...report }, (paint) => [paint('bold', name), ...reportLines(report, paint)].join('\n'))
  }
  session.print.note(`${passed} of ${cases.length} passed.`)
  return passed / cases.length >= needed ? undefined : 1
}

async function testFile({ print }: Session, file: string, { cases, seed }: Test): Promise<ExitOutcome> {
  const body = jsonObject(`@${file}`, file)
  const errors = await manifestErrors(body)
  if (errors.length > 0) {
    print.result({ ok: false, errors }, (paint) =>
      errors.map(({ path, message }) => `${paint('red', '✗')} ${written(path)}: ${written(message)}`),
    )
    return 1
  }
  const report = await testLocally(body, sentCases(cases), seed)
  print.result({ ok: report.passed, errors, report }, (paint) => testLines(file, report, paint))
  return report.passed ? undefined : 1
}

/** Loaded on use, as `manifestErrors` is. */
async function testLocally(body: unknown, sent: readonly unknown[], seed: string): Promise<CiReport> {
  const [{ testSkill }, { suiteOf, unitCase }, { manifestSchema }] = await Promise.all([
    import('../../../src/skills/ci/ci.ts'),
    import('../../../src/skills/ci/suite.ts'),
    import('../../../src/skills/manifest/manifest.ts'),
  ])
  const manifest = manifestSchema.parse(body)
  const cases = unitCase.array().safeParse(sent)
  if (!cases.success) throw new UsageError(`--cases: ${cases.error.issues[0]?.path.join('.')}: ${cases.error.issues[0]?.message}`)
  return testSkill(manifest, { ...suiteOf(manifest, { sent: cases.data, tools: new Map() }), seed })
}

async function testRegistered({ api, print, signal }: Session, ref: string, { cases, seed }: Test): Promise<ExitOutcome> {
  const body = { seed, cases: sentCases(cases) }
  const { runTest } = await import('../../../src/skills/operations.ts')
  const report = await ask({ api, signal }, runTest, { path: [ref], fields: body })
  print.result(report, (paint) => testLines(`${report.skill_id}@${report.version}`, report, paint))
  return report.passed ? undefined : 1
}

function sentCases(file: string | undefined): unknown[] {
  if (file === undefined) return []
  const cases = parseJson(readFileSync(file, 'utf8'))
  if (!cases.ok || !Array.isArray(cases.value)) throw new UsageError(`${file} is not a JSON list of cases.`)
  return cases.value
}

const testLines = (name: string, { passed, cases, unit, fuzz, seed, failures }: CiReport, paint: Paint): string[] => [
  `${passed ? paint('green', '✓') : paint('red', '✗')} ${written(name)}: ${unit.passed} of ${unit.n} ${cases} cases, ` +
    `${fuzz.passed} of ${fuzz.n} mutations (simulated, seed ${written(seed)})`,
  ...failures.map((one) => `  ${paint('red', '✗')} ${written(one.name)}: ${written(one.reason)}`),
]

/** `needed`: the share that must pass. */
async function casesOf({ api, signal }: Session, ref: string, inputs: string | undefined): Promise<{ cases: Case[]; needed: number }> {
  if (inputs !== undefined) return { cases: [{ name: ref, inputs: jsonObject(inputs, '--inputs') }], needed: 1 }
  const { manifest } = await ask({ api, signal }, find, { path: [ref] })
  const tests = manifest?.['tests'] as { unit_cases?: unknown[]; expected?: { pass_rate_unit: number } } | undefined
  const cases = (tests?.unit_cases ?? []).flatMap((one, index): Case[] =>
    isJsonFields(one) ? [{ name: `unit case ${index + 1}`, inputs: isJsonFields(one['inputs']) ? one['inputs'] : one }] : [],
  )
  if (cases.length === 0) throw new UsageError(`${ref} has no unit cases with inputs.`, 'Pass --inputs JSON.')
  return { cases, needed: tests?.expected?.pass_rate_unit ?? 1 }
}

async function propose(session: Session, scope: string, skill_id: string, { inputs = '{}', why, dryRun }: Proposed): Promise<ExitOutcome> {
  const body = { skill_id, inputs: jsonObject(inputs, '--inputs'), why, dry_run: dryRun ?? false }
  const report = await proposed(session, scope, body)
  session.print.result(report, (paint) => reportLines(report, paint))
  return report.status === 'ok' ? undefined : 1
}

/** Loaded on use, as `manifestErrors` is. */
async function proposed(asking: Asking, scope: string, fields: OperationFields): Promise<ProposalReport> {
  const { propose: op } = await import('../../../src/skills/operations.ts')
  return ask(asking, op, { path: [scope], fields })
}

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

export function addSkill(program: Command): void {
  const skill = program.command('skill').description('Register, test, activate and propose skills')
  addOperation(skill, list, fromFile).option('--file <path>', 'the skills in the file of a standalone process')
  skill
    .command('push <files...>')
    .description('Register manifests (JSON) as candidates')
    .option('--any-tools', 'accept tools that no agent of the deployment has')
    .action(handler(push))
  skill
    .command('lint <files...>')
    .description('Say what the author of a manifest hardly meant; exit with 1 if there is something')
    .action(handler(lint))
  addSkillTests(skill)
  addOperation(skill, setState)
}

async function fromFile({ print }: Session, { file }: { file?: string }): Promise<boolean> {
  if (file === undefined) return false
  const { skills } = await openStandalone(file)
  const items = skills.all().map(({ manifest, state }) => ({ ...manifest, state }))
  print.page({ items, next_cursor: null }, skillColumns, 'The file holds no skills.')
  return true
}

/** Needs no server. Manifests of one call are compared: one may shadow another. */
async function lint({ print }: Session, files: string[]): Promise<ExitOutcome> {
  const { findingsIn } = await import('./lint.ts')
  const found = await findingsIn(files.map((file) => ({ file, text: readFileSync(file, 'utf8') })))
  print.result({ findings: found }, (paint) =>
    found.length === 0
      ? ['Nothing was found.']
      : found.flatMap(({ file, line, path, message, example }) => [
          `${written(file)}:${line}  ${paint('bold', written(path))}  ${written(message)}`,
          ...(example === '' ? [] : [paint('dim', `  such as: ${written(example)}`)]),
        ]),
  )
  return found.length === 0 ? undefined : 1
}

async function push({ api, print, signal }: Session, files: string[], { anyTools }: { anyTools?: true }): Promise<void> {
  for (const file of files) {
    const body = jsonObject(`@${file}`, file)
    const { address } = requestOf({ at: 'post /v1/skills' }, { fields: { tools: anyTools ? 'any' : undefined } })
    const skill = await api().json<z.infer<typeof registeredSkill>>(address, { method: 'POST', body, signal })
    print.item(skill, () => `${written(skill.id)}@${written(skill.version)} is ${skill.state}.`)
    for (const { path, message } of skill.findings ?? []) print.note(`${written(path)}: ${written(message)} (reflex skill lint ${file})`)
  }
}

export function addBulletin(program: Command): void {
  addOperation(program.command('bulletin').description('The skills that a model would be shown'), showBulletin)
}
