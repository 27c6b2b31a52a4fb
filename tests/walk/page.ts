import type { Entered } from './entered.ts'

/** A question of somebody who changes Reflex, and the lines that answer it. */
export type Answer = { question: string; lines: { at: string; says: string }[] }
export type Sum = { files: number; functions: number; stops: number }
/** `runs`: what the same walk entered, each time. */
export type Measured = { title: string; about: string; runs: readonly (readonly Entered[])[] }

const MOST_NAMES = 8
/** More than the runs of a walk differ. */
const JITTER = 1.02

/** A stop: a file is entered from another one. */
const stopsOf = (run: readonly Entered[]): number => run.filter(({ file }, index) => file !== run[index - 1]?.file).length
const isHelper = (file: string): boolean => /^src\/(?:base|contract)\//.test(file)
const namesOf = (entered: readonly Entered[]): string[] => [...new Set(entered.map(({ file, name }) => `${file} ${name}`))]
const median = (numbers: readonly number[]): number => numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0

export const filesOf = (entered: readonly Entered[]): string[] => [...new Set(entered.map(({ file }) => file))]

/** The functions that most runs entered: one alone may have met the end of other work. */
export function usual({ runs }: Measured): Entered[] {
  const times = new Map<string, number>()
  for (const name of runs.flatMap(namesOf)) times.set(name, (times.get(name) ?? 0) + 1)
  return runs.flat().filter(({ file, name }) => (times.get(`${file} ${name}`) ?? 0) > runs.length / 2)
}

export const sumOf = ({ runs, ...walk }: Measured): Sum => ({
  files: filesOf(usual({ ...walk, runs })).length,
  functions: namesOf(usual({ ...walk, runs })).length,
  stops: median(runs.map(stopsOf)),
})

/** A ceiling only falls. */
function lowered(measured: Sum, ceiling: Sum | undefined): Sum {
  const { files, functions } = measured
  const stops = Math.ceil(measured.stops * JITTER)
  if (!ceiling) return { files, functions, stops }
  return {
    files: Math.min(files, ceiling.files),
    functions: Math.min(functions, ceiling.functions),
    stops: Math.min(stops, ceiling.stops),
  }
}

function fileLine(file: string, entered: readonly Entered[]): string {
  const own = entered.filter((one) => one.file === file)
  const names = [...new Set(own.map(({ name }) => name))]
  const others = names.slice(1, MOST_NAMES).map((name) => `\`${name}\``)
  const also = [...others, ...(names.length > MOST_NAMES ? [`${names.length - MOST_NAMES} more`] : [])].join(', ')
  const [{ line, name, comment } = { line: 0, name: '', comment: '' }] = own
  return `\`${file}:${line}\` \`${name}\`${also === '' ? '' : `, ${also}`}${comment === '' ? '' : `. ${comment}`}`
}

function section(measured: Measured, ceiling: Sum | undefined): string {
  const { files, functions, stops } = lowered(sumOf(measured), ceiling)
  const entered = usual(measured)
  const [helpers, own] = [filesOf(entered).filter(isHelper), filesOf(entered).filter((file) => !isHelper(file))]
  return [
    `## ${measured.title}`,
    `${measured.about} At most ${files} files, ${functions} functions and ${stops} stops.\n`,
    ...own.map((file, index) => `${index + 1}. ${fileLine(file, entered)}`),
    `\nHelpers: ${helpers.map((file) => `\`${file}\``).join(', ')}.\n`,
  ].join('\n')
}

const answered = ({ question, lines }: Answer): string =>
  [`**${question}**`, ...lines.map(({ at, says }) => `- \`${at}\`: ${says}`), ''].join('\n')

export const pageOf = (measured: readonly Measured[], answers: readonly Answer[], known: ReadonlyMap<string, Sum>): string => `\
# The way of an event

\`src/engine/loop.ts\` tells the loop: accept → perceive → react → act → think → settle → replicate. This
page lists the files that four requests enter. \`npm run docs:walk\` measures it and writes this page: each
function of \`src/\` reports when it is entered, while the real Worker runs. Files are in the order in which
they are first entered, each with its functions in that order, and with the line and the comment of the
first function, as most of three runs go. A *stop* is a file that is entered from another one. The numbers are ceilings, which
a test holds; \`npm run docs:walk\` lowers them.

The folders of \`src/engine/\`: \`storage/\` (SQLite and the unit of work), \`log/\`, \`inbox/\` (the only writer
of events), \`context/\`, \`reflexes/\`, \`effects/\` (the lane of tool calls and its journal), \`turns/\`,
\`skills/\`, \`live/\` (sockets and streams), \`settings/\`, \`replication/\` (to D1) and \`upkeep/\` (alarm, guard,
timers, retention). \`wiring.ts\` builds a scope layer by layer, each part from those before it.

## Three questions
${answers.map(answered).join('\n')}
${measured.map((one) => section(one, known.get(one.title))).join('\n')}`

export type Section = { ceiling: Sum; files: string[]; lines: { file: string; line: number; name: string }[] }

/** Reads a page that was written. */
export function readPage(page: string): Map<string, Section> {
  const sections = page.split('\n## ').slice(1)
  return new Map(
    sections.flatMap((text): [string, Section][] => {
      const counted = /At most (\d+) files, (\d+) functions and (\d+) stops\./.exec(text)
      if (!counted) return []
      const [files = 0, functions = 0, stops = 0] = counted.slice(1).map(Number)
      const lines = Array.from(text.matchAll(/^\d+\. `([^`:]+):(\d+)` `([^`]+)`/gm), ([, file = '', line, name = '']) => ({
        file,
        line: Number(line),
        name,
      }))
      const helpers = Array.from((/^Helpers: (.*)$/m.exec(text)?.[1] ?? '').matchAll(/`([^`]+)`/g), ([, file = '']) => file)
      const listed = [...lines.map(({ file }) => file), ...helpers]
      return [[text.split('\n')[0] ?? '', { ceiling: { files, functions, stops }, files: listed, lines }]]
    }),
  )
}
