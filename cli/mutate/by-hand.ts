import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { apply, type Break } from './apply.ts'

/** Limits of a run and of a test: what only takes long on a busy machine is not killed. */
const [MOST_MS, MOST_TEST_MS] = [1_800_000, 300_000]

export type BreakVerdict = { killed_by: string } | { survived: true } | { error: string }
type Report = { testResults: { name: string; assertionResults: { status: string; fullName: string }[] }[] }

/** Breaks the code at one place after the other, in a copy of the repository. */
export function judgeAll(breaks: readonly Break[], told: (one: Break, verdict: BreakVerdict) => void): void {
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
  const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report
  for (const { name, assertionResults } of testResults)
    for (const { status, fullName } of assertionResults)
      if (status === 'failed') return { killed_by: `${path.relative(root, name)} > ${fullName}` }
  return { error: stderr.slice(-1000) || 'no test failed, and the run did' }
}
