import { beforeAll, describe, expect, test } from 'vitest'
import page from '../../docs/walk.md?raw'
import type { Entered } from './entered.ts'
import { type Answer, filesOf, type Measured, pageOf, readPage, type Section, sumOf } from './page.ts'
import { asides, walks } from './walks.ts'

type Walk = keyof typeof walks | keyof typeof asides
/** `text` is on the line, in the function `name` that `walk` enters, or in the data `name`. */
type Place = { walk?: Walk; file: string; name: string; text: string; says: string }

const QUESTIONS: Record<string, Place[]> = {
  'Where is the outcome of an event written?': [
    {
      walk: 'burst',
      file: 'src/engine/inbox/inbox.ts',
      name: 'end',
      text: 'UPDATE events SET status = ?2, outcome = ?3',
      says: 'the row of the event, in the unit of work that ends it.',
    },
    {
      walk: 'burst',
      file: 'src/engine/inbox/settlement.ts',
      name: 'endedEntries',
      text: `kind: 'event-ended'`,
      says: 'the entry of the log, in the same unit.',
    },
    { walk: 'burst', file: 'src/store/replicate.ts', name: 'replicateEvents', text: 'UPSERT_EVENTS', says: 'its copy in D1.' },
  ],
  'Where does a certificate stop a reflex?': [
    {
      walk: 'uncertified',
      file: 'src/reflexes/decide.ts',
      name: '#tryLink',
      text: `'uncertified', lacks`,
      says: 'the decision: the version runs as in shadow mode, and the earlier version or the next reflex is asked.',
    },
    {
      walk: 'uncertified',
      file: 'src/features/proof/scope/proven-acts.ts',
      name: 'unproven',
      text: 'NEVER_COMPARED',
      says: 'the reason, by the certificate of the version in this scope.',
    },
  ],
  'Where is a field of a listing added? For example, of the list of events.': [
    {
      file: 'src/contract/event-record.ts',
      name: 'loggedEvent',
      text: 'partial: z',
      says: 'the shape of an item, from which the API reference follows.',
    },
    { walk: 'listing', file: 'src/store/events.ts', name: 'statements', text: 'SELECT CAST(key AS TEXT)', says: 'the column in the SQL.' },
    { walk: 'listing', file: 'src/store/events.ts', name: 'itemOf', text: 'partial:', says: 'the item from its row.' },
  ],
}

const sources = import.meta.glob<string>('../../src/**/*.ts', { query: '?raw', import: 'default', eager: true })
const linesOf = (file: string): string[] => (sources[`../../${file}`] ?? '').split('\n')

/** The place of the text behind the declaration of the name. */
function lineOf({ file, name, text }: Place): number {
  const lines = linesOf(file)
  const declared = new RegExp(String.raw`(?:\b(?:function|const) ${name}\b)|(?:^  (?:async |\*)*${name}\()`)
  const begin = lines.findIndex((line) => declared.test(line))
  return begin < 0 ? 0 : lines.findIndex((line, index) => index >= begin && line.includes(text)) + 1
}

const RUNS = 3
/** Lines by which a page may be off. */
const NEAR = 25
const known = readPage(page)
const entered: Partial<Record<Walk, Entered[]>> = {}
const measured: Measured[] = []

beforeAll(async () => {
  for (const [name, { title, about, run }] of Object.entries(walks)) {
    const runs: Entered[][] = []
    while (runs.length < RUNS) runs.push(await run())
    measured.push({ title, about, runs })
    entered[name as keyof typeof walks] = runs.flat()
  }
  for (const [name, run] of Object.entries(asides)) entered[name as keyof typeof asides] = await run()
}, 300_000)

test.each(Object.values(QUESTIONS).flat())('$file has $text in $name', (place) => {
  const { walk, file, name } = place
  const isEntered = walk === undefined || entered[walk]?.some((one) => one.file === file && one.name === name)
  expect({ isThere: lineOf(place) > 0, isEntered }).toEqual({ isThere: true, isEntered: true })
})

describe.runIf(import.meta.env['VITE_WALK'])('docs/walk.md', () => {
  test('is written', async () => {
    const ceilings = new Map([...known].map(([title, { ceiling }]) => [title, ceiling]))
    const answers = Object.entries(QUESTIONS).map(([question, places]): Answer => ({
      question,
      lines: places.map((place) => ({ at: `${place.file}:${lineOf(place)}`, says: `\`${place.name}\`, ${place.says}` })),
    }))
    console.log(measured.map((one) => `${one.title}: ${JSON.stringify(sumOf(one))}`).join('\n'))
    await expect(pageOf(measured, answers, ceilings)).toMatchFileSnapshot('../../docs/walk.md')
  })
})

describe.skipIf(import.meta.env['VITE_WALK']).each(Object.values(walks))('$title', ({ title }) => {
  const walk = () => measured.find((one) => one.title === title) ?? { title, about: '', runs: [] }

  test('enters no more files and functions than its ceilings, in no more stops', () => {
    const { files, functions, stops } = sumOf(walk())
    const ceiling = known.get(title)?.ceiling ?? { files: 0, functions: 0, stops: 0 }
    const above = { files: files > ceiling.files, functions: functions > ceiling.functions, stops: stops > ceiling.stops }
    expect({ files, functions, stops, ceiling, above }).toMatchObject({ above: { files: false, functions: false, stops: false } })
  })

  test('is so near to its ceiling that this holds something', () => {
    const { files, stops } = sumOf(walk())
    const lower = 'npm run docs:walk'
    const isLow = stops < 0.9 * (known.get(title)?.ceiling.stops ?? 0)
    expect({ lower, stops, isLow, isWalk: files > 10 }).toEqual({ lower, stops, isLow: false, isWalk: true })
  })

  test('enters the files that docs/walk.md lists, whose functions are where it says', () => {
    const { runs } = walk()
    const listed: Pick<Section, 'files' | 'lines'> = known.get(title) ?? { files: [], lines: [] }
    const always = filesOf(runs[0] ?? []).filter((file) => runs.every((run) => run.some((one) => one.file === file)))
    const missing = always.filter((file) => !listed.files.includes(file))
    const gone = listed.files.filter((file) => !filesOf(runs.flat()).includes(file))
    const moved = listed.lines.filter(
      ({ file, line, name }) => !runs.flat().some((one) => one.file === file && one.name === name && Math.abs(one.line - line) < NEAR),
    )
    const update = 'npm run docs:walk'
    expect({ update, missing, gone, moved }).toEqual({ update, missing: [], gone: [], moved: [] })
  })
})
