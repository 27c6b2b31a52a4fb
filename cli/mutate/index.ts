import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { apply, type Break } from './apply.ts'
import { breaks } from './list.ts'
import { survivors } from './survivors.ts'

// The command `npm run mutate [-- ID…]` breaks the code in one place after the other, in a copy of
// the repository, and runs the tests that concern it. A break that no test notices survives.
const LEAST_KILLED = 0.85
const MOST_MS = 600_000

type Verdict = { killed_by: string } | { survived: true } | { error: string }
type Report = { testResults: { name: string; assertionResults: { status: string; fullName: string }[] }[] }

const asked = process.argv.slice(2)
const chosen = breaks.filter(({ id }) => asked.length === 0 || asked.includes(id))
const root = copyOfRepository()
process.on('exit', () => rmSync(root, { recursive: true, force: true }))

/** The tracked and new files, beside a link to the same packages. */
function copyOfRepository(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'reflex-mutate-'))
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  for (const file of files.trim().split('\n')) if (existsSync(file)) cpSync(file, path.join(folder, file))
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'))
  return folder
}

/** Null if all tests passed. A run that ends without a failed test is an error, not a kill. */
function run(...given: string[]): Verdict | null {
  const report = path.join(root, 'report.json')
  rmSync(report, { force: true })
  const options = ['--run', '--bail', '1', '--reporter=json', `--outputFile=${report}`]
  const { status, stderr, error } = spawnSync('npx', ['vitest', ...given, ...options], {
    cwd: root,
    encoding: 'utf8',
    timeout: MOST_MS,
  })
  if (error) return { killed_by: `no end within ${MOST_MS / 1000} s` }
  if (status === 0) return null
  if (!existsSync(report)) return { error: stderr.slice(-1000) }
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
  for (const { name, assertionResults } of testResults)
    for (const { status, fullName } of assertionResults)
      if (status === 'failed') return { killed_by: `${path.relative(root, name)} > ${fullName}` }
  return { error: stderr.slice(-1000) || 'no test failed, and the run did' }
}

function judge(one: Break): Verdict {
  const undo = apply(root, one)
  try {
    const unit = run('related', '--project', 'unit', '--passWithNoTests', one.file)
    if (unit || !one.worker) return unit ?? { survived: true }
    return run('--project', 'worker', ...one.worker) ?? { survived: true }
  } finally {
    undo()
  }
}

const counts = { killed: 0, survived: 0, errors: 0, unexplained: 0 }
for (const one of chosen) {
  const verdict = judge(one)
  const line = [one.id, one.file, one.what]
  if ('killed_by' in verdict) {
    counts.killed += 1
    console.log(`killed    ${line.join('  ')}\n          by ${verdict.killed_by}`)
  } else if ('survived' in verdict) {
    counts.survived += 1
    const reason = survivors[one.id]
    if (reason === undefined) counts.unexplained += 1
    console.log(`survived  ${line.join('  ')}\n          ${reason ?? 'no reason is listed in cli/mutate/survivors.ts'}`)
  } else {
    counts.errors += 1
    console.log(`error     ${line.join('  ')}\n          ${verdict.error}`)
  }
}
const share = counts.killed / (counts.killed + counts.survived)
const { killed, survived, errors, unexplained } = counts
console.log(
  `${killed} of ${killed + survived} killed (${(100 * share).toFixed(1)} %), ${unexplained} survivors without a reason, ${errors} errors`,
)
process.exitCode = share >= LEAST_KILLED && unexplained + errors === 0 ? 0 : 1
