import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import type { SkillCandidate, LearnedSkills } from '../../../src/features/learning/skills/learn.ts'
import { factsOf, givenFacts, type Tools } from '../../../src/tools/tool-facts.ts'
import type { Trace } from '../../../src/features/learning/skills/trace.ts'
import type { Recording } from '../../../src/features/replay/recording.ts'
import type { Manifest } from '../../../src/skills/manifest/manifest.ts'
import { CliError, UsageError } from '../../lib/cli-error.ts'
import type { Paint } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written } from '../table.ts'
import { jsonObject } from '../values.ts'
import { isStandaloneFile } from '../standalone-file.ts'
import { addLearnReflexes, recordingsIn, turnsOf } from './files.ts'
import { addLearnRuns } from './runs.ts'

const LEARN_HELP = `
Each file is a trace as "reflex trace export" writes it, or the file of a standalone process. A sequence of calls that many turns repeat
becomes a skill: its manifest is checked and tested on what was recorded, and nothing is called.

--tools names what the files do not say about tools: {"TOOL": {"repeatable": true}} for one that only
reads, {"INVERSE": {"undoes": {"tool": "TOOL", "match": ["FIELD"]}}} for one that undoes another.

Example:
  reflex learn skills traces/*.json --tools tools.json --role operator --output learned/`

type LearnFlags = { tools?: string; role: string[]; owner: string; parser?: string; trust: string[]; output?: string; seed: string }

export function addLearn(program: Command): void {
  const learn = program.command('learn').description('Learn reflexes and skills from decisions')
  learn
    .command('skills <files...>')
    .description('Find the sequences of calls that turns repeat, and write them as skills; exit with 1 if none passes its tests')
    .option('--tools <json>', 'facts about the tools; @file or a path reads a file')
    .option('--role <role...>', 'the roles that may run the skills', ['operator'])
    .option('--owner <owner>', 'the owner of the skills', 'learned')
    .option('--parser <model>', 'the model that takes inputs from a text; without it, the caller gives them')
    .option('--trust <sender...>', 'senders of events that may carry more than a third of the turns of a sequence', [])
    .option('--seed <text>', 'the seed of the tests', '1')
    .option('--output <folder>', 'the folder for the manifests, and for their test cases (tests/); what is in it gets new versions')
    .addHelpText('after', LEARN_HELP)
    .action(handler(learnFrom))
  addLearnReflexes(learn)
  addLearnRuns(learn)
}

async function learnFrom({ print }: Session, files: string[], options: LearnFlags): Promise<ExitOutcome> {
  const { tools, role, owner, parser, trust, output, seed } = options
  const exported = files.filter((file) => !isStandaloneFile(file))
  const own = files.filter(isStandaloneFile)
  // A file that is missing or wrong is said before anything else is loaded.
  const recordings = await recordingsIn(exported)
  const turns = await turnsOf(own)
  const [{ tracesOf }, { learnSkills }, { manifestSchema }] = await Promise.all([
    import('../../../src/features/learning/episodes/recordings.ts'),
    import('../../../src/features/learning/skills/learn.ts'),
    import('../../../src/skills/manifest/manifest.ts'),
  ])
  const traces = [...recordings.flatMap(tracesOf), ...turns]
  const learned = await learnSkills(traces, {
    tools: toolsOf({ recordings, traces }, tools),
    owner,
    roles: role,
    parser_model: parser ?? null,
    seed,
    trusted: new Set(trust),
    latest: (id) => (output === undefined ? null : manifestIn(output, id, manifestSchema)),
  })
  const passed = learned.candidates.filter(({ report }) => report.passed)
  if (output !== undefined) writeManifests(output, passed)
  print.result(learned, (paint) => lines(learned, paint))
  return passed.length > 0 ? undefined : 1
}

function writeManifests(folder: string, candidates: readonly SkillCandidate[]): void {
  mkdirSync(join(folder, 'tests'), { recursive: true })
  for (const { manifest, cases } of candidates) {
    writeFileSync(join(folder, `${manifest.id}.json`), `${JSON.stringify(manifest, null, 2)}\n`)
    writeFileSync(join(folder, 'tests', `${manifest.id}.json`), `${JSON.stringify(cases, null, 2)}\n`)
  }
}

/** The version that was written last time. */
function manifestIn(folder: string, id: string, schema: z.ZodType<Manifest>): Manifest | null {
  const file = join(folder, `${id}.json`)
  if (!existsSync(file)) return null
  const parsed = schema.safeParse(jsonObject(`@${file}`, file))
  if (!parsed.success) throw new CliError(`${file} is not a manifest: ${z.prettifyError(parsed.error)}`)
  return parsed.data
}

/** The tools of the settings and of the calls, with the facts that were given. */
function toolsOf({ recordings, traces }: { recordings: readonly Recording[]; traces: readonly Trace[] }, text: string | undefined): Tools {
  const parsed = givenFacts.safeParse(text === undefined ? {} : jsonObject(text, '--tools'))
  if (!parsed.success) throw new UsageError(`--tools: ${z.prettifyError(parsed.error)}`)
  const declared = recordings.flatMap(({ settings }) =>
    (settings.http_tools ?? []).map(({ name, repeatable = false, undoes }) => [name, { repeatable, ...(undoes && { undoes }) }]),
  )
  const called = traces.flatMap(({ acts }) => acts.flatMap(({ kind, name }) => (kind === 'tool' ? [[name, {}]] : [])))
  return factsOf({ ...Object.fromEntries([...called, ...declared]), ...parsed.data })
}

const percent = (share: number): string => `${Math.round(share * 100)} %`

function lines({ turns, candidates, rejected }: LearnedSkills, paint: Paint): string[] {
  return [
    `${counted(turns, 'turn')} read, ${counted(candidates.length, 'skill')} found, ${counted(rejected.length, 'sequence')} rejected`,
    ...candidates.flatMap(({ manifest, evidence, report }) => [
      `${report.passed ? paint('green', '✓') : paint('red', '✗')} ${written(manifest.id)}@${manifest.version}: ${manifest.plan.steps.map(({ tool }) => written(tool)).join(' → ')}`,
      `    in ${counted(evidence.turns, 'turn')} (${percent(evidence.support)}), ${percent(evidence.success)} ended well; cost ${percent(evidence.delta_cost)}, latency ${percent(evidence.delta_p95)}`,
      `    tests: ${report.unit.passed} of ${report.unit.n} cases, ${report.fuzz.passed} of ${report.fuzz.n} mutations (seed ${written(report.seed)})`,
      ...report.failures.map(({ name, reason }) => `    ${paint('red', '✗')} ${written(name)}: ${written(reason)}`),
    ]),
    ...rejected.map(({ what, turns: count, reason }) => paint('dim', `- ${written(what)} (${counted(count, 'turn')}): ${written(reason)}`)),
  ]
}
