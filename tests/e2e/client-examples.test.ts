import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../cli/lib/chromium.ts'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { packageFolder } from '../../cli/lib/package.ts'
import { messageOf } from '../../src/base/error-text.ts'
import { ADMIN_KEY, ask, call, eventually, scopePath, temporaryState, wholeLog } from './api.ts'
import { lineTo } from './line.ts'
import { gate, scriptedModel } from './scripted-model.ts'

const TYPES: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript' }

const [state, pages] = [await temporaryState(), await temporaryState()]
const echo = async function* (question: string) {
  yield `You said ${question}.`
}
const model = await scriptedModel(echo)
let server: LocalServer
let files: Server
let browser: Browser

const start = (port?: number): Promise<LocalServer> =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, ...model.vars },
    ...(port === undefined ? {} : { port }),
  })

beforeAll(async () => {
  await build({
    configFile: join(packageFolder, 'examples/clients/vite.config.ts'),
    logLevel: 'error',
    build: { outDir: pages.directory, emptyOutDir: true },
  })
  files = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    readFile(join(pages.directory, path)).then(
      (content) => response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(content),
      () => response.writeHead(404).end(),
    )
  }).listen(0, '127.0.0.1')
  await once(files, 'listening')
  browser = await launchChromium()
  server = await start()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  files?.close()
  model.stop()
  await Promise.all([state.remove(), pages.remove()])
})

async function open(name: string, scope: string, url = server.url): Promise<Page> {
  const page = await browser.newPage()
  page.on('pageerror', (error) => {
    throw error
  })
  const given = new URLSearchParams({ url, key: ADMIN_KEY, scope, name: 'alice' })
  await page.goto(`http://127.0.0.1:${(files.address() as AddressInfo).port}/${name}.html#${given.toString()}`)
  return page
}

const list = (page: Page, label: string): Promise<string[]> => page.getByLabel(label, { exact: true }).locator('li').allTextContents()
async function shows(page: Page, label: string, lines: string[]): Promise<void> {
  try {
    await eventually(
      async () => JSON.stringify(await list(page, label)) === JSON.stringify(lines),
      `${label} are ${lines.join(' | ')}`,
      60_000,
    )
  } catch (error) {
    throw new Error(`${messageOf(error)}; they are ${(await list(page, label)).join(' | ')}`, { cause: error })
  }
}
async function say(page: Page, content: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(content)
  await page.getByLabel('Message', { exact: true }).press('Enter')
}
const status = (page: Page, text: string | RegExp): Promise<void> => page.getByRole('status').filter({ hasText: text }).waitFor()

test('useChat streams an answer, completes it after kill -9 of the server, and resumes it after a reload', async () => {
  const scope = 'chat/ai-sdk'
  const page = await open('chat', scope)
  await say(page, 'one')
  await shows(page, 'Messages', ['one', 'You said one.'])
  await status(page, 'ready')

  const never = gate()
  model.script = async function* (question) {
    yield `Half an answer to ${question}, `
    await never.opened
  }
  await say(page, 'two')
  await shows(page, 'Messages', ['one', 'You said one.', 'two', 'Half an answer to two, '])
  await server.kill9()
  model.script = echo
  server = await start(server.port)
  await shows(page, 'Messages', ['one', 'You said one.', 'two', 'You said two.'])
  await status(page, 'ready')

  const rest = gate()
  model.script = async function* (question) {
    yield 'You said '
    await rest.opened
    yield `${question}.`
  }
  await say(page, 'three')
  const past = ['one', 'You said one.', 'two', 'You said two.', 'three']
  await shows(page, 'Messages', [...past, 'You said '])
  await page.reload()
  await shows(page, 'Messages', [...past, 'You said '])
  await status(page, 'streaming')
  rest.open()
  await shows(page, 'Messages', [...past, 'You said three.'])
  await status(page, 'ready')

  const log = await wholeLog(server.url, scope)
  expect(log.filter(({ kind }) => kind === 'event-ended').map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
  expect(model.asked).toEqual(['one', 'two', 'two', 'three'])
  await page.close()
})

test('leaving a chat lets the turn complete, and stopping it cancels the turn', async () => {
  const scope = 'chat/stop'
  const held = gate()
  model.script = async function* (question) {
    yield 'Wait, '
    await held.opened
    yield `${question}.`
  }
  const left = await open('chat', scope)
  await say(left, 'one')
  await shows(left, 'Messages', ['one', 'Wait, '])
  await left.close()
  held.open()
  const ends = async () => (await wholeLog(server.url, scope)).filter(({ kind }) => kind === 'event-ended').map(({ status }) => status)
  await eventually(async () => (await ends()).length === 1, 'the turn has ended')

  const never = gate()
  model.script = async function* () {
    yield 'On and on'
    await never.opened
  }
  const page = await open('chat', scope)
  await shows(page, 'Messages', ['one', 'Wait, one.'])
  await say(page, 'two')
  await shows(page, 'Messages', ['one', 'Wait, one.', 'two', 'On and on'])
  await page.getByRole('button', { name: 'Stop' }).click()
  await status(page, 'ready')
  await eventually(async () => (await ends()).length === 2, 'the event has ended')
  expect(await ends()).toEqual(['completed', 'cancelled'])
  model.script = echo
  await page.close()
})

test('useScope shows a scope by one socket, leaves without cancelling, stops on demand, and resumes without a gap', async () => {
  const scope = 'chat/react'
  const line = await lineTo(server.port)
  const page = await open('scope', scope, line.url)
  // The first page has opened its socket, which is not counted.
  await status(page, /^live/)
  const sockets: string[] = []
  page.on('websocket', (socket) => sockets.push(socket.url()))
  await page.reload()
  await status(page, /^live/)
  await say(page, 'hello')
  await shows(page, 'Events', ['hello: completed'])
  await status(page, /1 turns/)
  expect(sockets).toHaveLength(1)

  const held = gate()
  model.script = async function* () {
    yield 'Slowly'
    await held.opened
  }
  await say(page, 'again')
  await page.getByLabel('Answer in progress').filter({ hasText: 'Slowly' }).waitFor()
  await page.getByRole('button', { name: 'Leave' }).click()
  await page.getByRole('heading', { name: scope }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Return' }).click()
  await shows(page, 'Events', ['hello: completed', 'again: processing'])
  await page.getByRole('button', { name: 'Stop' }).click()
  await shows(page, 'Events', ['hello: completed', 'again: cancelled'])

  model.script = echo
  line.fault('requests lost')
  line.cut()
  await status(page, 'reconnecting')
  await call(server.url, `${scopePath(scope)}/events?wait=outcome`, { body: { type: 'timer.tick', timer_name: 'meanwhile' } })
  line.fault(null)
  line.cut()
  await say(page, 'back')
  await shows(page, 'Events', ['hello: completed', 'again: cancelled', 'timer.tick: ignored', 'back: completed'])
  await eventually(async () => (await list(page, 'Log')).at(-1) === 'event-ended', 'the log is complete')
  const numbers = await page
    .getByLabel('Log', { exact: true })
    .locator('li')
    .evaluateAll((lines) => lines.map((line) => Number(line.getAttribute('value'))))
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
  await page.close()
  line.stop()
})

test('the hooks follow what others do: an event, an approval that is decided, a reflex that is demoted', async () => {
  const page = await open('scope', 'chat/others')
  await status(page, /^live/)
  await ask(server.url, `${scopePath('chat/others')}/events?wait=outcome`, {
    body: { type: 'ws.message', connection_id: 'bob', content: 'from elsewhere' },
  })
  await shows(page, 'Events', ['from elsewhere: completed'])

  await ask(server.url, '/v1/skills', { body: JSON.parse(await readFile('examples/skills/network-block.json', 'utf8')) as object })
  await ask(server.url, '/v1/skills/network.block/state', { body: { state: 'active' } })
  await ask(server.url, '/v1/reflexes', { body: { id: 'greet', code: 'function reflex(context) { return null }', state: 'active' } })
  const propose = async (network: string): Promise<string> => {
    const body = { skill_id: 'network.block', inputs: { network, reason: 'a test' }, why: 'networks that attack' }
    return (await ask<{ approval_id: string }>(server.url, `${scopePath('ssh/react')}/skills/propose`, { body })).approval_id
  }
  const waits = 'network.block: networks that attack Approve Reject'
  const id = await propose('203.0.113.0/24')
  await shows(page, 'Approvals', [waits])
  await shows(page, 'Reflexes', ['greet@1: active'])

  await ask(server.url, `/v1/approvals/${id}/reject`, { body: {} })
  await ask(server.url, '/v1/reflexes/greet/state', { body: { state: 'shadow' } })
  await shows(page, 'Approvals', [])
  await shows(page, 'Reflexes', ['greet@1: shadow'])

  const other = await propose('198.51.100.0/24')
  await shows(page, 'Approvals', [waits])
  await page.getByRole('button', { name: 'Reject' }).click()
  await shows(page, 'Approvals', [])
  expect(await ask(server.url, `/v1/approvals/${other}`)).toMatchObject({ status: 'rejected' })
  await page.close()
})

test('the client without a framework follows a log and waits for an outcome', async () => {
  const scope = 'chat/log'
  const sent = await call(server.url, `${scopePath(scope)}/events?wait=outcome`, {
    body: { type: 'ws.message', connection_id: 'x', content: 'hi' },
  })
  expect(sent?.status).toBe(200)
  const page = await open('log', scope)
  await status(page, 'live')
  await page.getByRole('button', { name: 'Send' }).click()
  await shows(page, 'Outcomes', ['completed after 1 attempt'])
  const log = await wholeLog(server.url, scope)
  const lines = log.map(({ seq, kind }) => `${String(seq)} ${String(kind)}\n`).join('')
  await eventually(async () => (await page.getByLabel('Log', { exact: true }).textContent()) === lines, 'the page shows the whole log')
  await page.close()
})
