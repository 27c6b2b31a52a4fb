import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { areas as known, filesOf } from './areas.ts'
import { breaks } from './list.ts'
import { reasons, reasonsByHand } from './reasons.ts'

/** A change that no test noticed. `line`: where it was when its file was judged. */
export type Survivor = { line: number; from: string; to: string }
/**
 * `timed_out`: those killed because a test did not end in time. `static`: changes of what a module
 * sets up while it loads, which were not judged. A folder may stand for its files together.
 */
export type FileResult = { killed: number; timed_out: number; static: number; survived: Survivor[] }
/** By hand, `killed` and `survived` are the ids of breaks. */
type Results = { areas: Record<string, Record<string, FileResult>>; by_hand: { killed: string[]; survived: string[] } }

const FILE = path.join(import.meta.dirname, 'results.json')
const PAGE = path.join(import.meta.dirname, '../../docs/mutation.md')
export const LEAST_KILLED = 0.85

export const readResults = (): Results =>
  existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as Results) : { areas: {}, by_hand: { killed: [], survived: [] } }

/** Keeps the results, and writes the page of them. */
export function keep(results: Results): void {
  writeFileSync(FILE, `${JSON.stringify(results, null, 1)}\n`)
  writeFileSync(PAGE, page(results))
}

type Placed = Survivor & { file: string }

/** The reason why the tests may live with a change, wherever the file has it. */
export const reasonOf = ({ file, from, to }: Omit<Placed, 'line'>): string | undefined =>
  reasons.find((one) => one.file === file && one.changes.some(([before, after]) => before === from && after === to))?.why

export const shareOf = (killed: number, survived: number): number => killed / Math.max(1, killed + survived)
export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** The counts of an area, or of some files of it. */
export function sumOf(files: Record<string, FileResult>) {
  const survived = Object.entries(files).flatMap(([file, result]) => result.survived.map((one) => ({ ...one, file })))
  const results = Object.values(files)
  const killed = results.reduce((sum, result) => sum + result.killed, 0)
  const timed_out = results.reduce((sum, result) => sum + result.timed_out, 0)
  const not_judged = results.reduce((sum, result) => sum + result.static, 0)
  const explained = survived.filter((one) => reasonOf(one) !== undefined).length
  const all = killed + survived.length
  return {
    all,
    killed,
    timed_out,
    survived,
    explained,
    unexplained: survived.length - explained,
    not_judged,
    share: shareOf(killed, survived.length),
  }
}

function page({ areas, by_hand }: Results): string {
  const sums = Object.entries(areas).map(([name, files]) => ({ name, files: judgedText(name, files), ...sumOf(files) }))
  const rows = sums.map(({ name, files, all, killed, timed_out, share, explained, unexplained, not_judged }) =>
    [name, files, all, killed, timed_out, percent(share), explained, unexplained, not_judged].join(' | '),
  )
  const hand = { killed: by_hand.killed.length, all: by_hand.killed.length + by_hand.survived.length }
  const share = percent(shareOf(hand.killed, by_hand.survived.length))
  return `${intro}
| area | files judged | changes | killed | of them by a time limit | share | survived, with a reason | survived, without | not judged |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map((row) => `| ${row} |`).join('\n')}

Of ${hand.all} breaks by hand that were run, of ${breaks.length}, the tests notice ${hand.killed} (${share}).

## Files that were not judged

${openText(areas)}

${sums.map(({ name, survived }) => `## Survivors of ${name}\n\n${survivorsText(survived)}`).join('\n\n')}

## Survivors by hand

${by_hand.survived.map(brokenText).join('\n') || 'None.'}
`
}

const filesIn = (name: string): string[] => (known[name] ? filesOf(known[name]) : [])
const isOpen = (judged: Record<string, FileResult>, file: string): boolean => !(file in judged || path.dirname(file) in judged)

function judgedText(name: string, judged: Record<string, FileResult>): string {
  const files = filesIn(name)
  return `${files.filter((file) => !isOpen(judged, file)).length} of ${files.length}`
}

function openText(areas: Results['areas']): string {
  const lines = Object.keys(known).map((name) => {
    const open = filesIn(name).filter((file) => isOpen(areas[name] ?? {}, file))
    return open.length === 0 ? [] : [`- ${name}: ${open.join(', ')}`]
  })
  return lines.flat().join('\n') || 'None.'
}

function brokenText(id: string): string {
  const { file, what } = breaks.find((one) => one.id === id) ?? { file: '', what: 'no longer listed' }
  return `- ${id}, ${file}: ${what}. ${reasonsByHand[id] ?? UNKNOWN}`
}

function survivorsText(survived: readonly Placed[]): string {
  const groups = Map.groupBy(survived, (one) => reasonOf(one) ?? UNKNOWN)
  if (groups.size === 0) return 'None.'
  return Array.from(groups, ([why, ones]) => `${why}\n\n${ones.map(lineOf).join('\n')}`).join('\n\n')
}

const UNKNOWN = 'No reason is known: a test may be lacking.'
const code = (text: string): string => `\`\` ${text} \`\``
const lineOf = ({ file, line, from, to }: Placed): string => `- ${file}:${line}: ${code(from)} → ${code(to)}`

const intro = `# Mutation testing

A test is worth what it notices. \`npm run mutate\` changes the code at one place after the other, in a copy, and runs the unit tests that reach the place:
a change that fails a test is killed, one that fails none survives. This page is written by the tool.

- \`npm run mutate -- --area proof\` changes an area by Stryker (or one file of it: \`npm run mutate -- --file src/evidence/strata.ts\`), and \`npm run mutate -- g1\` makes one break by hand; \`npm run mutate -- --list\` names both.
- An area takes minutes to an hour, so neither \`npm test\` nor CI runs this.
- Changes of texts alone are left out: types check those that are names, and people read the others. Changes of what a module sets up while
  it loads are counted as not judged.
- Tests that live a random life thousands of times (\`simulation\`) do not run here, and properties try a tenth of their values.
- A change that ends no more is killed, too: by a time limit of a minute and four times the usual time. On a busy machine a change that
  only takes long is killed by it, as well. Why a survivor may live is in \`cli/mutate/reasons.ts\`.
`
