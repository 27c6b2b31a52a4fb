import { spawn } from 'node:child_process'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { welcome } from '../../../cli/dev/welcome.ts'
import { plainPaint } from '../../../cli/lib/paint.ts'
import { startServer, type LocalServer } from '../../../cli/lib/local-server.ts'
import { documented, type Block } from '../../support/documented.ts'
import { ADMIN_KEY, temporaryState } from '../api.ts'

/** Why a documented command is not run here. A new reason needs a reader's agreement. */
const REASONS = new Set([
  'it needs a Cloudflare account',
  'it needs a server on the internet',
  'it needs another program',
  'it runs until it is stopped',
  'CI runs it',
  'another test runs it',
])

/** The variables that the pages tell their reader to set. */
const VARIABLES = {
  REFLEX_ADMIN_KEY: ADMIN_KEY,
  REFLEX_MODEL: 'offline',
  REFLEX_TOOL_TICKETS: 'Bearer 12345',
  REFLEX_TOOL_TICKETS_HOSTS: 'tickets.example.com',
  REFLEX_WEBHOOK_OPS: 'whsec_dGhlLWtleS1vZi10aGUtZG9jdW1lbnRlZC1ob29r',
  REFLEX_WEBHOOK_OPS_HOSTS: 'hooks.example.com',
  REFLEX_TOOL_FILES: 'Bearer 12345',
  REFLEX_TOOL_FILES_HOSTS: 'mcp.acme.dev',
}

const blocks = await documented('sh')
const run = blocks.filter(({ skipped }) => skipped === null)
const state = await temporaryState()
const folder = path.join(state.directory, 'reader')
let server: LocalServer

beforeAll(async () => {
  server = await startServer({ persist_to: state.directory, migrated: true, vars: VARIABLES })
  await mkdir(path.join(folder, 'bin'), { recursive: true })
  await writeFile(
    path.join(folder, 'bin/reflex'),
    `#!/bin/sh\nexec node --disable-warning=ExperimentalWarning '${path.resolve('cli/reflex.js')}' "$@"\n`,
    {
      mode: 0o755,
    },
  )
  await Promise.all(
    ['package.json', 'cli', 'src', 'node_modules', 'tsconfig.json', 'wrangler.toml'].map((name) =>
      symlink(path.resolve(name), path.join(folder, name)),
    ),
  )
  await cp('examples', path.join(folder, 'examples'), { recursive: true })
})
afterAll(async () => {
  await server?.stop()
  await state.remove()
})

/** The options of bash end a block at its first failure; curl fails where the server refuses. */
const PRELUDE = `set -euo pipefail
curl() { command curl --silent --show-error --fail-with-body --max-time 60 "$@"; }
auth() { curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$@"; echo; }
`

/** The reader pastes what `npm run dev` prints. It sets what the command `reflex` needs, too. */
const pasted = (): string =>
  welcome({ project: folder, url: server.url, key: ADMIN_KEY, own_key: true, state: '.reflex', model: 'offline', paint: plainPaint })
    .filter((line) => /^(?:URL=|KEY=|export )/.test(line))
    .join('\n')

async function bash(code: string): Promise<{ code: number | null; output: string }> {
  const child = spawn('bash', ['-c', `${PRELUDE}${code}`], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${path.join(folder, 'bin')}:${path.dirname(process.execPath)}:${process.env['PATH']}`,
      HOME: folder,
      NO_COLOR: '1',
      REFLEX_URL: '',
      REFLEX_KEY: '',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [printed, errors, exit] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  return { code: exit, output: printed + errors }
}

describe('the documented commands', () => {
  test.each(Object.entries(Object.groupBy(run, ({ page }) => page)))('of %s work', async (_page, own: Block[] = []) => {
    const script = own.map(({ line, first, code }) => `echo "--- line ${line}"\n${first}\n${code}`).join('\n')
    const ended = await bash(`${pasted()}\n${script}`)
    // The output says which command failed.
    expect(ended).toEqual({ code: 0, output: ended.output })
  })

  test('that are not run say why', () => {
    const others = blocks.filter(({ skipped }) => skipped !== null && !REASONS.has(skipped))
    expect(others.map(({ page, line, skipped }) => `${page}:${line}: ${skipped}`)).toEqual([])
  })
})
