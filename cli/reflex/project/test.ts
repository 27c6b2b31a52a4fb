import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Command } from 'commander'
import { CliError } from '../../lib/cli-error.ts'
import { projectFolder } from './folder.ts'

const NOTES = `
Arguments are handed to vitest, such as a file's name or --watch. A project's own
vitest.config.ts is used where there is one; it needs the plugin reflexTest of
reflex-agents/testing/config.`

export function addTest(program: Command): void {
  program
    .command('test [args...]')
    .description('Run the tests of the project in this folder in the runtime of Workers')
    .allowUnknownOption()
    .addHelpText('after', NOTES)
    .action(async (args: string[]) => {
      process.exitCode = await vitest(projectFolder(), args)
    })
}

async function vitest(project: string, args: readonly string[]): Promise<number> {
  const own = readdirSync(project).some((name) => /^vite(?:st)?\.config\./.test(name))
  const built = join(import.meta.dirname, '../../../testing/vitest.config.js')
  const config = existsSync(built) ? built : built.replace(/js$/, 'ts')
  const given = ['run', '--root', project, ...(own ? [] : ['--config', config]), ...args]
  const child = spawn(process.execPath, [vitestScript(project), ...given], { cwd: project, stdio: 'inherit' })
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  return code ?? 1
}

function vitestScript(project: string): string {
  try {
    return join(dirname(createRequire(join(project, 'package.json')).resolve('vitest/package.json')), 'vitest.mjs')
  } catch (error) {
    const needed = 'npm install --save-dev vitest @cloudflare/vitest-plugin'
    throw new CliError(`vitest is not installed in ${project}.`, `Install it: ${needed}`, error)
  }
}
