import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../../cli/sandbox/compile.ts'
import type { Saw } from '../../src/features/learning/episode.ts'
import { packTrees, treesSource } from '../../src/features/learning/reflexes/scorer/tree-pack.ts'
import {
  addTreePoints,
  binsIn,
  fitTrees,
  type FittedTrees,
  mostPoints,
  quantisedTrees,
} from '../../src/features/learning/reflexes/scorer/trees.ts'
import { learnThenTest, thresholdGrid } from '../../src/evidence/learn-then-test.ts'
import { ContextJson } from '../../src/reflexes/context/context-json.ts'
import { QuickJsSandbox } from '../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../src/reflexes/reflex-context.ts'
import { hashOf } from './draw.ts'
import { fieldsOf, type ServedItem } from './served.ts'

/** `label`: its column, from the end if negative. `nothing`: its value if nothing is done. */
type Table = { file: string; label: number; header: boolean; drop?: readonly number[]; nothing?: string }
const TABLES: Readonly<Record<string, Table>> = {
  mushroom: { file: 'mushroom.csv', label: 0, header: true, nothing: 'e' },
  nursery: { file: 'nursery.csv', label: 8, header: true, nothing: 'not_recom' },
  shuttle: { file: 'shuttle.csv', label: 9, header: true, nothing: '1' },
  kddcup: { file: 'kddcup.csv', label: -1, header: true },
  pendigits: { file: 'lima-pendigits.csv', label: -1, header: true, drop: [0] },
  phishing: { file: 'lima-phishing.csv', label: -1, header: true, drop: [0] },
  stability: { file: 'lima-stability.csv', label: -1, header: true, drop: [0, 13] },
  adult: { file: 'adult.csv', label: -1, header: false, nothing: '<=50K' },
  bank: { file: 'bank.csv', label: 0, header: true, nothing: '0' },
  credit: { file: 'credit.csv', label: -1, header: true, drop: [0], nothing: '0' },
  letter: { file: 'letter.csv', label: 0, header: true },
}

/** `chance`: without a reason. `swapped`: later, the two most frequent ones change places. */
export type Labels = 'real' | 'chance' | 'swapped'
export const tableNames = Object.keys(TABLES)

const TAUGHT = 3200
const LATER = 1200
/** The rows before each share teach trees that decide the rows up to the next. */
const FORWARD = [0.25, 0.4, 0.55, 0.7, 0.85, 1] as const
const ALPHA = 0.01
const DELTA = 0.1
const MOST_POINTS = 127
const SCALES = [20, 100] as const

type Row = { saw: Saw; own: number }

/** The rows of a table in an order that does not depend on them. */
export function rowsOf(name: string, directory: string, kind: Labels): { rows: Row[]; classes: number } {
  const table = TABLES[name]
  if (!table) throw new Error(`there is no table ${name}`)
  const lines = readFileSync(join(directory, table.file), 'utf8').trim().split(/\r?\n/)
  const drawn = lines.slice(table.header ? 1 : 0).map((line, index) => ({ line, draw: hashOf(`${name} ${index}`) }))
  drawn.sort((one, other) => one.draw - other.draw)
  const parsed = drawn.slice(0, TAUGHT + LATER).map(({ line }) => line.split(',').map((part) => part.trim()))
  const labelAt = table.label < 0 ? (parsed[0]?.length ?? 0) + table.label : table.label
  const counts = Map.groupBy(parsed, (parts) => parts[labelAt] ?? '')
  const labels = [...counts.keys()].sort((one, other) => (counts.get(other)?.length ?? 0) - (counts.get(one)?.length ?? 0))
  const fieldsIn = (parts: readonly string[]) =>
    parts.flatMap((part, at): [string, string | number][] => {
      if (at === labelAt || table.drop?.includes(at) === true || part === '' || part === '?') return []
      return [[`f${hashOf(`${name} ${at}`).toString(36)}`, Number.isNaN(Number(part)) ? part : Number(part)]]
    })
  const rows = parsed.map((parts, index): Row => {
    const { content: _, ...sample } = sampleContext.event
    const event = { ...sample, ...Object.fromEntries(fieldsIn(parts)), id: `e${index}`, type: 'row' }
    const saw = { event, recent_events: [event], window: sampleContext.window, scratch: {}, recent_actions: [] }
    return { saw, own: labelled(labels.indexOf(parts[labelAt] ?? ''), index, { classes: labels.length, kind }) }
  })
  return { rows, classes: labels.length }
}

function labelled(own: number, index: number, { classes, kind }: { classes: number; kind: Labels }): number {
  if (kind === 'chance') return hashOf(`label ${index}`) % classes
  return kind === 'swapped' && index >= TAUGHT + LATER / 2 && own < 2 ? 1 - own : own
}

/** A table as events with a tool for each label but the most frequent. */
export const servedTable = (name: string, directory: string, kind: Labels): ServedItem[] =>
  rowsOf(name, directory, kind).rows.map(({ saw, own }) => ({ fields: fieldsOf(saw.event), tool: own === 0 ? null : `t${own}` }))

/** Time of this thread alone: others may share the machine. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

type Known = { trees: FittedTrees; bias: number[]; ms: number; longest: number }

function learn(rows: readonly Row[], classes: number): Known {
  const start = cpuMs()
  const steps = fitTrees({ saws: rows.map(({ saw }) => saw), classOf: rows.map(({ own }) => own), classes })
  let longest = 0
  for (;;) {
    const from = cpuMs()
    const step = steps.next()
    longest = Math.max(longest, cpuMs() - from)
    if (!step.done) continue
    const scale = Math.max(SCALES[0], Math.min(SCALES[1], MOST_POINTS / mostPoints(step.value)))
    const bias = step.value.bias.map((logit) => Math.round(logit * scale))
    return { trees: quantisedTrees(step.value, scale), bias, ms: cpuMs() - start, longest }
  }
}

type Verdict = { score: number; agreed: boolean; untaught: boolean }

function decide({ trees, bias }: Known, { saw, own }: Row): Verdict {
  const bins = binsIn(trees, saw)
  const points = [...bias]
  if (bins !== null) addTreePoints(trees, bins, points)
  const [most = 0, second = 0] = points.toSorted((one, other) => other - one)
  return { score: bins === null ? -1 : most - second, agreed: points.indexOf(most) === own, untaught: bins === null }
}

/** Decisions at the lowest threshold that has at most 1 % wrong: known only afterwards. */
function mostAtBest(verdicts: readonly Verdict[]): number {
  let wrong = 0
  return verdicts
    .toSorted((one, other) => other.score - one.score)
    .reduce((most, { agreed }, index) => {
      if (!agreed) wrong += 1
      return wrong <= (index + 1) * ALPHA ? index + 1 : most
    }, 0)
}

const wasm = compile(readFileSync(join(import.meta.dirname, '../../src/reflexes/engine/sandbox.wasm')))

/** The mean time and the most fuel of a run that adds the points of the trees, and its code. */
function runsOf({ trees, bias }: Known, rows: readonly Row[]): { us: number; fuel: number; code: number; weights: number } {
  const weights = packTrees(trees)
  const code = `const weights = '${weights.replaceAll(/[\n\r'\\]/g, escaped)}'
function reflex(context) {
  const points = [${bias.join(', ')}]
  addTrees(context, points)
  return null
}
${treesSource(trees, 0)}`
  const sandbox = new QuickJsSandbox(wasm, { now: () => 0 })
  const contexts = rows.map(({ saw }) => ContextJson.of({ ...sampleContext, ...saw }))
  sandbox.run({ code, hash: 'trees' }, contexts[0])
  const start = cpuMs()
  const runs = contexts.map((context) => sandbox.run({ code, hash: 'trees' }, context))
  const us = Math.round(((cpuMs() - start) / runs.length) * 1000)
  const failed = runs.find(({ error }) => error !== null)
  if (failed) throw new Error(`a run failed: ${failed.error}`)
  return { us, fuel: Math.max(...runs.map(({ fuel }) => fuel)), code: code.length - weights.length, weights: weights.length }
}

const escaped = (character: string): string => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`

/**
 * Teaches trees 3,200 rows of a public table, and measures them on 1,200 more. A row is an event
 * with meaningless names of fields; its label is a tool, or nothing is done.
 */
export function measureTable(name: string, directory: string, kind: Labels): string {
  const { rows, classes } = rowsOf(name, directory, kind)
  const taught = rows.slice(0, TAUGHT)
  const verdicts = FORWARD.slice(1).flatMap((to, block) => {
    const from = Math.floor(TAUGHT * (FORWARD[block] ?? 1))
    const known = learn(taught.slice(0, from), classes)
    return taught.slice(from, Math.floor(TAUGHT * to)).map((row) => decide(known, row))
  })
  const judged = verdicts.filter(({ untaught }) => !untaught)
  const grid = thresholdGrid(
    judged.map(({ score }) => score),
    100,
  )
  const threshold = learnThenTest(judged, { alpha: ALPHA, delta: DELTA, grid })?.threshold ?? Infinity
  const known = learn(taught, classes)
  const later = rows.slice(TAUGHT).map((row) => decide(known, row))
  const decided = later.filter(({ score, untaught }) => !untaught && score >= threshold)
  const right = (some: readonly Verdict[]): string => percent(some.filter(({ agreed }) => agreed).length, some.length)
  const { us, fuel, code, weights } = runsOf(known, rows.slice(TAUGHT))
  const cells = [
    name,
    classes,
    right(later),
    percent(decided.length, LATER),
    right(decided),
    percent(mostAtBest(later), LATER),
    percent(later.filter(({ untaught }) => untaught).length, LATER),
    `${known.trees.trees.length} of ${known.trees.columns.length}`,
    `${(known.ms / 1000).toFixed(1)} s`,
    `${known.longest.toFixed(1)} ms`,
    `${us} µs`,
    `${Math.round(fuel / 1000)}k`,
    `${(code / 1000).toFixed(1)} + ${(weights / 1000).toFixed(1)} kB`,
  ]
  return `| ${cells.join(' | ')} |`
}

const percent = (part: number, of: number): string => (of === 0 ? '–' : `${((part / of) * 100).toFixed(1)} %`)

export const TABLE_HEADER = `| table | classes | right of all | decided | right | at best | untaught | trees of columns | learning | longest step | run | fuel | code |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |`
