import { execFile, type ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { fileStorage } from '../../src/standalone/node/index.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState, wholeLog } from './api.ts'
import { reflex, reflexHere, type Ran } from './command-line.ts'

const state = await temporaryState()
const folder = await mkdtemp(path.join(state.directory, 'cli-'))
let server: LocalServer
let env: Record<string, string>

beforeAll(async () => {
  server = await startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, REFLEX_MODEL: 'offline' },
  })
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
/** In a process of its own, as a person runs it. */
const spawned = (args: readonly string[], given: Given = {}): Promise<Ran> => reflex(args, { ...given, env: { ...env, ...given.env } })
/** In this process where the command reads no input, and is not interrupted. */
const run = (args: readonly string[], given: Given = {}): Promise<Ran> =>
  given.input === undefined && !given.onStart ? reflexHere(args, { ...env, ...given.env }) : spawned(args, given)
const lines = ({ stdout }: Ran): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))

function succeeded(ran: Ran): Ran {
  if (ran.code !== 0) throw new Error(`it ended with ${ran.code}: ${ran.stderr}${ran.stdout}`)
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
  const unknown = await spawned(['scope', 'list'], bare)
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('reflex login') })

  const wrong = await spawned(['login', '--url', server.url], { ...bare, input: 'no-such-key\n' })
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('401') })
  const login = succeeded(await spawned(['login', '--url', `${server.url}/`, '--profile', 'local'], { ...bare, input: `${ADMIN_KEY}\n` }))
  const stored = path.join(folder, 'config', 'reflex', 'profiles.json')
  expect(((await stat(stored)).mode & 0o777).toString(8)).toBe('600')
  expect(login.stdout + login.stderr + wrong.stderr).not.toMatch(/e2e-admin-key|no-such-key/)
  expect(JSON.parse(succeeded(await spawned(['scope', 'list', '--json'], bare)).stdout)).toMatchObject({ next_cursor: null })

  // The key of a profile is not sent to another server.
  expect(await spawned(['scope', 'list', '--url', 'http://127.0.0.1:1'], bare)).toMatchObject({ code: 2 })
  succeeded(await spawned(['logout'], bare))
  expect(await readFile(stored, 'utf8')).not.toContain(ADMIN_KEY)
})

test('wrong usage ends with 2, a failure with 1, and both say what to do', async () => {
  expect(await spawned(['scope', 'shwo', 'a'])).toMatchObject({ code: 2, stderr: expect.stringContaining('show') })
  expect(await spawned(['events', 'list', '--limit', '0'])).toMatchObject({ code: 2 })
  expect(await spawned(['events', 'show', 'no-such-event'])).toMatchObject({ code: 1, stderr: expect.stringContaining('was not found') })
  const away = await spawned(['scope', 'list'], { env: { REFLEX_URL: 'http://127.0.0.1:1' } })
  expect(away).toMatchObject({ code: 1, stderr: expect.stringContaining('reflex doctor') })
  expect(await spawned(['--help'])).toMatchObject({ code: 0, stdout: expect.stringContaining('doctor') })
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

  // An event is not valid, which ends the sending there.
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

test('standard input is sent as it comes, and repeated safely after Ctrl-C', async () => {
  const scope = 'chat/cli-live'
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { consumer: 'pull' } })
  const [first, second] = [jsonLines([message('1')]), jsonLines([message('2')])]
  const send = ['events', 'send', '--scope', scope, '--id-prefix', 'live']
  // The input stays open, so the process waits for more.
  const stopped = await run(send, {
    input: first,
    isOpen: true,
    onStart: (child) =>
      void eventually(async () => (await idsIn(scope)).length === 1, 'it is sent', 60_000).then(() => child.kill('SIGINT')),
  })
  // The scope may have it before the command has the answer.
  const said = expect.stringMatching(/^Stopped after (?:1 event|0 events; 1 more may have been accepted)\. /m)
  expect(stopped).toMatchObject({ code: 130, stderr: said })
  expect(await json(send, { input: first + second })).toMatchObject({ sent: 2 })
  await eventually(async () => (await idsIn(scope)).length >= 2, 'the second is there')
  expect(await idsIn(scope)).toEqual(['live-1', 'live-2'])
})

test('an event is sent and its outcome shown; a failed one ends with 1', async () => {
  const sent = await run(['events', 'send', '--scope', 'chat/cli-wait', '--data', JSON.stringify(message('hello')), '--wait', '--json'])
  expect(lines(succeeded(sent))).toMatchObject([{ status: 'completed', scope: 'chat/cli-wait' }])
  const refused = await run(['events', 'send', '--scope', 'chat/cli-wait', '--data', '{"type":"no.type"}', '--wait'])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('unknown type "no.type"; known: ') })
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

test('an incident is one file, with its traces, receipts, alerts and dead letters', async () => {
  const scope = 'chat/cli-incident'
  for (const content of ['one', 'two'])
    succeeded(await run(['events', 'send', '--scope', scope, '--data', JSON.stringify(message(content)), '--wait']))
  const traces = async () => (await json<{ items: object[] }>(['trace', 'list', '--scope', scope])).items.length
  await eventually(async () => (await traces()) === 2, 'D1 has both traces')
  const output = await file('incident.json', '')
  const answer = await json(['trace', 'bundle', '--scope', scope, '--since', '1h', '--output', output])
  expect(answer).toMatchObject({ traces: 2, has_more: false, by_status: { ok: 2 } })
  const bundle = JSON.parse(await readFile(output, 'utf8')) as { traces: { recording: object }[] }
  expect(bundle).toMatchObject({ schema: 'reflex/incident@1', scope, alerts: expect.any(Array), dead_letters: [] })
  // Each recording is a file that the server replays.
  for (const { recording } of bundle.traces)
    expect(await ask(server.url, '/v1/replay', { body: recording })).toMatchObject({ equivalent: true })
  const none = await run(['trace', 'bundle', '--scope', 'chat/no-incident', '--output', output])
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('No trace of chat/no-incident') })
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
  expect(await run(['scope', 'tail', 'chat/nobody', '--no-follow'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'The log of chat/nobody has no entry yet.\n',
  })
  const tail = succeeded(await run(['scope', 'tail', scope, '--no-follow', '--kind', 'turn-started,turn-ended', '--json']))
  expect(lines(tail)).toMatchObject([{ kind: 'turn-started' }, { kind: 'turn-ended' }])
  expect(await json(['scope', 'context', scope])).toMatchObject({ scope })
  expect(await json(['scope', 'cancel', scope])).toMatchObject({ cancelled: false })
  expect((await run(['scope', 'show', scope])).stdout).toContain('context_limit')
  await eventually(async () => (await run(['scope', 'list'])).stdout.includes(scope), 'the scope is listed')
  expect(await run(['scope', 'show', 'chat/cli-skope', '--json'])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/no scope chat\/cli-skope.*\nDid you mean .*chat\/cli-scope/),
  })
})

test('keys are created into a file, listed and revoked', async () => {
  const output = path.join(folder, 'viewer.key')
  const created = await json<{ id: string }>(['keys', 'create', 'ci', '--role', 'viewer', '--scope', 'chat/*', '--output', output])
  const key = (await readFile(output, 'utf8')).trim()
  expect(JSON.stringify(created)).not.toContain(key)
  expect(await run(['scope', 'set', 'chat/a', 'when=null'], { env: { REFLEX_KEY: key } })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('an admin sees those of each key with reflex keys list'),
  })
  expect((await run(['keys', 'list'])).stdout).toContain(created.id)
  succeeded(await run(['keys', 'revoke', created.id]))
  expect(await run(['scope', 'list'], { env: { REFLEX_KEY: key } })).toMatchObject({ code: 1, stderr: expect.stringContaining('401') })
})

test('a metric is shown over time, and an unknown one is refused', async () => {
  expect(await json(['stats', 'turns', '--bucket', 'minute'])).toMatchObject({ metric: 'turns', unit: 'count', series: [{ label: null }] })
  expect((await run(['stats', 'turns', '--by', 'scope'])).stdout).toContain('TREND')
  expect(await run(['stats', 'no-metric'])).toMatchObject({ code: 2 })
})

test('doctor checks the server, and fails for a wrong key or address', async () => {
  type Report = { ok: boolean; checks: { name: string; level: string }[] }
  const { ok, checks } = await json<Report>(['doctor'])
  expect(ok).toBe(true)
  const names = ['connection', 'key', 'database', 'queue', 'model', 'bindings', 'migrations', 'secrets', 'clock', 'inboxes']
  expect(checks.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  expect(checks.filter(({ level }) => level === 'failed')).toEqual([])
  expect(await run(['doctor'], { env: { REFLEX_KEY: 'wrong' } })).toMatchObject({ code: 1, stdout: expect.stringContaining('✗ key') })
  expect(await spawned(['doctor'], { env: { REFLEX_URL: 'http://127.0.0.1:1' } })).toMatchObject({ code: 1 })
})

test('reflexes are pushed, tested on this machine and on the server, promoted and pulled', async () => {
  const code = `function reflex(context) { return context.event.content === 'hi' ? { action_type: 'reply', content: 'Hello!' } : null }\n`
  const source = await file('cli-greet.js', code)
  const hi = ['--event', JSON.stringify({ type: 'ws.message', content: 'hi' })]
  expect(await json(['reflex', 'test', source, ...hi])).toMatchObject({ ok: true, action: { content: 'Hello!' } })
  expect(await run(['reflex', 'test', source, ...hi, '--expect', 'null'])).toMatchObject({ code: 1 })
  expect(await run(['reflex', 'test', await file('bad.js', 'function reflex() { return eval("1") }')])).toMatchObject({ code: 1 })

  expect(await json(['reflex', 'push', source])).toMatchObject({ id: 'cli-greet', version: 1, state: 'draft' })
  const remote = ['reflex', 'test', 'cli-greet', ...hi, '--expect', '{"content":"Hello!"}']
  expect(await json(remote)).toMatchObject({ ok: true, reason: 'fired' })
  expect(await json(['reflex', 'promote', 'cli-greet'])).toMatchObject({ state: 'shadow' })
  expect(await json(['reflex', 'promote', 'cli-greet', '--reason', 'tested'])).toMatchObject({ state: 'active' })
  expect(await run(['reflex', 'promote', 'cli-greet'])).toMatchObject({ code: 2 })
  expect(succeeded(await run(['reflex', 'pull', 'cli-greet'])).stdout).toBe(code)
  expect((await run(['reflex', 'list', '--state', 'active'])).stdout).toContain('cli-greet')
  expect((await run(['reflex', 'templates'])).code).toBe(0)

  const evaluated = ['reflex', 'evaluate', 'cli-greet', '--scope', 'chat/cli-wait', '--window', '1h']
  expect(await json(evaluated)).toMatchObject({ ok: true, fires: 0 })
  expect(await run([...evaluated, '--min-agreement', '0.9'])).toMatchObject({ code: 1 })
})

test('a skill is checked, pushed, activated, tried, proposed and approved', async () => {
  const scope = 'ssh/cli'
  const manifest = 'examples/skills/network-block.json'
  expect(await run(['skill', 'test', manifest])).toMatchObject({ code: 0 })
  const broken = await file('broken.json', JSON.stringify({ id: 'x y', version: '1' }))
  expect(await run(['skill', 'test', broken])).toMatchObject({ code: 1, stdout: expect.stringContaining('version') })
  succeeded(await run(['skill', 'push', manifest]))
  succeeded(await run(['skill', 'activate', 'network.block', '--reason', 'tested']))
  expect((await run(['skill', 'list', '--state', 'active'])).stdout).toContain('network.block')

  const inputs = ['--inputs', JSON.stringify({ network: '203.0.113.0/24', reason: 'a test' })]
  // It needs an approval, so the gate does not allow it as it is.
  const tried = await run(['skill', 'test', 'network.block', '--scope', scope, ...inputs, '--why', 'networks that attack'])
  expect(tried).toMatchObject({ code: 1, stdout: expect.stringContaining('needs_approval') })
  const refused = await run(['skill', 'propose', scope, 'network.block', ...inputs, '--why', 'no reason', '--json'])
  const { trace_id } = JSON.parse(refused.stdout) as { trace_id: string }
  const tree = succeeded(await run(['trace', 'show', trace_id, '--scope', scope])).stdout
  expect(tree).toMatch(/refused +score 0 of 1\n.*Score 0, needs 1[\s\S]*→ /)
  const proposed = await run(['skill', 'propose', scope, 'network.block', ...inputs, '--why', 'networks that attack', '--json'])
  const { approval_id } = JSON.parse(proposed.stdout) as { approval_id: string }
  expect((await run(['approvals', 'list'])).stdout).toContain(approval_id)
  expect(await json(['approvals', 'reject', approval_id, '--reason', 'a test'])).toMatchObject({ status: 'rejected' })
  expect(await run(['approvals', 'approve', approval_id])).toMatchObject({ code: 1, stderr: expect.stringContaining('409') })
  expect(await json(['approvals', 'list', '--status', 'rejected'])).toMatchObject({ items: [{ id: approval_id }] })
  expect(await json(['bulletin', 'preview', scope, 'block the attacker'])).toHaveProperty('cards')
})

test('timers are set, listed and removed', async () => {
  expect(await json(['timers', 'set', 'chat/cli-timers', 'hourly', '--every', '3600'])).toMatchObject({ schedule: { every_s: 3600 } })
  expect(await run(['timers', 'set', 'chat/cli-timers', 'hourly', '--every', '1', '--at', 'x'])).toMatchObject({ code: 2 })
  expect((await run(['timers', 'list', 'chat/cli-timers'])).stdout).toContain('hourly')
  succeeded(await run(['timers', 'remove', 'chat/cli-timers', 'hourly']))
  expect(await json(['timers', 'list', 'chat/cli-timers'])).toMatchObject({ items: [] })
})

test('dead letters are listed, shown, returned and discarded', async () => {
  const scope = 'chat/cli-dlq'
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { consumer: 'pull', max_attempts: 1 } })
  await ask(server.url, `${scopePath(scope)}/events`, { body: [message('a', { id: 'a' }), message('b', { id: 'b' })] })
  const fail = async () => {
    type Claimed = { deliveries: { ack_token: string }[] }
    const { deliveries } = await ask<Claimed>(server.url, `${scopePath(scope)}/claim`, { body: {} })
    for (const { ack_token } of deliveries) await ask(server.url, `${scopePath(scope)}/nack`, { body: { ack_token, error: 'it failed' } })
  }
  type Page = { items: { id: string; event_id: string }[] }
  const letters = async (count: number) =>
    eventually(async () => {
      const { items } = await json<Page>(['dlq', 'list', '--scope', scope])
      return items.length === count && items
    }, `there are ${count} dead letters`)
  await fail()
  const [first] = await letters(2)
  expect((await run(['dlq', 'show', first?.id ?? ''])).stdout).toContain('it failed')
  expect(await run(['dlq', 'retry'])).toMatchObject({ code: 2 })
  succeeded(await run(['dlq', 'retry', first?.id ?? '']))
  expect(await json(['dlq', 'retry', '--scope', scope])).toMatchObject({ retried: 1, failed: [] })
  await fail()
  succeeded(await run(['dlq', 'discard', ...(await letters(2)).map(({ id }) => id)]))
  await letters(0)
})

test('the file of a standalone process is read without changing it', async () => {
  const at = path.join(folder, 'agent.reflex')
  const storage = fileStorage(at)
  storage.skills.put({ manifest: JSON.parse(await readFile('examples/skills/network-block.json', 'utf8')), state: 'active' })
  storage.log.append({ at: '2026-11-22T05:00:00.000Z', kind: 'skill-applied', trace_id: 'a'.repeat(32) })
  storage.close()
  expect(await json(['skill', 'list', '--file', at])).toMatchObject({ items: [{ id: 'network.block' }] })
  expect(await json(['approvals', 'list', '--file', at])).toMatchObject({ items: [] })
  expect(await run(['scope', 'tail', '--file', at, '--no-follow'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('skill-applied'),
  })
  expect(await json(['trace', 'list', '--file', at])).toMatchObject({ items: [{ trace_id: 'a'.repeat(32), entries: 1 }] })
  expect((await run(['trace', 'show', 'a'.repeat(32), '--file', at])).stdout).toContain('invoke_workflow')
  expect(await run(['trace', 'show', 'b'.repeat(32), '--file', at])).toMatchObject({ code: 1 })
  expect(await run(['trace', 'list', '--file', at, '--scope', 'x'])).toMatchObject({ code: 2 })
  expect(await run(['skill', 'list', '--file', await file('no.reflex', 'text')])).toMatchObject({ code: 1 })
  const entries = [{ kind: 'skill-applied' }]
  expect(await json(['trace', 'export', 'a'.repeat(32), '--file', at])).toMatchObject({ trace_id: 'a'.repeat(32), entries })
  expect(await json(['trace', 'replay', 'a'.repeat(32), '--file', at])).toMatchObject({ equivalent: null, unknown: [{ kind: 'plan' }] })
})

test('a trace is listed, drawn, exported and replayed, and a changed file is refused', async () => {
  const scope = 'bot/cli-trace'
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { agent: 'prompted', instructions: 'Answer briefly.' } })
  const sent = await run(['events', 'send', '--scope', scope, '--data', JSON.stringify(message('hello')), '--wait', '--json'])
  const { trace_id } = lines(succeeded(sent))[0] as { trace_id: string }
  await eventually(
    async () => (await json<{ items: object[] }>(['trace', 'list', '--scope', scope, '--kind', 'event'])).items.length === 1,
    'D1 has it',
  )
  expect(succeeded(await run(['trace', 'show', trace_id])).stdout).toMatch(/└─ ✓ invoke_agent prompted/)
  expect(await json(['trace', 'show', trace_id])).toMatchObject({ trace_id, status: 'ok' })

  const output = path.join(folder, 'trace.json')
  succeeded(await run(['trace', 'export', trace_id, '--scope', scope, '--output', output]))
  expect(await json(['trace', 'replay', trace_id, '--scope', scope])).toMatchObject({ trace_id, equivalent: true })
  expect(await json(['trace', 'replay', output])).toMatchObject({ trace_id, equivalent: true, divergences: [] })
  await writeFile(output, (await readFile(output, 'utf8')).replace('hello', 'hallo'))
  expect(await run(['trace', 'replay', output])).toMatchObject({ code: 1 })
})

const here = (args: string): Promise<Ran> => run(args.split(' '))
/** The JSON of a command that must succeed. */
const madeHere = async <Result>(args: string): Promise<Result> => JSON.parse(succeeded(await here(`${args} --json`)).stdout) as Result

test('scrip is minted, paid, reserved, posted and voided, and each failure says what to do', async () => {
  for (const scope of ['shop/cli-a', 'shop/cli-b']) await ask(server.url, scopePath(scope), { method: 'PATCH', body: { context_limit: 7 } })
  const [a, b] = ['scope:shop/cli-a', 'scope:shop/cli-b']
  expect(await here(`ledger mint ${a} 1.5`)).toMatchObject({ code: 2, stderr: expect.stringContaining('whole number') })
  expect(await here(`ledger account scope:shop/cli-none`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('opens with its first'),
  })
  expect(await here(`ledger mint scope:shop/cli-none 10`)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('send the same mint again'),
  })
  // A new scope is known to D1 within a second or two.
  await eventually(async () => (await here(`ledger mint ${a} 100`)).code === 0, 'the account opens')
  await eventually(async () => (await here(`ledger pay ${a} ${b} 5 --memo thanks`)).code === 0, 'the other account opens')

  expect(await here(`ledger pay ${a} ${b} 50 --timeout 60`)).toMatchObject({ code: 2, stderr: expect.stringContaining('--pending') })
  const reserve = `ledger pay ${a} ${b} 50 --pending --timeout 3600`
  expect(await madeHere(`${reserve} --id cli-17`)).toEqual({ results: [{ id: 'cli-17', status: 'created', reason: null }] })
  expect((await here(`${reserve} --id cli-17`)).stdout).toMatch(/status +exists/)
  expect(await here(`ledger pay ${a} ${b} 7 --id cli-17`)).toMatchObject({ code: 1, stderr: expect.stringContaining('use another id') })
  await eventually(async () => (await here(`ledger report ${a}`)).stdout.includes('As of transfer'), 'D1 has the transfers')
  expect((await here(`ledger account ${a}`)).stdout).toMatch(/balance +95\navailable +45\n/)
  const poor = await here(`ledger pay ${a} ${b} 46 --id cli-poor`)
  expect(poor).toMatchObject({ code: 1, stdout: expect.stringMatching(/reason +insufficient_funds/) })
  expect(poor.stderr).toMatch(/reflex ledger account[^]*use a new one for the next attempt/)
  succeeded(await here('ledger post cli-17 --amount 30'))
  expect(await here('ledger void cli-17')).toMatchObject({ code: 1, stderr: expect.stringContaining('reflex ledger statement') })
  succeeded(await here(`${reserve} --id cli-18`))
  succeeded(await here('ledger void cli-18'))

  expect((await here('ledger accounts')).stdout).toMatch(/BALANCE +AVAILABLE +ACCOUNT\n[^]*65 +65 +scope:shop\/cli-a/)
  const statement = (await here(`ledger statement ${a}`)).stdout.trim().split('\n')
  expect(statement.map((line) => line.split(/ {2,}/).slice(1, 3))).toEqual([
    ['AMOUNT', 'KIND'],
    ['100', 'single'],
    ['5', 'single'],
    ['50', 'pending'],
    ['30', 'post'],
    ['50', 'pending'],
    ['50', 'void'],
  ])
  expect(await madeHere('ledger audit')).toMatchObject({ ok: true, problems: [] })
  expect((await here('ledger audit')).stdout).toMatch(/ok +true\nminted +\d+/)
})

test('a reflex is listed, found, tried, offered for and sold, and a service is agreed on', async () => {
  const buyer = 'shop/cli-buyer'
  const at = await file(
    'cli-refund.js',
    `function reflex(context) { return context.event.content === 'refund' ? { action_type: 'reply', content: 'Done' } : null }\n`,
  )
  await ask(server.url, scopePath('shop/cli-cook'), { method: 'PATCH', body: { context_limit: 7 } })
  await ask(server.url, `${scopePath(buyer)}/events?wait=outcome`, { body: message('refund') })
  const { key } = await madeHere<{ key: string }>('keys create cli-maker --role operator --scope maker/*')
  succeeded(await run(['push', at, '--state', 'active'], { env: { REFLEX_KEY: key } }))
  await eventually(async () => (await here(`ledger mint scope:${buyer} 100`)).code === 0, 'the account opens')

  type Listed = { listing_id: string }
  const list = 'market list reflex:cli-refund@1 --seller key:cli-maker'
  expect(await here(`${list} --kind copy --price 20 --days 30`)).toMatchObject({ code: 1, stderr: expect.stringContaining('days') })
  expect(await here(`${list} --kind copy --price 20 --expires soon`)).toMatchObject({ code: 2 })
  const licence = await madeHere<Listed>(`${list} --kind licence --price 20 --days 30 --scopes any`)
  const copy = await here(`${list} --kind copy --price 40 --resale --royalty 10 --expires 2099-01-01`)
  expect(copy.stdout).toMatch(/^reflex:cli-refund@1 is listed as \S+ for 40 scrip\.\n$/)
  expect((await here('market search refund --kind licence --max-price 30 --sort price')).stdout).toMatch(/LISTING +PRICE[^]* 20 +licence/)
  expect((await here('market search no-such-thing')).stderr).toBe('No listing matches.\n')
  const shown = (await here(`market show ${licence.listing_id}`)).stdout
  expect(shown).toMatch(/terms +ends after 30 days; for any scopes and patterns\n[^]*Nothing has been measured yet/)
  const tried = succeeded(await here(`market try ${licence.listing_id} --scope ${buyer} --since 1h`)).stdout
  expect(tried).toContain(`On 1 event of ${buyer} it fires 1 time: 0 agree with what was decided, 1 differ`)

  const offer = `market offer ${licence.listing_id} --buyer scope:${buyer}`
  expect((await here(`${offer} --id cli-deal --timeout 600`)).stdout).toMatch(/status +offered\n[^]*answer_by +\d/)
  expect(await here(`${offer} --id cli-deal --price 7`)).toMatchObject({ code: 1, stderr: expect.stringContaining('use another id') })
  expect((await here('market accept cli-deal --reason fine')).stdout).toMatch(
    /status +accepted\n[^]*held +20\ndelivered: reflex:cli-refund@1\n/,
  )
  expect((await here('market refund cli-deal')).stdout).toMatch(/status +refunded\n[^]*held +0\n[^]*no longer in use/)
  for (const [id, end] of [
    ['cli-cancelled', 'cancel'],
    ['cli-rejected', 'reject'],
  ] as const) {
    succeeded(await here(`${offer} --id ${id}`))
    expect((await here(`market ${end} ${id} --reason early`)).stdout).toMatch(/: early\n$/)
  }
  const deals = (await here(`market deals --account scope:${buyer}`)).stdout
  expect(deals).toMatch(/DEAL +STATUS[^]*cli-deal +refunded +20 +0[^]*cli-cancelled +cancelled[^]*cli-rejected +rejected/)
  expect(await madeHere('market deal cli-deal')).toMatchObject({ deal_id: 'cli-deal', status: 'refunded' })
  expect(await here('market deal no-such-deal')).toMatchObject({ code: 1 })
  expect((await here(`market unlist ${licence.listing_id}`)).stdout).toContain('is no longer listed')

  const propose = `market contract propose reflex:cli-refund --proposer scope:${buyer} --counterparty scope:shop/cli-cook --price 1 --limit 10`
  expect((await here(`${propose} --id cli-contract`)).stdout).toMatch(/contract_id +cli-contract\nstatus +proposed/)
  expect((await here('market contract accept cli-contract')).stdout).toMatch(/status +accepted/)
  const dispute = `market contract dispute cli-contract --reason wrong --trace ${'a'.repeat(32)}`
  expect((await here(dispute)).stdout).toMatch(/disputed by scope:shop\/cli-buyer: wrong \(1 trace\)/)
  for (const [id, end] of [
    ['cli-ended', 'end'],
    ['cli-refused', 'reject'],
  ] as const) {
    succeeded(await here(`${propose} --id ${id}`))
    succeeded(await here(`market contract ${end} ${id}`))
  }
  expect((await here(`market contract list --account scope:${buyer}`)).stdout).toMatch(/cli-contract +disputed[^]*0 of 10/)
  expect((await here('market contract show cli-ended')).stdout).toMatch(/status +ended/)
})

/** Each shell's way to complete a word. A shell that is not installed is not tested. */
const shells = {
  bash: `COMP_WORDS=(reflex trace re); COMP_CWORD=2; _reflex; printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: `compadd() { shift; print -l -- "$@" }; words=(reflex trace re); CURRENT=3; _reflex`,
  fish: `complete -C 'reflex trace re'`,
}
const sources = {
  bash: 'source <(reflex completion bash)',
  zsh: 'compdef() { }; source <(reflex completion zsh)',
  fish: 'reflex completion fish | source',
}

const installed = (Object.keys(shells) as (keyof typeof shells)[]).filter((shell) =>
  (process.env['PATH'] ?? '').split(path.delimiter).some((directory) => existsSync(path.join(directory, shell))),
)

test.each(installed)('%s completes commands with the printed script', async (shell) => {
  const command = `'${process.execPath}' --disable-warning=ExperimentalWarning '${path.resolve('cli/reflex.js')}'`
  const define = shell === 'fish' ? `function reflex; ${command} $argv; end` : `reflex() { ${command} "$@"; }`
  const { stdout } = await promisify(execFile)(shell, ['-c', `${define}\n${sources[shell]}\n${shells[shell]}`])
  expect(stdout.trim().split('\n')).toEqual(['receipt', 'replay'])
})
