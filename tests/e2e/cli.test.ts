import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState, wholeLog } from './api.ts'
import { reflex, type Ran } from './command-line.ts'

const state = await temporaryState()
const folder = await mkdtemp(path.join(state.directory, 'cli-'))
let server: LocalServer
let env: Record<string, string>

beforeAll(async () => {
  server = await startServer({ persist_to: state.directory, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, REFLEX_MODEL: 'offline' } })
  env = { REFLEX_URL: server.url, REFLEX_KEY: ADMIN_KEY, XDG_CONFIG_HOME: path.join(folder, 'config'), XDG_STATE_HOME: folder }
})
afterAll(async () => {
  await server?.stop()
  await state.remove()
})

type Given = Parameters<typeof reflex>[1]
/** Runs a command that must succeed, and returns its JSON. */
async function json<Result>(args: readonly string[], given: Given = {}): Promise<Result> {
  return JSON.parse(succeeded(await run([...args, '--json'], given)).stdout) as Result
}
const run = (args: readonly string[], given: Given = {}): Promise<Ran> => reflex(args, { ...given, env: { ...env, ...given.env } })
const lines = ({ stdout }: Ran): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))

function succeeded(ran: Ran): Ran {
  if (ran.code !== 0) throw new Error(`it ended with ${ran.code}: ${ran.stderr}`)
  return ran
}

/** Repeats an act until the process has printed something, and interrupts it then. */
function interruptAtOutput(child: ChildProcess, act: () => Promise<unknown>): void {
  child.stdout?.once('data', () => child.kill('SIGINT'))
  void eventually(async () => child.exitCode !== null || (await act(), false), 'it has printed something', 60_000)
}

async function file(name: string, content: string): Promise<string> {
  const at = path.join(folder, name)
  await writeFile(at, content)
  return at
}

const message = (content: string, more: object = {}) => ({ type: 'ws.message', connection_id: 'cli', content, ...more })
const jsonLines = (values: readonly unknown[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('')
const idsIn = async (scope: string): Promise<string[]> =>
  (await wholeLog(server.url, scope)).flatMap(({ kind, event_ids }) => (kind === 'event-accepted' ? (event_ids as string[]) : []))

test('login stores a profile that only its owner can read, and later commands use it', async () => {
  const bare = { env: { REFLEX_URL: '', REFLEX_KEY: '' } }
  const unknown = await run(['scope', 'list'], bare)
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('reflex login') })

  const wrong = await run(['login', '--url', server.url], { ...bare, input: 'no-such-key\n' })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('401') })
  const login = succeeded(await run(['login', '--url', `${server.url}/`, '--profile', 'local'], { ...bare, input: `${ADMIN_KEY}\n` }))
  const stored = path.join(folder, 'config', 'reflex', 'profiles.json')
  expect(((await stat(stored)).mode & 0o777).toString(8)).toBe('600')
  expect(login.stdout + login.stderr + wrong.stderr).not.toMatch(/e2e-admin-key|no-such-key/)
  expect(await json(['scope', 'list'], bare)).toMatchObject({ next_cursor: null })

  // The key of a profile is not sent to another server.
  expect(await run(['scope', 'list', '--url', 'http://127.0.0.1:1'], bare)).toMatchObject({ code: 2 })
  succeeded(await run(['logout'], bare))
  expect(await readFile(stored, 'utf8')).not.toContain(ADMIN_KEY)
})

test('wrong usage ends with 2, a failure with 1, and both say what to do', async () => {
  expect(await run(['scope', 'shwo', 'a'])).toMatchObject({ code: 2, stderr: expect.stringContaining('show') })
  expect(await run(['events', 'list', '--limit', '0'])).toMatchObject({ code: 2 })
  expect(await run(['events', 'show', 'no-such-event'])).toMatchObject({ code: 1, stderr: expect.stringContaining('was not found') })
  const away = await run(['scope', 'list'], { env: { REFLEX_URL: 'http://127.0.0.1:1' } })
  expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining('reflex doctor') })
  expect(await run(['--help'])).toMatchObject({ code: 0, stdout: expect.stringContaining('doctor') })
})

test('events are sent from files, arrays and standard input, with the given scope and type', async () => {
  const scope = 'chat/cli-send'
  const listed = await file('list.jsonl', jsonLines([message('one', { id: 'one' }), message('two')]))
  const array = await file('array.json', JSON.stringify([message('three'), message('four')], null, 2))
  expect(await json(['events', 'send', listed, array, '--scope', scope])).toEqual({ sent: 4, accepted: 4, duplicates: 0 })
  const bare = jsonLines([{ connection_id: 'cli', content: 'five' }])
  const piped = ['events', 'send', '--scope', scope, '--type', 'ws.message', '--id-prefix', 'pipe']
  expect(await json(piped, { input: bare })).toMatchObject({ sent: 1, accepted: 1 })
  succeeded(await run(piped, { input: bare }))
  await eventually(async () => (await idsIn(scope)).length >= 5, 'the scope has the events')
  const ids = await idsIn(scope)
  expect(ids).toEqual(expect.arrayContaining(['one', 'pipe-1']))
  expect(ids).toHaveLength(5)

  const broken = await file('broken.jsonl', `${JSON.stringify(message('x'))}\n{"type": \n`)
  expect(await run(['events', 'send', broken, '--scope', scope])).toMatchObject({ code: 1, stderr: expect.stringContaining('line 2') })
})

test('an interrupted sending continues where it was, and no event is there twice', async () => {
  const scope = 'chat/cli-resume'
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { consumer: 'pull' } })
  const many = Array.from({ length: 3000 }, (_, index) => message(String(index), { scope }))
  const events = await file('many.jsonl', jsonLines(many))

  // One event is not valid, which ends the sending there.
  await writeFile(events, jsonLines([...many.slice(0, 500), { scope }, ...many.slice(501)]))
  const stopped = await run(['events', 'send', events])
  expect(stopped).toMatchObject({ code: 1 })
  await writeFile(events, jsonLines(many))
  const resumed = succeeded(await run(['events', 'send', events, '--json']))
  expect(JSON.parse(resumed.stdout)).toEqual({ sent: 2500, accepted: 2500, duplicates: 0 })
  expect(resumed.stderr).toContain('first 500 events')
  await eventually(async () => (await idsIn(scope)).length >= 3000, 'the scope has the events')
  expect(new Set(await idsIn(scope)).size).toBe(3000)
})

test('an event is sent and its outcome shown; a failed one ends with 1', async () => {
  const sent = await run(['events', 'send', '--scope', 'chat/cli-wait', '--data', JSON.stringify(message('hello')), '--wait', '--json'])
  expect(lines(succeeded(sent))).toMatchObject([{ status: 'completed', scope: 'chat/cli-wait' }])
  const refused = await run(['events', 'send', '--scope', 'chat/cli-wait', '--data', '{"type":"no.type"}', '--wait'])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('The known types are') })
})

test('events are listed, shown, replayed and followed', async () => {
  const scope = 'chat/cli-list'
  const id = randomUUID()
  succeeded(await run(['events', 'send', '--scope', scope, '--data', JSON.stringify(message('hello', { id })), '--wait']))
  type Page = { items: { id: string }[] }
  await eventually(async () => (await json<Page>(['events', 'list', '--scope', scope, '--since', '10m'])).items.length === 1, 'D1 has it')
  expect(await json(['events', 'show', id, '--scope', scope])).toMatchObject({ id, event: { content: 'hello' } })
  expect(lines(succeeded(await run(['events', 'replay', '--scope', scope])))).toMatchObject([{ id }])
  expect((await run(['events', 'list', '--scope', scope])).stdout).toMatch(new RegExp(`TIME +STATUS.*\n.*${id}`))

  const again = () => ask(server.url, `${scopePath(scope)}/events`, { body: message('again', { id: randomUUID() }) })
  const tailed = await run(['events', 'tail', '--scope', scope, '--json'], { onStart: (child) => interruptAtOutput(child, again) })
  expect(tailed).toMatchObject({ code: 130 })
  expect(lines(tailed)[0]).toMatchObject({ scope, event: { content: 'again' } })
})

test('a scope is shown, configured, followed and cancelled', async () => {
  const scope = 'chat/cli-scope'
  succeeded(await run(['events', 'send', '--scope', scope, '--data', JSON.stringify(message('hello')), '--wait']))
  const prompt = await file('prompt.md', 'Answer in one word.\n')
  succeeded(await run(['scope', 'set', scope, `instructions=@${prompt}`, 'context_limit=7']))
  expect(await json(['scope', 'show', scope])).toMatchObject({
    scope,
    settings: { instructions: 'Answer in one word.\n', context_limit: 7 },
  })
  expect(await run(['scope', 'set', scope, 'no_such_setting=1'])).toMatchObject({ code: 1 })
  const tail = succeeded(await run(['scope', 'tail', scope, '--no-follow', '--kind', 'turn-started,turn-ended', '--json']))
  expect(lines(tail)).toMatchObject([{ kind: 'turn-started' }, { kind: 'turn-ended' }])
  expect(await json(['scope', 'context', scope])).toMatchObject({ scope })
  expect(await json(['scope', 'cancel', scope])).toMatchObject({ cancelled: false })
  expect((await run(['scope', 'show', scope])).stdout).toContain('context_limit')
})

test('keys are created into a file, listed and revoked', async () => {
  const output = path.join(folder, 'viewer.key')
  const created = await json<{ id: string }>(['keys', 'create', 'ci', '--role', 'viewer', '--scope', 'chat/*', '--output', output])
  const key = (await readFile(output, 'utf8')).trim()
  expect(JSON.stringify(created)).not.toContain(key)
  expect(await run(['scope', 'set', 'chat/a', 'when=null'], { env: { REFLEX_KEY: key } })).toMatchObject({ code: 1 })
  expect((await run(['keys', 'list'])).stdout).toContain(created.id)
  succeeded(await run(['keys', 'revoke', created.id]))
  expect(await run(['scope', 'list'], { env: { REFLEX_KEY: key } })).toMatchObject({ code: 1, stderr: expect.stringContaining('401') })
})

test('doctor checks the server, and fails for a wrong key or address', async () => {
  type Report = { ok: boolean; checks: { name: string; level: string }[] }
  const { ok, checks } = await json<Report>(['doctor'])
  expect(ok).toBe(true)
  const names = ['connection', 'key', 'database', 'queue', 'model', 'bindings', 'migrations', 'secrets', 'clock', 'inboxes']
  expect(checks.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  expect(checks.filter(({ level }) => level === 'failed')).toEqual([])
  expect(await run(['doctor'], { env: { REFLEX_KEY: 'wrong' } })).toMatchObject({ code: 1, stdout: expect.stringContaining('✗ key') })
  expect(await run(['doctor'], { env: { REFLEX_URL: 'http://127.0.0.1:1' } })).toMatchObject({ code: 1 })
})
