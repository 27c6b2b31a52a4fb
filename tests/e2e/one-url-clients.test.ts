import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listen, type SentResponse, type Streamed } from '../../cli/lib/listen.ts'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState, wholeLog } from './api.ts'

const SCRIPTS = path.resolve('tests/e2e/one-url-clients')
/**
 * A folder where the clients are installed that would cost every installation 130 MB, or a package
 * of Python: tests/e2e/one-url-clients/README.md says how.
 */
const folder = process.env['REFLEX_CLIENTS']
const python = folder !== undefined && existsSync(path.join(folder, 'venv')) ? path.join(folder, 'venv/bin/python') : 'python3'
const hasPython = spawnSync(python, ['--version']).status === 0
const CLIENTS = [
  'openai',
  'anthropic',
  'ai',
  'langchain',
  'agents',
  ...(hasPython ? ['python'] : []),
  ...(folder === undefined ? [] : ['mastra', 'python-openai']),
]
const SCOPE = 'key/admin'

type Asked = { stream?: boolean; tools?: unknown[]; messages: { role: string; content: unknown }[] }

/** A script as the model of a provider: it names a team, or calls the tool that it is offered. */
function answerTo({ stream, tools, messages }: Asked): SentResponse | Streamed {
  const said = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content)
  const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Bern"}' } }
  const calls = tools !== undefined && said.includes('weather') && messages.at(-1)?.role !== 'tool'
  const content = said.includes('disk')
    ? 'storage'
    : said.includes('login')
      ? 'security'
      : `said ${JSON.stringify(messages.at(-1)?.content)}`
  const message = { role: 'assistant', content: calls ? null : content, ...(calls && { tool_calls: [{ index: 0, ...call }] }) }
  const finish_reason = calls ? 'tool_calls' : 'stop'
  const about = { id: 'scripted', created: 0, model: 'scripted', usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 } }
  if (stream)
    return { status: 200, events: [{ ...about, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason }] }] }
  return { status: 200, body: { ...about, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }] } }
}

describe('an official client', () => {
  let server: LocalServer
  let state: Awaited<ReturnType<typeof temporaryState>>
  let model: Awaited<ReturnType<typeof listen>>

  beforeAll(async () => {
    state = await temporaryState()
    model = await listen(({ body }) => answerTo(JSON.parse(body) as Asked))
    const vars = {
      REFLEX_ADMIN_KEY: ADMIN_KEY,
      REFLEX_MODEL: 'openai-compatible/scripted',
      OPENAI_COMPATIBLE_BASE_URL: `http://${model.host}/v1`,
      OPENAI_COMPATIBLE_API_KEY: 'none',
    }
    server = await startServer({ persist_to: state.directory, migrated: true, vars })
    // A script finds its packages from where it stands.
    if (folder !== undefined) await copyFile(path.join(SCRIPTS, 'mastra.mjs'), path.join(folder, 'mastra.mjs'))
  })
  afterAll(async () => {
    await server.stop()
    model.stop()
    await state.remove()
  })

  const script = async (name: string, ...given: string[]) => {
    const { url } = server
    const env = {
      ...process.env,
      OPENAI_BASE_URL: `${url}/v1/openai`,
      OPENAI_API_KEY: ADMIN_KEY,
      ANTHROPIC_BASE_URL: `${url}/v1/anthropic`,
      ANTHROPIC_API_KEY: ADMIN_KEY,
    }
    const at = path.join(name === 'mastra' ? (folder ?? '') : SCRIPTS, name)
    const [program, file] = name.startsWith('python') ? [python, `${at}.py`] : [process.execPath, `${at}.mjs`]
    const { stdout } = await promisify(execFile)(program, [file, ...given], { env })
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }
  const newestTrace = async () =>
    String((await wholeLog(server.url, SCOPE)).findLast(({ kind }) => kind === 'event-accepted')?.['trace_id'])

  test.each(CLIENTS)('%s is answered, and its trace has a what-if', async (name) => {
    const lines = await script(name, 'disk full on web-1', 'all')
    console.log(name, JSON.stringify(lines))
    expect(lines[0]).toMatchObject({ text: 'storage' })
    const [answer] = await script(name, 'disk full on web-2')
    const trace_id = await newestTrace()
    // Clients that show headers show the trace.
    expect(answer?.['trace'] ?? trace_id).toBe(trace_id)
    const trace = await ask<object>(server.url, `/v1/traces/${trace_id}?scope=${encodeURIComponent(SCOPE)}`)
    expect(JSON.stringify(trace)).toContain('model.asked')
    const asked = { mode: 'what_if', changes: { model: 'another' } }
    const report = await ask<{ compared: number }>(server.url, `/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(SCOPE)}`, {
      body: asked,
    })
    expect(report.compared).toBeGreaterThan(0)
  })

  const serve = async (count: number) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }
    const by: (string | null)[] = []
    for (let index = 0; index < count; index += 1) {
      const content = `${index % 2 === 0 ? 'disk full' : 'login failed'} on web-${index % 40}`
      const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })
      const response = await fetch(`${server.url}/v1/openai/chat/completions`, { method: 'POST', headers, body })
      await response.json()
      by.push(response.headers.get('x-reflex-decided-by'))
    }
    return by
  }
  /** The log of one more request by a client. */
  const newestOf = async (name: string) => {
    await script(name, 'disk full on web-3')
    const trace = await newestTrace()
    return (await wholeLog(server.url, SCOPE)).filter((entry) => entry['trace_id'] === trace)
  }

  test('each has a first learned decision by its base URL alone, in shadow mode: nobody set anything', async () => {
    await serve(240)
    const learned = () =>
      ask<{ items: { status: string; found: number }[] }>(server.url, `/v1/learn/runs?scope=${encodeURIComponent(SCOPE)}`)
    await eventually(async () => (await learned()).items.some(({ status, found }) => status === 'done' && found > 0), 'learned')
    for (const name of CLIENTS) {
      const entries = await newestOf(name)
      const shadow = entries.find(({ kind, state }) => kind === 'reflex-fired' && state === 'shadow')
      expect({ name, action: shadow?.['action'] }).toMatchObject({ name, action: { action_type: 'reply', content: 'storage' } })
      expect(entries.find(({ kind }) => kind === 'event-ended')?.['outcome']).toMatchObject({ by: 'turn' })
    }
  })

  // Takes 20 to 60 s. One client is answered by what was learned in tests/e2e/one-url.test.ts.
  test.skipIf(folder === undefined)('each is answered without the model once one setting allows it', async () => {
    await ask(server.url, scopePath(SCOPE), { method: 'PATCH', body: { learning: { mode: 'auto' } } })
    let more = 0
    for (; more < 1000 && !(await serve(40)).slice(-4).every((by) => by !== null); more += 40);
    console.log(`answered without the model after ${240 + more} requests and those of the clients`)
    for (const name of CLIENTS) {
      const end = (await newestOf(name)).find(({ kind }) => kind === 'event-ended')
      expect({ name, outcome: end?.['outcome'] }).toMatchObject({ name, outcome: { by: 'reflex' } })
    }
  })
})
