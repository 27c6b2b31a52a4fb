import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Area } from './areas.ts'
import type { FileResult, Survivor } from './results.ts'

type Mutant = { mutatorName: string; replacement: string; status: string; location: { start: Place; end: Place } }
type Place = { line: number; column: number }
type Report = { files: Record<string, { source: string; mutants: Mutant[] }> }

/**
 * Left out, as the page says: texts, which types check where they are names and people read where
 * they are messages.
 */
const LEFT_OUT = ['StringLiteral']

/** Judges one file by Stryker. The options of it that are not here are its own defaults. */
export function runFile(file: string, { tests }: Area): FileResult {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-stryker-'))
  const config = path.join(folder, 'config.json')
  const report = path.join(folder, 'report.json')
  const options = {
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'cli/mutate/vitest.config.ts', related: true },
    mutate: [file],
    mutator: { excludedMutations: LEFT_OUT },
    coverageAnalysis: 'perTest',
    // A change of what a module sets up while it loads would need all tests.
    ignoreStatic: true,
    concurrency: Number(process.env.MUTATE_AT_ONCE ?? '2'),
    timeoutMS: 60_000,
    timeoutFactor: 4,
    ignorePatterns: ['dashboard', 'documented', 'coverage'],
    allowConsoleColors: false,
    tempDirName: path.join(folder, 'copy'),
    // TypeScript 7 has no parser for it, and the paths stay as they are.
    tsconfigFile: 'none.json',
    reporters: ['progress-append-only', 'json'],
    jsonReporter: { fileName: report },
    // A second run judges what changed since the first, and what survived where tests came.
    incremental: true,
    incrementalFile: `node_modules/.cache/mutate/${file.replaceAll('/', '-')}.json`,
  }
  writeFileSync(config, JSON.stringify(options))
  try {
    spawnSync('npx', ['stryker', 'run', config], { stdio: 'inherit', env: { ...process.env, MUTATE_TESTS: tests.join(' ') } })
    if (!existsSync(report)) throw new Error(`Stryker wrote no report of ${file}: its own messages are above`)
    return resultOf(JSON.parse(readFileSync(report, 'utf8')) as Report)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function resultOf({ files }: Report): FileResult {
  const all = Object.values(files).flatMap(({ source, mutants }) => mutants.map((mutant) => ({ source, mutant })))
  const count = (...wanted: string[]): number => all.filter(({ mutant }) => wanted.includes(mutant.status)).length
  return {
    killed: count('Killed', 'Timeout', 'RuntimeError', 'CompileError'),
    timed_out: count('Timeout'),
    static: count('Ignored') - all.filter(({ mutant }) => LEFT_OUT.includes(mutant.mutatorName)).length,
    survived: all.filter(({ mutant }) => ['Survived', 'NoCoverage'].includes(mutant.status)).map(survivorOf),
  }
}

const LONGEST = 100

function survivorOf({ source, mutant }: { source: string; mutant: Mutant }): Survivor {
  const { start, end } = mutant.location
  const lines = source.split('\n').slice(start.line - 1, end.line)
  const last = lines.length - 1
  lines[last] = (lines[last] ?? '').slice(0, end.column - 1)
  lines[0] = (lines[0] ?? '').slice(start.column - 1)
  const short = (text: string): string => text.replaceAll(/\s+/g, ' ').trim().slice(0, LONGEST)
  return { line: start.line, from: short(lines.join('\n')), to: short(mutant.replacement) }
}
