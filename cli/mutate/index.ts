import { type Area, areas, filesOf } from './areas.ts'
import { breaks } from './list.ts'
import { reasonsByHand } from './reasons.ts'
import { keep, LEAST_KILLED, percent, readResults, reasonOf, shareOf, sumOf, type FileResult, type Survivor } from './results.ts'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { apply, type Break } from './apply.ts'

type Mutant = { mutatorName: string; replacement: string; status: string; location: { start: Place; end: Place } }
type Place = { line: number; column: number }
type Report = { files: Record<string, { source: string; mutants: Mutant[] }> }

/**
 * Left out, as the page says: texts, which types check where they are names and people read where
 * they are messages.
 */
const LEFT_OUT = ['StringLiteral']

/** Judges one file by Stryker. The options of it that are not here are its own defaults. */
function runFile(file: string, { tests }: Area): FileResult {
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

/** Limits of a run and of a test: what only takes long on a busy machine is not killed. */
const [MOST_MS, MOST_TEST_MS] = [1_800_000, 300_000]

type BreakVerdict = { killed_by: string } | { survived: true } | { error: string }
type TestReport = { testResults: { name: string; assertionResults: { status: string; fullName: string }[] }[] }

/** Breaks the code at one place after the other, in a copy of the repository. */
function judgeAll(breaks: readonly Break[], told: (one: Break, verdict: BreakVerdict) => void): void {
  const root = copyOfRepository()
  try {
    for (const one of breaks) told(one, judge(root, one))
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** The tracked and new files, beside a link to the same packages. */
function copyOfRepository(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-mutate-'))
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  for (const file of files.trim().split('\n')) if (existsSync(file)) cpSync(file, path.join(folder, file))
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'))
  return folder
}

function judge(root: string, one: Break): BreakVerdict {
  const undo = apply(root, one)
  try {
    // The project of a test is the folder that it is in.
    const projects = new Set(one.tests?.map((file) => `--project=${file.split('/')[1]}`))
    const verdict = one.tests ? run(root, ...projects, ...one.tests) : null
    return verdict ?? run(root, 'related', '--project', 'unit', '--passWithNoTests', one.file) ?? { survived: true }
  } finally {
    undo()
  }
}

/** Null if all tests passed. A run that ends without a failed test is an error, not a kill. */
function run(root: string, ...given: string[]): BreakVerdict | null {
  const report = path.join(root, 'report.json')
  rmSync(report, { force: true })
  const limits = [`--testTimeout=${MOST_TEST_MS}`, `--hookTimeout=${MOST_TEST_MS}`]
  const options = ['--run', '--bail', '1', '--reporter=json', `--outputFile=${report}`, ...limits]
  const { status, stderr, error } = spawnSync('npx', ['vitest', ...given, ...options], {
    cwd: root,
    encoding: 'utf8',
    timeout: MOST_MS,
  })
  if (error) return { killed_by: `no end within ${MOST_MS / 1000} s` }
  if (status === 0) return null
  if (!existsSync(report)) return { error: stderr.slice(-1000) }
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as TestReport
  for (const { name, assertionResults } of testResults)
    for (const { status, fullName } of assertionResults)
      if (status === 'failed') return { killed_by: `${path.relative(root, name)} > ${fullName}` }
  return { error: stderr.slice(-1000) || 'no test failed, and the run did' }
}

// The command `npm run mutate -- ID… | --area NAME… | --file PATH… | --list | --page` breaks the
// code in one place after the other. It says which breaks no test notices: docs/mutation.md.
const [option, ...names] = process.argv.slice(2)

if (option === '--list') list()
else if (option === '--page') keep(readResults())
else if (option === '--area') for (const name of names.length === 0 ? Object.keys(areas) : names) judgeArea(name)
else if (option === '--file') for (const file of names) judgeFile(file)
else judgeBreaks(process.argv.slice(2))

function list(): void {
  for (const [name, { files }] of Object.entries(areas)) console.log(`--area ${name}  ${files.join(' ')}`)
  for (const { id, file, what } of breaks) console.log(`${id}  ${file}  ${what}`)
}

function judgeArea(name: string): void {
  const area = areas[name]
  if (!area) throw new Error(`no area ${name}: there are ${Object.keys(areas).join(', ')}`)
  const files = filesOf(area)
  for (const file of files) judgeOne(name, area, file)
  const results = readResults()
  const judged = Object.entries(results.areas[name] ?? {}).filter(([file]) => files.includes(file))
  keep({ ...results, areas: { ...results.areas, [name]: Object.fromEntries(judged) } })
  const { all, killed, explained, unexplained, share } = sumOf(readResults().areas[name] ?? {})
  const said = `${killed} of ${all} killed (${percent(share)}), ${explained} survived with a reason, ${unexplained} without`
  console.log(`${name}: ${said}`)
  if (share < LEAST_KILLED) process.exitCode = 1
}

function judgeFile(file: string): void {
  const found = Object.entries(areas).find(([, area]) => filesOf(area).includes(file))
  if (!found) throw new Error(`no area has the file ${file}: npm run mutate -- --list`)
  judgeOne(...found, file)
}

/** The result is kept at once: an area takes long. */
function judgeOne(name: string, area: Area, file: string): void {
  const result = runFile(file, area)
  const results = readResults()
  keep({ ...results, areas: { ...results.areas, [name]: { ...results.areas[name], [file]: result } } })
  for (const one of result.survived) {
    const { line, from, to } = one
    const reason = reasonOf({ ...one, file }) ?? 'no reason is listed in cli/mutate/reasons.ts'
    console.log(`survived  ${file}:${line}  ${from}  →  ${to}\n          ${reason}`)
  }
}

function judgeBreaks(asked: readonly string[]): void {
  const unknown = asked.filter((id) => !breaks.some((one) => one.id === id))
  if (unknown.length > 0) throw new Error(`no break ${unknown.join(', ')}: npm run mutate -- --list`)
  const counts = { errors: 0, unexplained: 0 }
  const { by_hand } = readResults()
  const killed = new Set(by_hand.killed)
  const survived = new Set(by_hand.survived)
  judgeAll(
    breaks.filter(({ id }) => asked.length === 0 || asked.includes(id)),
    (one, verdict) => {
      const line = [one.id, one.file, one.what].join('  ')
      if ('error' in verdict) {
        counts.errors += 1
        console.log(`error     ${line}\n          ${verdict.error}`)
        return
      }
      killed.delete(one.id)
      survived.delete(one.id)
      if ('killed_by' in verdict) {
        killed.add(one.id)
        console.log(`killed    ${line}\n          by ${verdict.killed_by}`)
      } else {
        survived.add(one.id)
        const reason = reasonsByHand[one.id]
        if (reason === undefined) counts.unexplained += 1
        console.log(`survived  ${line}\n          ${reason ?? 'no reason is listed in cli/mutate/reasons.ts'}`)
      }
      keep({ ...readResults(), by_hand: { killed: [...killed].toSorted(), survived: [...survived].toSorted() } })
    },
  )
  const share = shareOf(killed.size, survived.size)
  const said = `${killed.size} of ${killed.size + survived.size} that were ever run are killed (${percent(share)})`
  console.log(`${said}; now ${counts.unexplained} survivors without a reason, ${counts.errors} errors`)
  process.exitCode = share >= LEAST_KILLED && counts.unexplained + counts.errors === 0 ? 0 : 1
}
