import { Option, type Command } from 'commander'
import type { z } from 'zod'
import { evidenceParts, type evidencePlace, type learnRun } from '../../../src/features/learning/contract/runs.ts'
import { evidence as listEvidence, find, list as runs, start } from '../../../src/features/learning/operations/learn-runs.ts'
import { refusalWords, untold } from '../../../src/contract/lists/refusals.ts'
import { find as findReflex } from '../../../src/contract/operations/reflexes.ts'
import { RequestRefused } from '../../lib/api.ts'
import type { Paint } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { why } from '../../../src/features/learning/operations/why.ts'
import { addOperation } from '../operation.ts'
import { ask, askPages } from '../ask.ts'
import { proofLines, type ShownProof } from '../reflex/show.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { written, type Column } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'

type ShownRun = z.infer<typeof learnRun>
type Candidate = ShownRun['candidates'][number]
type Place = z.infer<typeof evidencePlace>

const SNAPSHOT_HELP = `
A run reads what the scope has decided since the last one. A reflex that it finds is registered in
shadow mode: it acts once later decisions have proven it, as the setting learning.mode allows. A
skill that passes its tests is registered as a candidate: "reflex skill activate" lets it act, and
with the mode auto it acts at once.

Example:
  reflex learn snapshot ssh/web-1 --trust key:019a2b3c-…`

const SHOW_HELP = `
Every number of a candidate comes from decisions: --evidence lists them with their traces, which
"reflex trace show" prints.

Examples:
  reflex learn show 0199…
  reflex learn show 0199… learned.tool-block.1a2b3c4d.5e6f7a8b --evidence differed`

const WHY_HELP = `
Nothing acts: a learned reflex runs again on what it saw of the event, and says which condition or
which lead of points decided.

Example:
  reflex learn why ssh/web-1 019a2b3c-…`

export function addLearnRuns(learn: Command): void {
  learn
    .command('snapshot <scope>')
    .description('Learn from what a scope has decided, and wait for the end; exit with 1 if the run fails')
    .addOption(new Option('--window <n>', 'the newest decisions to learn from').argParser(wholeNumber))
    .option('--trust <source...>', 'senders, such as key:ID, whose events may be all of the support of what is learned')
    .option('--no-wait', 'print the run and return')
    .addHelpText('after', SNAPSHOT_HELP)
    .action(handler(snapshot))
  addOperation(learn, runs)
  learn
    .command('show <run> [candidate]')
    .description('Show what a run learned and rejected, or one candidate with its code')
    .addOption(new Option('--evidence <part>', 'the decisions behind a candidate').choices(evidenceParts))
    .addOption(limitOption(1000))
    .addHelpText('after', SHOW_HELP)
    .action(handler(show))
  addOperation(learn, why).addHelpText('after', WHY_HELP)
}

const POLL_MS = 1000

type Snapshot = { window?: number; trust?: string[]; wait: boolean }

async function snapshot({ api, print, signal }: Session, scope: string, { window, trust, wait }: Snapshot): Promise<ExitOutcome> {
  const started = await ask({ api, signal }, start, { fields: { scope, window, trusted_sources: trust } })
  if (!wait) {
    const state = started.already_running ? 'was running already' : 'has begun'
    print.result(started, () => [`The run ${written(started.run_id)} ${state}.`])
    return
  }
  for (;;) {
    const run = await ask({ api, signal }, find, { path: [started.run_id] })
    if (run.status === 'running') await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    else {
      print.result(run, (paint) => runLines(run, paint))
      return run.status === 'done' ? undefined : 1
    }
    signal.throwIfAborted()
  }
}

const places: Column<Place>[] = [
  { title: 'TRACE', of: ({ trace_id }) => trace_id },
  { title: 'EVENT', of: ({ event_id }) => event_id },
  { title: 'LOG', of: ({ seq }) => seq },
]

type Show = { evidence?: string; limit: number }

async function show({ api, print, signal }: Session, id: string, of: string | undefined, { evidence, limit }: Show): Promise<ExitOutcome> {
  const run = await ask({ api, signal }, find, { path: [id] })
  const candidate = of === undefined ? undefined : run.candidates.find((one) => one.id === of)
  if (of === undefined && evidence === undefined) {
    print.result(run, (paint) => runLines(run, paint))
    return
  }
  if (!candidate) {
    print.result({ candidates: run.candidates.map((one) => one.id) }, () => [
      of === undefined ? 'Name a candidate:' : `The run has no candidate ${written(of)}. It has:`,
      ...run.candidates.map((one) => `  ${written(one.id)}`),
    ])
    return 1
  }
  if (evidence === undefined) {
    const text = candidate.code ?? JSON.stringify(candidate.manifest, null, 2)
    const about = await aboutOf({ api, signal }, { run, candidate })
    print.result({ ...candidate, ...about }, (paint) => [
      ...candidateLines(candidate, paint),
      ...proofLines(about.certificates).map((line) => paint('dim', line)),
      ...traceLines(about.traces).map((line) => paint('dim', line)),
      '',
      ...text.split('\n').map(written),
    ])
    return
  }
  const fields = { candidate: candidate.id, part: evidence }
  const found = await askPages({ api, signal }, listEvidence, { path: [id], fields, limit, most: 1000 })
  print.page(found, places, 'None.')
}

/** Traces that are printed of each part of the evidence; `--evidence` lists all. */
const MOST_TRACES = 5

type About = { certificates: ShownProof[]; traces: { part: string; first: Place[]; more: boolean }[] }

/** The certificates of a candidate, and the first decisions behind each of its numbers. */
async function aboutOf(
  { api, signal }: Pick<Session, 'api' | 'signal'>,
  { run, candidate }: { run: ShownRun; candidate: Candidate },
): Promise<About> {
  const proofs = async (): Promise<ShownProof[]> => {
    if (candidate.kind !== 'reflex') return []
    const { certificates } = await ask({ api, signal }, findReflex, { path: [candidate.id] })
    return certificates.filter(({ version }) => String(version) === candidate.version)
  }
  const traces = evidenceParts.map(async (part) => {
    const fields = { candidate: candidate.id, part, limit: MOST_TRACES }
    // The decisions of old runs are not kept.
    const page = await ask({ api, signal }, listEvidence, { path: [run.run_id], fields }).catch((error: unknown) => {
      if (error instanceof RequestRefused && error.status === 404) return { items: [], next_cursor: null }
      throw error
    })
    return { part, first: page.items, more: page.next_cursor !== null }
  })
  return { certificates: await proofs(), traces: await Promise.all(traces) }
}

const traceLines = (traces: About['traces']): string[] =>
  traces.flatMap(({ part, first, more }) =>
    first.length === 0
      ? []
      : [
          `  ${part}:`,
          ...first.map(({ trace_id }) => `    trace ${written(trace_id)}`),
          ...(more ? [`    … --evidence ${part} lists all`] : []),
        ],
  )

const percent = (part: number, of: number): string => (of === 0 ? '–' : `${((part / of) * 100).toFixed(1)} %`)

function runLines(run: ShownRun, paint: Paint): string[] {
  const { run_id, scope, status, progress, episodes, candidates, answer } = run
  const rejected = untold(run)
  const at = progress.of === null ? String(progress.done) : `${progress.done} of ${progress.of}`
  return [
    `${written(run_id)}  ${written(scope)}  ${status === 'running' ? `${progress.phase}: ${at}` : status}`,
    written(answer),
    `${counted(episodes.read, 'decision')} read, ${episodes.used} used, ${episodes.asked_again} asked again`,
    ...episodes.skipped.map(({ reason, n }) => paint('dim', `  ${n} skipped: ${written(reason)}`)),
    ...reachLines(run),
    ...candidates.flatMap((one) => ['', ...candidateLines(one, paint)]),
    ...(rejected.length > 0 ? ['', 'Rejected:'] : []),
    ...rejectedLines(rejected).map((line) => paint('dim', `  ${line}`)),
  ]
}

/** Refusals of one reason that are shown; varied words make a refusal of each decision. */
const SHOWN_ALIKE = 3

function rejectedLines(rejected: ShownRun['rejected']): string[] {
  const alike = Map.groupBy(rejected, ({ reason }) => reason.replace(/ \(\d+ \w+\)$/, ''))
  return Array.from(alike).flatMap(([reason, all]) => {
    const shown = all.length > SHOWN_ALIKE + 1 ? all.slice(0, SHOWN_ALIKE) : all
    const lines = shown.map((one) => written(refusalWords(one)))
    return shown === all ? lines : [...lines, `… and ${all.length - shown.length} more: ${written(reason)} (--json has all)`]
  })
}

/** A line for each act: what it would take, and what can be reached at all. */
const reachLines = ({ reach = [], episodes: { crowd } }: Pick<ShownRun, 'reach' | 'episodes'>): string[] =>
  reach.length === 0
    ? []
    : [
        '',
        'What can be reached:',
        ...reach.map(({ act, bound, decisions, error, must_leave, decides, needs, saves_usd }) => {
          const least = must_leave === null || error === null ? '' : `, any method leaves at least ${percent(must_leave, 1)}`
          const of = `${counted(decisions, 'decision')} at a bound of ${bound}${least}`
          // Numbers of what was not learned would say that nothing can be.
          if (crowd) return `  ${written(act)}: not known before ${written(crowd.sender)} is trusted, of ${of}`
          const proof = needs === null ? 'nothing that was learned decides it yet' : `about ${counted(needs, 'decision')} more for a proof`
          return `  ${written(act)}: ${percent(decides, 1)} of ${of}; ${proof}; saves ${saves_usd > 0 ? `$${saves_usd.toFixed(4)}` : 'no cost that is known'}`
        }),
      ]

function candidateLines(candidate: Candidate, paint: Paint): string[] {
  const { id, version, state, decision, examples } = candidate
  const colour = state === 'active' ? 'green' : 'yellow'
  return [
    `${written(id)}@${written(version)}  ${paint(colour, written(state))}`,
    `  ${written(decision)}`,
    ...evidenceLines(candidate),
    ...examples.map(({ trace_id, event_id }) => paint('dim', `  for example trace ${written(trace_id)}, event ${written(event_id)}`)),
  ]
}

function evidenceLines({ evidence, mined }: Candidate): string[] {
  if (mined) return minedLines(mined)
  if (!evidence) return []
  const { train, held_out, saves } = evidence
  return [
    `  learned from ${train.n} of ${counted(train.of, 'decision')}, ${counted(train.exceptions, 'exception')}`,
    `  agreed with ${held_out.agreed} of ${held_out.covered} newer decisions (${percent(held_out.agreed, held_out.covered)}, at least ${percent(held_out.wilson_low, 1)}), of ${held_out.n} such`,
    `  these took ${counted(saves.model_calls, 'model call')}, ${saves.tokens} tokens, $${saves.cost_usd.toFixed(4)}, ${(saves.latency_ms / 1000).toFixed(1)} s`,
  ]
}

const changed = (share: number): string => `${share > 0 ? '+' : ''}${percent(share, 1)}`

const minedLines = ({
  turns,
  support,
  success,
  delta_cost,
  delta_p95,
  tests: { unit, fuzz },
  proof,
}: NonNullable<Candidate['mined']>): string[] => [
  `  in ${counted(turns, 'turn')} (${percent(support, 1)}), ${percent(success, 1)} ended well; cost ${changed(delta_cost)}, latency ${changed(delta_p95)}`,
  `  tests: ${unit.passed} of ${unit.n} cases, ${fuzz.passed} of ${fuzz.n} mutations`,
  ...(proof ? [`  ${proof.agreed} of ${counted(proof.turns, 'later turn')} made the same calls (at least ${percent(proof.low, 1)})`] : []),
]
