import type { Api } from '../lib/api.ts'
import type { Paint } from '../lib/paint.ts'
import { count, counted, harmless, wrap } from '../lib/text.ts'
import { bucketsOf, curveText, per100, type Curve } from './curve.ts'
import type { LearnRun, Taught } from './lesson.ts'

type Look = { columns: number; paint: Paint }

const BUCKET = 100
const MOST_COLUMNS = 100
const MOST_CODE_LINES = 40
const MOST_REJECTED = 6

export function curveOf({ calls, marks }: Taught, title: string): Curve {
  return { title, buckets: bucketsOf(calls, BUCKET), marks }
}

/** The curve, and the cost before and after in a sentence. */
export function curveLines(taught: Taught, title: string, { columns, paint }: Look): string[] {
  const curve = curveOf(taught, title)
  const width = Math.min(columns - 1, MOST_COLUMNS)
  return [...curveText(curve, { columns: width, paint }), '', ...wrap(sentence(taught), width)]
}

/** The figures for machines. */
export const figuresOf = ({ calls, by_reflex, marks, runs }: Taught) => ({
  events: calls.length,
  by_reflex,
  calls_per_100: bucketsOf(calls, BUCKET).map(per100),
  marks,
  runs: runs.map(({ run_id, answer, rejected }) => ({ run_id, answer, rejected })),
})

/** Compares the first and the last hundred events. */
function sentence({ calls, by_reflex }: Taught): string {
  const first = bucketsOf(calls.slice(0, BUCKET), BUCKET)[0]
  const last = bucketsOf(calls.slice(-BUCKET), BUCKET)[0]
  if (!first || !last) return 'No event was sent.'
  const before = Math.round(per100(first))
  const after = Math.round(per100(last))
  return `Model calls for 100 events: ${count(before)} at first, ${count(after)} at last, audits included. Reflexes decided ${counted(by_reflex, 'event')} of ${count(calls.length)}.`
}

/** Shows the findings of the runs, and what they refused. */
export function runLines(runs: readonly LearnRun[], { columns, paint }: Look): string[] {
  const width = Math.min(columns - 1, MOST_COLUMNS) - 2
  const last = runs.at(-1)
  if (!last) return []
  const refused = last.rejected.slice(0, MOST_REJECTED).map(({ what, reason }) => `${harmless(what)}: ${harmless(reason)}`)
  return [
    paint('bold', 'What was learned'),
    ...runs.flatMap(({ answer }) => wrap(harmless(answer), width).map((line) => `  ${line}`)),
    ...(refused.length > 0
      ? [
          paint('bold', 'What the last run did not learn, and why'),
          ...refused.flatMap((one) => wrap(one, width)).map((line) => `  ${line}`),
        ]
      : []),
  ]
}

/** A program, cut after some lines. */
function codeLines(code: string, { paint }: Look): string[] {
  const lines = code.trimEnd().split('\n')
  const rest = lines.length - MOST_CODE_LINES
  return [
    ...lines.slice(0, MOST_CODE_LINES).map((line) => `  ${paint('cyan', harmless(line))}`),
    ...(rest > 0 ? [paint('dim', `  … ${counted(rest, 'more line')}`)] : []),
  ]
}

type Proofs = { certificates: { version: number; why: string[] }[] }

/** The newest reflex that acts, or else the newest: its certificate in words, and its code. */
export async function reflexLines(api: Api, runs: readonly LearnRun[], look: Look): Promise<string[]> {
  const whole = await Promise.all(runs.toReversed().map(({ run_id }) => api.json<LearnRun>(`/v1/learn/runs/${run_id}`)))
  const learned = whole.flatMap(({ candidates }) => candidates.filter(({ kind }) => kind === 'reflex'))
  const shown = learned.find(({ state }) => state === 'active') ?? learned[0]
  if (!shown) return []
  const { id, version, state, code = '' } = shown
  const { certificates } = await api.json<Proofs>(`/v1/reflexes/${id}`)
  const proof = certificates.filter((one) => String(one.version) === version).flatMap(({ why }) => why)
  const width = Math.min(look.columns - 1, MOST_COLUMNS) - 2
  return [
    look.paint('bold', `The reflex ${id}@${version} is ${state}`),
    ...proof.flatMap((sentence) => wrap(harmless(sentence), width)).map((line) => `  ${look.paint('green', line)}`),
    '',
    ...codeLines(code, look),
  ]
}
