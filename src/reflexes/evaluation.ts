import type { Computing } from '../base/computing.ts'
import { canonicalJson } from '../base/json.ts'
import type { CallKeys, Decision, KeyOf, ReflexRecording, ReflexRun, ComparisonTerms } from '../contract/reflex.ts'
import type { RecordingPage } from '../contract/scope-api.ts'
import { wordsFor } from '../contract/words.ts'
import type { Words } from '../contract/reflex.ts'
import { actionsIn, toolCallOf, type Action, type ActionCall } from '../contract/action.ts'
import { agreement, recordedKeys, sequenceAgrees } from './agreement.ts'
import { countSample, emptyHistogram, percentiles } from './metrics.ts'
import type { EvaluationReport } from '../contract/reports/reflex-report.ts'
import type { ReflexContext } from './reflex-context.ts'
import { runReflex } from './run-reflex.ts'
import type { Program, Sandbox } from './sandbox.ts'

const MOST_TOLD = 5

/** Compares a reflex's actions on recorded contexts with the decisions of that time. */
export class Evaluation {
  readonly #counts = { fires: 0, missed: 0, agreed: 0, disagreed: 0, not_compared: 0 }
  readonly #contexts = { recorded: 0, rebuilt: 0, undecided: 0 }
  readonly #passes = { null: 0, error: 0, limit: 0, invalid_action: 0 }
  readonly #errors: EvaluationReport['errors'] = []
  readonly #disagreements: EvaluationReport['disagreements'] = []
  readonly #fuel = emptyHistogram()

  /** `keys` the keys of the tool call that the run asks for. `how` compares a sequence. */
  add(
    recording: Omit<ReflexRecording, 'context'>,
    run: ReflexRun,
    keys: CallKeys | null,
    how: ComparisonTerms & { keyOf?: KeyOf } = {},
  ): void {
    this.#contexts[recording.source] += 1
    if (recording.decision === null) this.#contexts.undecided += 1
    countSample(this.#fuel, run.fuel)
    if (run.reason === 'fired') this.#fired(recording, run.action, { keys, ...how })
    else this.#passed(recording, run.reason, run.error)
  }

  report(): EvaluationReport {
    const { fires, missed, ...counts } = this.#counts
    const compared = counts.agreed + counts.disagreed
    return {
      contexts: { ...this.#contexts },
      fires,
      passes: { ...this.#passes },
      agreement: { ...counts, rate: compared === 0 ? null : counts.agreed / compared },
      missed,
      errors: [...this.#errors],
      fuel: percentiles(this.#fuel),
      disagreements: [...this.#disagreements],
    }
  }

  #fired(
    { event_id, decision }: Omit<ReflexRecording, 'context'>,
    action: Action | null,
    { keys, keyOf = () => null, ...terms }: ComparisonTerms & { keys: CallKeys | null; keyOf?: KeyOf },
  ): void {
    this.#counts.fires += 1
    const compare = (wish: Action, decided: Decision) =>
      wish.action_type === 'sequence' ? sequenceAgrees(wish, decided, { keyOf, ...terms }) : agreement(wish, decided, keys)
    const agrees = action === null || decision === null ? null : compare(action, decision)
    if (action === null || decision === null || agrees === null) this.#counts.not_compared += 1
    else if (agrees) this.#counts.agreed += 1
    else {
      this.#counts.disagreed += 1
      if (this.#disagreements.length < MOST_TOLD) this.#disagreements.push({ event_id, action, decided: decision.acts })
    }
  }

  #passed({ event_id, decision }: Omit<ReflexRecording, 'context'>, reason: keyof EvaluationReport['passes'], error: string | null): void {
    this.#passes[reason] += 1
    if (reason === 'null' && decision !== null && decision.acts.length > 0) this.#counts.missed += 1
    if (error !== null && this.#errors.length < MOST_TOLD) this.#errors.push({ event_id, message: error })
  }
}

const evaluationLimits = { contexts: 5000, fuel: 400_000_000 } as const

type EvaluationOptions = {
  sandbox: Sandbox
  program: Program
  /** Identifies calls in the scope, which alone knows all of its tools. */
  identify: (calls: ActionCall[]) => Promise<(CallKeys | null)[]>
  read: (after: number) => Promise<RecordingPage>
  limits?: { contexts: number; fuel: number }
  /** Rests between two runs, and bounds them. */
  computing: Computing
}

/** Runs a reflex on recordings, without acting. `truncated`: a limit ended it early. */
export async function evaluateRecordings({ sandbox, program, identify, read, limits = evaluationLimits, computing }: EvaluationOptions) {
  const evaluation = new Evaluation()
  let left: { contexts: number; fuel: number } = { ...limits }
  let after: number | null = 0
  while (after !== null) {
    const page: RecordingPage = await read(after)
    const ran: Ran[] = []
    for (const text of page.recordings) {
      if (left.contexts <= 0 || left.fuel <= 0 || computing.left <= 0) break
      const { context, ...recording } = JSON.parse(text) as ReflexRecording & { context: ReflexContext }
      const run = runReflex(sandbox, program, context)
      ran.push({ recording, run, words: run.action ? wordsFor(run.action, page.replies, context.event) : 'none' })
      computing.spend(run.fuel)
      await computing.rest()
      left = { contexts: left.contexts - 1, fuel: left.fuel - run.fuel }
    }
    await addAll(evaluation, ran, identify)
    if (ran.length < page.recordings.length) return { ...evaluation.report(), truncated: true }
    after = page.next
  }
  return { ...evaluation.report(), truncated: false } satisfies EvaluationReport & { truncated: boolean }
}

type Ran = { recording: Omit<ReflexRecording, 'context'>; run: ReflexRun; words: Words }

/** Identifies all calls of a page that are compared with a decision, in one request. */
async function addAll(evaluation: Evaluation, ran: readonly Ran[], identify: EvaluationOptions['identify']): Promise<void> {
  const wishes = ran.map(({ recording, run }) => (recording.decision !== null && run.action ? actionsIn(run.action) : []))
  const asked = wishes.flat().flatMap((action) => toolCallOf(action) ?? [])
  const keys = asked.length === 0 ? [] : await identify(asked)
  const keysOf = new Map(asked.map((call, index) => [nameOf(call), recordedKeys(keys[index] ?? null, call.args)]))
  const keyOf: KeyOf = (tool, args) => keysOf.get(nameOf({ tool, args })) ?? null
  for (const [index, { recording, run, words }] of ran.entries()) {
    const [first] = wishes[index] ?? []
    const call = first ? toolCallOf(first) : null
    // Recordings are of one event each, without the outputs of its calls.
    evaluation.add(recording, run, call && keyOf(call.tool, call.args), { keyOf, words, alone: true })
  }
}

const nameOf = ({ tool, args }: ActionCall): string => canonicalJson([tool, args])
