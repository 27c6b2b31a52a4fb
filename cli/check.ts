import { spawnSync } from 'node:child_process'

// The steps of `npm run check`: what must hold without a test run. It ends at the first step that
// fails. With `--silent` only that step is named.
const STEPS: readonly [name: string, commands: readonly string[]][] = [
  ['documented code', ['node cli/extract-docs.ts']],
  ['types', ['tsc', 'tsc -p dashboard', 'tsc -p examples/clients', 'tsc -p tests/unit/standalone/langchain']],
  ['lint', ['oxlint --deny-warnings']],
  ['English', ['oxlint -c cli/english/oxlintrc.json']],
  ['format', ['oxfmt --check']],
]
const isSilent = process.argv.includes('--silent') || process.env['npm_config_loglevel'] === 'silent'

const secondsSince = (began: number): string => `${((performance.now() - began) / 1000).toFixed(1)} s`

/** The code of the first command that fails, or 0. A command that succeeds prints nothing. */
function codeOf(commands: readonly string[]): number {
  for (const command of commands) {
    const { status, stdout, stderr } = spawnSync(command, { shell: true, encoding: 'utf8' })
    if (status === 0) continue
    process.stderr.write(`${stdout}${stderr}`)
    return status ?? 1
  }
  return 0
}

for (const [name, commands] of STEPS) {
  const began = performance.now()
  if (!isSilent) process.stdout.write(`${name} … `)
  const code = codeOf(commands)
  if (!isSilent) console.log(`${code === 0 ? 'ok' : 'FAILED'}, ${secondsSince(began)}`)
  if (code === 0) continue
  console.error(`npm run check failed at: ${name} (${commands.join('; ')})`)
  process.exit(code)
}
