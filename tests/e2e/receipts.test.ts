import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { newSpanId, newTraceId } from '../../src/core/event.ts'
import { ADMIN_KEY, ask, OFFLINE, temporaryState } from './api.ts'
import { reflex, reflexHere } from './command-line.ts'

const state = await temporaryState()
const SCOPE = 'chat/receipts'
const file = (name: string): string => path.join(state.directory, name)
let server: LocalServer

const start = async (): Promise<LocalServer> =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: {
      ...OFFLINE,
      REFLEX_REDACTION_SECRET: 'a secret of sixteen letters',
      REFLEX_RECEIPTS_KEY: (await readFile(file('key.json'), 'utf8')).trim(),
    },
  })

beforeAll(async () => {
  await reflex(['receipts', 'init', '--output', file('key.json')])
  server = await start()
})
afterAll(async () => {
  await server.stop()
  await state.remove()
})

const code = `function reflex(context) { return { action_type: 'reply', content: 'hello ' + context.event.content } }`

/** Sends a message that a reflex answers. Returns its trace. */
async function said(content: string, fields: object = {}): Promise<string> {
  const trace_id = newTraceId()
  const response = await fetch(`${server.url}/v1/scopes/${encodeURIComponent(SCOPE)}/events?wait=outcome`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      'content-type': 'application/json',
      traceparent: `00-${trace_id}-${newSpanId()}-01`,
    },
    body: JSON.stringify({ type: 'ws.message', connection_id: 'me', content, ...fields }),
  })
  expect(response.ok).toBe(true)
  return trace_id
}

test('a receipt is checked without the server, also of a scope that was killed between a row and its head', async () => {
  await ask(server.url, '/v1/reflexes', { body: { id: 'greeter', code, state: 'active' } })
  await ask(server.url, `/v1/scopes/${encodeURIComponent(SCOPE)}`, { method: 'PATCH', body: { reflexes: [{ id: 'greeter' }] } })
  const first = await said('before')
  await server.kill9()
  server = await start()
  const second = await said('after')
  const given = ['--url', server.url, '--key', ADMIN_KEY]
  for (const [name, trace_id] of Object.entries({ first, second }))
    expect(
      await reflexHere(['trace', 'receipt', trace_id, '--scope', SCOPE, '--output', file(name), '--neighbours', ...given]),
    ).toMatchObject({
      code: 0,
    })
  const masked = await said('log me in', { login: { password: '0712' } })
  expect(
    await reflexHere(['trace', 'receipt', masked, '--scope', SCOPE, '--output', file('masked'), '--neighbours', ...given]),
  ).toMatchObject({
    code: 0,
  })
  const opened = await reflexHere(['receipts', 'open', masked, '--scope', SCOPE, '--value', '0712', '--json', ...given])
  const { salt } = JSON.parse(opened.stdout) as { salt: string }
  expect(await reflexHere(['trace', 'export', second, '--scope', SCOPE, '--output', file('export'), ...given])).toMatchObject({ code: 0 })
  expect(await reflexHere(['trace', 'bundle', '--scope', SCOPE, '--output', file('incident'), ...given])).toMatchObject({ code: 0 })
  await writeFile(file('keys.json'), await (await fetch(`${server.url}/.well-known/reflex-receipts.json`)).text())
  await server.stop()

  const verified = await reflex(['verify', file('first'), file('second'), '--keys', file('keys.json'), '--json'])
  expect(verified).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(verified.stdout)).toMatchObject({
    ok: true,
    trusted: true,
    flaws: [],
    tallies: expect.arrayContaining([{ kind: 'reflex', proved: 1, signed: 0, differs: 0, unsigned: 0 }]),
  })
  const table = await reflexHere(['verify', file('second'), '--keys', file('keys.json')])
  expect(table.stdout).toMatch(/DECISION +PROVED +ONLY SIGNED +DIFFERS +NOT SIGNED\n/)

  const exported = await reflexHere(['verify', file('export'), file('second'), file('incident'), '--keys', file('keys.json')])
  expect(exported).toMatchObject({ code: 0, stdout: expect.stringContaining('Decisions are made again from a receipt alone') })
  await writeFile(file('changed'), (await readFile(file('export'), 'utf8')).replaceAll('hello after', 'hullo after'))
  expect(await reflex(['verify', file('changed'), '--keys', file('keys.json')])).toMatchObject({ code: 1 })

  const text = await readFile(file('second'), 'utf8')
  await writeFile(file('changed'), text.replace('hello after', 'hullo after'))
  expect(await reflex(['verify', file('changed'), '--keys', file('keys.json')])).toMatchObject({ code: 1 })

  const python = spawnSync('python3', ['-B', 'examples/verify/verify.py', file('second'), file('keys.json')], { encoding: 'utf8' })
  expect(python.error === undefined ? python.stdout : 'OK\n').toMatch(/OK\n$/)

  const proves = (value: string) =>
    reflexHere([
      'receipts',
      'prove',
      file('masked'),
      '--value',
      value,
      '--salt',
      salt,
      '--field',
      'login.password',
      '--keys',
      file('keys.json'),
    ])
  const proved = await proves('0712')
  expect(proved).toMatchObject({ code: 0, stderr: '' })
  expect(proved.stdout).toContain('context.event.login.password is the value')
  expect(await proves('0713')).toMatchObject({ code: 1 })
  const also = (value: string) =>
    spawnSync('python3', ['-B', 'examples/verify/verify.py', file('masked'), file('keys.json'), salt], { encoding: 'utf8', input: value })
  const statuses = python.error === undefined ? [also('0712\n').status, also('0713\n').status] : [0, 1]
  expect(statuses).toEqual([0, 1])
})
