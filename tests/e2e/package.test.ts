import { launchChromium } from '../../cli/lib/chromium.ts'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../cli/lib/free-port.ts'
import { ProcessGroup } from '../../cli/lib/process-group.ts'
import { temporaryFolder } from '../../cli/lib/temporary-folder.ts'
import { CHANNELS } from '../../cli/reflex/project/add-channel.ts'
import { rawMail } from '../support/mails.ts'

/** The tests of the tarball, in a project outside the repository that npm installs it into. */
const folder = temporaryFolder('reflex-package-')
const project = path.join(folder.path, 'my-agents')
let tarball = ''

/** The variables that npm sets for a script are about the repository. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:npm_(?!config_(?!local_prefix))|INIT_CWD)/.test(name))),
  NO_COLOR: '1',
  WRANGLER_SEND_METRICS: 'false',
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd, env, maxBuffer: 10_000_000 })
  return stdout
}
const reflexOf = (cwd: string) => (args: readonly string[]) =>
  run(process.execPath, ['--disable-warning=ExperimentalWarning', ...args], cwd)

/** The key that the local server prints after its phases. Rejects if it ends before. */
function keyOf({ child }: ProcessGroup): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let output = ''
  const add = (text: string) => {
    output += text
    const key = /^Migrating: .*^Bundling: .*^KEY=(\S+)$/ms.exec(output)?.[1]
    if (key !== undefined) resolve(key)
  }
  child.stdout?.setEncoding('utf8').on('data', add)
  child.stderr?.setEncoding('utf8').on('data', add)
  child.once('close', () => reject(new Error(`the local server ended:\n${output}`)))
  return promise
}

beforeAll(async () => {
  await run('npm', ['run', '--silent', 'build:package'], '.')
  const name = await run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder.path], '.')
  tarball = path.join(folder.path, name.trim())
  await reflexOf('.')(['cli/reflex.js', 'init', project, '--package', tarball])
  await run('npm', ['install', '--no-audit', '--no-fund'], project)
}, 300_000)
afterAll(() => folder.remove())

test('publint and arethetypeswrong find nothing in the tarball', async () => {
  expect(await run(path.resolve('node_modules/.bin/publint'), ['run', '--strict', tarball], folder.path)).toContain('All good!')
  expect(await run(path.resolve('node_modules/.bin/attw'), ['--profile', 'esm-only', tarball], folder.path)).not.toContain('❌')
})

test('the tarball has at most 2 MB', () => {
  expect(statSync(tarball).size).toBeLessThanOrEqual(2_000_000)
})

test('the tarball has the modules, their types, the migrations and the dashboard, and nothing that belongs to this repository alone', () => {
  const files = readdirSync(path.join(project, 'node_modules/reflex-agents'), { recursive: true, encoding: 'utf8' })
  expect(files.filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.d.ts') && !file.startsWith('templates/'))).toEqual([])
  expect(files).toEqual(
    expect.arrayContaining([
      'LICENSE',
      'CHANGELOG.md',
      'migrations/0000_start.sql',
      'dashboard/dist/index.html',
      'dashboard/dist/docs/quickstart.html',
      'dist/src/package.d.ts',
    ]),
  )
  // A migration among them has the tables of the SSH guard.
  const own = readdirSync('migrations').filter((file) => file.endsWith('.sql') && !file.endsWith('_ssh_guard.sql'))
  expect(files.filter((file) => /^migrations\/.*\.sql$/.test(file)).toSorted()).toEqual(own.map((file) => `migrations/${file}`).toSorted())
})

test('the typed client has each path of the description of the API', () => {
  const declared = readFileSync(path.join(project, 'node_modules/reflex-agents/dist/client/routes.d.ts'), 'utf8')
  const described = readFileSync('tests/golden/wire/openapi.txt', 'utf8').matchAll(/^(\/\S+) \w+ /gm)
  const paths = Array.from(described, ([, one = '']) => one.replaceAll(/\{(\w+)\}/g, ':$1'))
  expect(paths.length).toBeGreaterThan(100)
  expect(paths.filter((one) => !declared.includes(`"${one}"`))).toEqual([])
})

test('what its modules import is installed with it, or named as a peer', () => {
  const installed = path.join(project, 'node_modules/reflex-agents')
  const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as Record<string, Record<string, string>>
  // Only the repository builds the dashboard, by vite. New projects import the package itself.
  const known = new Set(['vite', 'reflex-agents', ...Object.keys({ ...manifest['dependencies'], ...manifest['peerDependencies'] })])
  const modules = readdirSync(path.join(installed, 'dist'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.(?:js|d\.ts)$/.test(file),
  )
  const unknown = modules.flatMap((file) =>
    [
      ...readFileSync(path.join(installed, 'dist', file), 'utf8').matchAll(
        /(?:^import |^import .* from |^} from |^export .* from |\bimport\()['"]((?:@[^/'"]+\/)?[^./'"][^/'"]*)/gm,
      ),
    ]
      .map(([, name = '']) => name)
      .filter((name) => !/^(?:node|cloudflare):/.test(name) && !known.has(name))
      .map((name) => `${file}: ${name}`),
  )
  expect(unknown).toEqual([])
})

test('Node imports the entries that need no Worker', async () => {
  const entries = ['core', 'client', 'wrap', 'wrap/node'].map((name) => `reflex-agents/${name}`)
  writeFileSync(path.join(project, 'entries.js'), `for (const name of ${JSON.stringify(entries)}) console.log(typeof await import(name))\n`)
  expect(await reflexOf(project)(['entries.js'])).toBe('object\n'.repeat(entries.length))
})

const MADE = [
  '.devcontainer/devcontainer.json',
  '.github/workflows/test.yml',
  '.gitignore',
  'README.md',
  'package.json',
  'src/agents/hello.ts',
  'src/index.ts',
  'src/page.ts',
  'src/try.json',
  'tests/hello.test.ts',
  'tsconfig.json',
  'wrangler.toml',
]
function filesIn(made: string): string[] {
  const entries = readdirSync(made, { recursive: true, encoding: 'utf8', withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.map((entry) => path.relative(made, path.join(entry.parentPath, entry.name))).sort()
}

test('the installed command makes the same project', async () => {
  const again = path.join(folder.path, 'again', 'my-agents')
  await reflexOf(project)(['node_modules/reflex-agents/dist/cli/reflex/bin.js', 'init', again, '--package', tarball])
  expect(filesIn(again)).toEqual(MADE)
  for (const name of MADE) expect(readFileSync(path.join(again, name), 'utf8')).toBe(readFileSync(path.join(project, name), 'utf8'))
  await expect(reflexOf(project)(['node_modules/reflex-agents/dist/cli/reflex/bin.js', 'init', again])).rejects.toThrow('is not empty')
})

/** A Node of the machine that is older than the least one, if there is one. */
const older = (process.env['PATH'] ?? '')
  .split(path.delimiter)
  .map((directory) => path.join(directory, 'node'))
  .find((node) => existsSync(node) && Number(execFileSync(node, ['--version'], { encoding: 'utf8' }).slice(1).split('.')[0]) < 22)

test.skipIf(older === undefined)('an older Node makes a project, and hears what brings a newer one; other commands refuse', async () => {
  const made = path.join(folder.path, 'by-older-node')
  const bin = path.join(project, 'node_modules/reflex-agents/dist/cli/reflex/bin.js')
  const said = await run(older ?? '', [bin, 'init', made, '--package', tarball], folder.path)
  expect(said).toContain('npm i -D node@24')
  expect(filesIn(made)).toEqual(MADE)
  await expect(run(older ?? '', [bin, 'scope', 'list'], folder.path)).rejects.toThrow('reflex needs Node 22.14 or later')
})

/** A registry that has our packages, and sends npm on to the configured one for all others. */
async function registry(tarballs: Readonly<Record<string, string>>) {
  const upstream = (await run('npm', ['config', 'get', 'registry'], '.')).trim()
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const [, name = '', file] = /^\/([\w-]+)(\/package\.tgz)?$/.exec(pathname) ?? []
    const packed = tarballs[name]
    if (packed === undefined) return response.writeHead(302, { Location: new URL(pathname.slice(1), upstream).href }).end()
    if (file !== undefined) return response.end(readFileSync(packed))
    const manifest = JSON.parse(readFileSync(path.join(name === 'reflex-agents' ? '.' : 'create', 'package.json'), 'utf8')) as {
      version: string
    }
    const dist = { tarball: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${name}/package.tgz` }
    const body = { name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: { ...manifest, dist } } }
    return response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() }
}

test('npm create reflex-agent makes a project from the registry', async () => {
  const name = (await run('npm', ['pack', '--silent', '--pack-destination', folder.path], 'create')).trim()
  const local = await registry({ 'reflex-agents': tarball, 'create-reflex-agent': path.join(folder.path, name) })
  const options = ['--yes', '--registry', local.url, '--cache', path.join(folder.path, 'cache')]
  try {
    const said = await run('npm', ['create', ...options, 'reflex-agent', 'from-registry', '--', '--template', 'guard'], folder.path)
    expect(said).toContain('Created a project in from-registry')
    expect(filesIn(path.join(folder.path, 'from-registry'))).toEqual(MADE.map((made) => made.replace('hello', 'guard')))
  } finally {
    local.close()
  }
})

test('its types are sound, and git sees neither its keys nor its state', async () => {
  await run('npm', ['run', 'check'], project)
  writeFileSync(path.join(project, '.dev.vars'), 'REFLEX_ADMIN_KEY=secret\n')
  await run('git', ['init', '--quiet'], project)
  const seen = (await run('git', ['ls-files', '--others', '--exclude-standard'], project)).trim().split('\n')
  rmSync(path.join(project, '.dev.vars'))
  expect(seen.filter((file) => !file.startsWith('package-lock'))).toEqual([...MADE, 'entries.js'].toSorted())
})

test("the project's own tests of its deployment pass", async () => {
  expect(await run('npm', ['test'], project)).toMatch(/Tests +2 passed/)
})

test('its deployment passes a dry run', async () => {
  expect(await run('npm', ['run', 'deploy', '--', '--dry-run'], project)).toContain('env.LEARNER (Learner)')
})

test('its local server decides the first event by its agent, and shows the dashboard', async () => {
  const port = await freePort()
  const server = new ProcessGroup('npm', ['run', 'dev', '--', '--port', String(port)], { cwd: project, env })
  try {
    const key = await keyOf(server)
    const response = await fetch(`http://127.0.0.1:${port}/v1/scopes/chat%2Fme/events?wait=outcome`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'ws.message', connection_id: 'me', content: 'hello' }),
    })
    expect(await response.json()).toMatchObject({
      events: [{ status: 'completed', outcome: { by: 'turn', result: { text: expect.any(String) } } }],
    })
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('<!doctype html>')
    const browser = await launchChromium()
    try {
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${port}/try`)
      await page.getByLabel('Key').fill(key)
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('status').filter({ hasText: 'ws.message: I am Ada' }).waitFor()
    } finally {
      await browser.close()
    }
  } finally {
    await server.stop()
  }
})

test('a project with all channels is sound, and answers a recorded mail in its conversation', async () => {
  const made = path.join(folder.path, 'channels')
  await reflexOf(project)(['node_modules/reflex-agents/dist/cli/reflex/bin.js', 'init', made, '--package', tarball])
  await run('npm', ['install', '--no-audit', '--no-fund'], made)
  for (const name of CHANNELS) await run('npx', ['reflex', 'add', 'channel', name], made)
  await run('npm', ['install', '--no-audit', '--no-fund'], made)
  await run('npm', ['run', 'check'], made)
  writeFileSync(path.join(made, '.dev.vars'), `REFLEX_HOOK_EMAIL=whsec_${Buffer.alloc(32, 7).toString('base64')}\n`)
  const port = await freePort()
  const server = new ProcessGroup('npm', ['run', 'dev', '--', '--port', String(port)], { cwd: made, env })
  try {
    const url = `http://127.0.0.1:${port}`
    const headers = { authorization: `Bearer ${await keyOf(server)}`, 'content-type': 'application/json' }
    for (const hook of ['email', 'email-unverified']) {
      const body = readFileSync(path.join(made, `src/channels/${hook}.json`), 'utf8')
      expect((await fetch(`${url}/v1/hooks/${hook}`, { method: 'PUT', headers, body })).status).toBe(200)
    }
    const at = `${url}/cdn-cgi/handler/email?from=ann%2Bshop@example.com&to=shop@acme.test`
    for (const name of ['first', 'forged'] as const) {
      const delivered = await fetch(at, { method: 'POST', body: rawMail(name) })
      expect([delivered.status, await delivered.text()]).toEqual([200, expect.any(String)])
    }
    const conversation = 'ann:2Bshop@example.com/72107cb5a7083976'
    const logOf = async (scope: string) => (await fetch(`${url}/v1/scopes/${encodeURIComponent(scope)}/log?limit=100`, { headers })).text()
    await expect.poll(() => logOf(`email/${conversation}`), { timeout: 20_000 }).toContain('"tool":"email_reply"')
    await expect.poll(() => logOf(`email-unverified/${conversation}`), { timeout: 20_000 }).toContain('"kind":"event-ended"')
    expect(await logOf(`email-unverified/${conversation}`)).not.toContain('email_reply')
  } finally {
    await server.stop()
  }
})
