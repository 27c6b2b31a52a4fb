import type { BareClient, ReflexClient, SandboxClient } from './clients.ts'

export type Bench = {
  reflex: ReflexClient
  bare: BareClient
  /** Starts the sandbox's own server on first use. */
  sandbox: () => Promise<SandboxClient>
  /** Starts another Reflex, with these variables, and with the rows in D1 that the SQL stores. */
  another: (vars: Record<string, string>, sql?: string) => Promise<ReflexClient>
  /** The number of events in a sample: fewer with `--quick`. */
  count: (full: number) => number
  progress: (text: string) => void
}

/** A side of a comparison, ready to be measured. Each call of `measure` is one sample. */
export type Side = { measure: () => Promise<number>; close?: () => Promise<void> }
type Unit = 'events/s' | 'transfers/s' | 'ms' | 'µs' | 'MB'

/**
 * The target of the ratio to the bare loop; of the value itself if `absolute`, or without a bare
 * loop.
 */
export type Figure = {
  name: string
  what: string
  unit: Unit
  target: ({ at_least: number } | { at_most: number }) & { absolute?: true }
  /**
   * The worst ratio that CI accepts: about three times worse than measured, so that only a change
   * of the code passes it, and not a busy machine. For figures with a bare loop.
   */
  worst?: number
  ours: (reflex: ReflexClient, bench: Bench) => Promise<Side>
  bare?: (bench: Bench) => Promise<Side>
}

/** Samples of each side, measured in turns because the speed of a machine drifts. */
export type Samples = { ours: number[]; bare: number[]; before: number[] }
export type Line = {
  name: string
  what: string
  unit: Unit
  ours: number
  bare: number | null
  ratio: number | null
  /** The same figure of the other checkout. */
  before: number | null
  target: string
  ok: boolean
  /** False if the ratio is worse than the worst one that CI accepts, or was not measured. */
  acceptable: boolean
  samples: Samples
  /** Why it could not be measured. */
  error?: string
}

type Run = { before: ReflexClient | null; bench: Bench; runs: number }

/** Measures all sides in turns, after one run of each that does not count. */
export async function measureFigure(figure: Figure, { before, bench, runs }: Run): Promise<Line> {
  const samples: Samples = { ours: [], bare: [], before: [] }
  const sides: [keyof Samples, Side][] = []
  try {
    sides.push(['ours', await figure.ours(bench.reflex, bench)])
    if (figure.bare) sides.push(['bare', await figure.bare(bench)])
    if (before) sides.push(['before', await figure.ours(before, bench)])
    for (let run = 0; run <= runs; run += 1) {
      bench.progress(run === 0 ? 'warming up' : `run ${run} of ${runs}`)
      for (const [name, side] of sides) {
        const value = await side.measure()
        if (run > 0) samples[name].push(value)
      }
    }
    for (const [, side] of sides.splice(0)) await side.close?.()
    return lineOf(figure, samples)
  } catch (error) {
    // The other figures are measured all the same.
    for (const [, side] of sides) await side.close?.().catch(() => {})
    return {
      ...lineOf(figure, samples),
      ok: false,
      acceptable: figure.worst === undefined,
      error: error instanceof Error ? error.message : String(error),
    }
  }
}

/** The median of the ratios of pairs: a slow machine slows both of a pair. */
export function lineOf({ name, what, unit, target, worst }: Omit<Figure, 'ours' | 'bare'>, samples: Samples): Line {
  const pairs = samples.bare.map((bare, index) => (samples.ours[index] ?? Number.NaN) / bare)
  const ratio = pairs.length > 0 ? median(pairs) : null
  const ours = median(samples.ours)
  const is_of_ratio = ratio !== null && !target.absolute
  const reached = is_of_ratio ? ratio : ours
  const ok = 'at_least' in target ? reached >= target.at_least : reached <= target.at_most
  const acceptable = worst === undefined || (ratio !== null && ('at_least' in target ? ratio >= worst : ratio <= worst))
  const text = ('at_least' in target ? `≥ ${target.at_least}` : `≤ ${target.at_most}`) + (is_of_ratio ? '' : ` ${unit}`)
  const known = (values: number[]) => (values.length > 0 ? median(values) : null)
  const sides = { ours, bare: known(samples.bare), before: known(samples.before) }
  return { name, what, unit, ...sides, ratio, target: text, ok, acceptable, samples }
}

export function figureTable(lines: readonly Line[]): string {
  const compared = lines.some(({ before }) => before !== null)
  const head = ['figure', 'ours', 'bare', 'ratio', 'target', '', ...(compared ? ['before'] : [])]
  const rows = lines.map(({ name, what, unit, ours, bare, ratio, before, target, ok, error }) => [
    `${name}: ${what}`,
    `${number(ours)} ${unit}`,
    bare === null ? '' : `${number(bare)} ${unit}`,
    ratio === null ? '' : ratio.toFixed(2),
    target,
    error !== undefined ? 'failed' : ok ? 'ok' : 'missed',
    ...(compared ? [before === null ? '' : `${number(before)} ${unit}`] : []),
  ])
  const failures = lines.flatMap(({ name, error }) => (error === undefined ? [] : [`${name} failed: ${error}`]))
  return [columns([head, ...rows]), ...failures].join('\n')
}

/** The first column is left-aligned, the others are right-aligned. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>((widest, row) => row.map((cell, index) => Math.max(widest[index] ?? 0, cell.length)), [])
  const line = (row: readonly string[]) =>
    row.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join('  ')
  return rows.map((row) => line(row).trimEnd()).join('\n')
}

export const number = (value: number): string => (value >= 100 ? String(Math.round(value)) : value.toFixed(2))

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}
