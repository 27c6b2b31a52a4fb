import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Saw } from '../../src/features/learning/episode.ts'
import { packScorer, pointsSource, unpackScorer } from '../../src/features/learning/reflexes/scorer/pack.ts'
import { piecesOf, piecesSource } from '../../src/features/learning/reflexes/scorer/pieces.ts'
import { leadOf, pointsOf, type Scorer } from '../../src/features/learning/reflexes/scorer/scorer.ts'
import { fitPieces, quantised } from '../../src/features/learning/reflexes/scorer/softmax.ts'
import { learnThenTest, type Scored, thresholdGrid } from '../../src/evidence/learn-then-test.ts'
import { sampleWith } from '../../src/reflexes/reflex-context.ts'
import type { Sandbox } from '../../src/reflexes/sandbox.ts'
import { withWeights } from '../../src/reflexes/weights.ts'
import { drawOf } from './draw.ts'

/** Messages with the class that is right; -1: no decision that could be learned. */
type Message = { text: string; own: number }
/** `foreign`: messages that no class stands for, and that nobody taught. */
type Intents = { name: string; classes: number; taught: Message[]; asked: Message[]; foreign: Message[] }

const MOST_TAUGHT = 10_000
/** Points of a logit. */
const SCALE = 100
const DELTA = 0.05
/** Thresholds of the grid that cover too few decisions to be tried. */
const STRICTEST = 5
/** Shares of the taught messages from which the next block is predicted. */
const BLOCKS = [0.5, 0.625, 0.75, 0.875, 1]

type Row = { pieces: Uint32Array; own: number; saw: Saw }
type Share = { bound: number; threshold: number | null; decided: number; right: number; foreign: number }
type IntentsResult = {
  name: string
  taught: number
  asked: number
  foreign: number
  accuracy: number
  shares: Share[]
  bytes: number
  fit_ms: number
  longest_ms: number
  run: { us: number; most_us: number; fuel: number; most_fuel: number }
}

/** A scorer of pieces learns from the taught messages alone, and decides those that are asked. */
function resultOf(sandbox: Sandbox, intents: Intents): IntentsResult {
  const rowsOf = (messages: readonly Message[]): Row[] =>
    messages.map(({ text, own }) => {
      const saw = sampleWith({ type: 'said', content: text })
      return { saw, own, pieces: piecesOf(saw) }
    })
  const taught = rowsOf(intents.taught)
  const asked = rowsOf(intents.asked)
  const foreign = rowsOf(intents.foreign)
  const scored = BLOCKS.slice(0, -1).flatMap((from, block) => {
    const { scorer } = learn(taught.slice(0, taught.length * from), intents.classes)
    return taught.slice(taught.length * from, taught.length * (BLOCKS[block + 1] ?? 1)).map((row) => scoreOf(scorer, row, intents.classes))
  })
  const { scorer, weights, ...cost } = learn(taught, intents.classes)
  const of = (rows: readonly Row[]) => rows.map((row) => scoreOf(scorer, row, intents.classes))
  const answers = of(asked)
  const strange = of(foreign)
  const shares = [0.99, 0.95].map((bound): Share => {
    const grid = thresholdGrid(scored.map(({ score }) => score)).slice(STRICTEST)
    const found = learnThenTest(scored, { alpha: 1 - bound, delta: DELTA, grid })
    const threshold = found === null ? null : Math.max(0, found.threshold)
    const decided = answers.filter(({ score }) => threshold !== null && score >= threshold)
    const wrong = strange.filter(({ score }) => threshold !== null && score >= threshold)
    return { bound, threshold, decided: decided.length, right: decided.filter(({ agreed }) => agreed).length, foreign: wrong.length }
  })
  const sizes = { taught: taught.length, asked: asked.length, foreign: foreign.length }
  const accuracy = answers.filter(({ agreed }) => agreed).length / answers.length
  return {
    name: intents.name,
    ...sizes,
    accuracy,
    shares,
    bytes: weights.length,
    ...cost,
    run: runsOf(sandbox, weights, asked.slice(0, 500)),
  }
}

function learn(rows: readonly Row[], classes: number) {
  const start = process.cpuUsage()
  const steps = fitPieces({ rows: rows.map(({ pieces }) => pieces), classOf: rows.map(({ own }) => own), classes })
  let longest_ms = 0
  for (;;) {
    const began = performance.now()
    const step = steps.next()
    longest_ms = Math.max(longest_ms, performance.now() - began)
    if (!step.done) continue
    const weights = packScorer(quantised(step.value, SCALE))
    const { user } = process.cpuUsage(start)
    return { weights, scorer: unpackScorer(weights) as Scorer, fit_ms: Math.round(user / 1000), longest_ms: Math.round(longest_ms) }
  }
}

/** The class of the decisions that cannot be learned never acts. */
function scoreOf(scorer: Scorer, { pieces, own }: Row, classes: number): Scored {
  const lead = leadOf(pointsOf(scorer, { pieces }))
  return { score: lead.own === classes ? -1 : lead.margin, agreed: lead.own === own }
}

const REFLEX = `
function reflex(context) {
  const points = pointsOf(context)
  if (points === null) return null
  let own = 0
  for (let at = 1; at < points.length; at += 1) if (points[at] > points[own]) own = at
  return { own, points: points[own] }
}`

function runsOf(sandbox: Sandbox, weights: string, rows: readonly Row[]): IntentsResult['run'] {
  const code = withWeights([pointsSource(weights), piecesSource({ recent: false }), REFLEX].join('\n'), weights)
  const runs = rows.flatMap(({ saw }) => {
    const { value, fuel, duration_us, reason, error } = sandbox.run({ hash: 'intents', code }, saw)
    // A busy machine, not the program, used up the time of the clock.
    if (reason === 'limit' && error?.endsWith(' ms')) return []
    if (value === null) throw new Error(`a run ended in ${reason}: ${error}`)
    return [{ fuel, duration_us }]
  })
  const sorted = (of: (run: (typeof runs)[number]) => number) => runs.map(of).sort((one, other) => one - other)
  const times = sorted(({ duration_us }) => duration_us)
  const fuels = sorted(({ fuel }) => fuel)
  const middle = Math.floor(runs.length / 2)
  return { us: times[middle] ?? 0, most_us: times.at(-1) ?? 0, fuel: fuels[middle] ?? 0, most_fuel: fuels.at(-1) ?? 0 }
}

export const INTENTS_HEADER = `| messages | taught | asked | bound | decided | right | foreign ones decided | bytes | fit | longest step | run | fuel |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`

/** A row of the table for each bound. DIR holds the files as their repositories have them. */
export function measureIntents(name: string, directory: string, sandbox: Sandbox): string {
  const load = sets[name]
  if (!load) throw new Error(`there are no messages ${name}: one of ${intentNames.join(', ')}`)
  const { taught, asked, foreign, shares, bytes, fit_ms, longest_ms, run } = resultOf(sandbox, load(directory))
  const percent = (part: number, of: number): string => (of === 0 ? '–' : `${((part / of) * 100).toFixed(1)} %`)
  return shares
    .map(({ bound, decided, right, foreign: wrong }) => {
      const found = [taught, asked, bound, percent(decided, asked), percent(right, decided), percent(wrong, foreign)]
      const cost = [
        bytes,
        `${(fit_ms / 1000).toFixed(1)} s`,
        `${longest_ms} ms`,
        `${run.us} to ${run.most_us} µs`,
        `${run.fuel} to ${run.most_fuel}`,
      ]
      return `| ${[name, ...found, ...cost].join(' | ')} |`
    })
    .join('\n')
}

const sets: Record<string, (directory: string) => Intents> = {
  banking,
  clinc,
  snips: (directory) => halves(directory, 'SNIPS', 'snips-intents.tsv'),
  sms: (directory) => halves(directory, 'SMS', 'sms-spam.tsv'),
}

export const intentNames = Object.keys(sets)

type Named = readonly [text: string, name: string]

/** The same order in each run, without a class that comes first. */
function shuffled(rows: readonly Named[]): Named[] {
  const drawn = rows.map((row, index) => ({ row, draw: drawOf(`order ${index} ${row[0]}`) }))
  return drawn.sort((one, other) => one.draw - other.draw).map(({ row }) => row)
}

function messagesOf(name: string, parts: { taught: readonly Named[]; asked: readonly Named[]; foreign?: readonly Named[] }): Intents {
  const names = new Map<string, number>()
  for (const [, own] of parts.taught) if (own !== OUT && !names.has(own)) names.set(own, names.size)
  const of = (rows: readonly Named[] = []): Message[] => rows.map(([text, own]) => ({ text, own: names.get(own) ?? -1 }))
  return { name, classes: names.size, taught: of(parts.taught), asked: of(parts.asked), foreign: of(parts.foreign) }
}

const OUT = 'oos'
const read = (directory: string, file: string): string => readFileSync(join(directory, file), 'utf8')

/** Columns `text,category`; a text with commas or quotes is quoted, and may have lines. */
function rowsOfCsv(csv: string): Named[] {
  const rows = csv.matchAll(/^(?:"((?:[^"]|"")*)"|([^",\n]*)),(\w+\??)\r?$/gm)
  return Array.from(rows, ([, quoted, plain = '', own = '']): Named => [quoted?.replaceAll('""', '"') ?? plain, own]).slice(1)
}

function banking(directory: string): Intents {
  const taught = shuffled(rowsOfCsv(read(directory, 'banking77-train.csv'))).slice(0, MOST_TAUGHT)
  return messagesOf('BANKING77', { taught, asked: rowsOfCsv(read(directory, 'banking77-test.csv')) })
}

function clinc(directory: string): Intents {
  const data = JSON.parse(read(directory, 'clinc-full.json')) as Record<'train' | 'test' | 'oos_train' | 'oos_test', Named[]>
  const taught = shuffled([...data.train, ...data.oos_train]).slice(0, MOST_TAUGHT)
  return messagesOf('CLINC150', { taught, asked: data.test, foreign: data.oos_test })
}

function halves(directory: string, name: string, file: string): Intents {
  const lines = read(directory, file)
    .split(/\r?\n/)
    .filter((line) => line !== '')
  const rows = lines.map((line): Named => {
    const [own = '', text = ''] = line.split('\t')
    return [text, own]
  })
  return messagesOf(name, { taught: rows.slice(0, rows.length / 2), asked: rows.slice(rows.length / 2) })
}
