import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchChromium } from '../../cli/lib/chromium.ts'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { packageFolder } from '../../cli/lib/package.ts'
import { ADMIN_KEY, eventually, temporaryState } from './api.ts'
import { lineTo } from './line.ts'
import { messageOf } from '../../src/base/error-text.ts'
import { gate, scriptedModel } from './scripted-model.ts'

const chatPage = pathToFileURL(join(packageFolder, 'examples/chat.html')).href

const state = await temporaryState()
const model = await scriptedModel(async function* (question) {
  yield `You said ${question}.`
})
let server: LocalServer
let browser: Browser

const start = (port?: number): Promise<LocalServer> =>
  startServer({
    persist_to: state.directory,
    migrated: true,
    vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, ...model.vars },
    ...(port === undefined ? {} : { port }),
  })

beforeAll(async () => {
  browser = await launchChromium()
  server = await start()
})
afterAll(async () => {
  await browser?.close()
  await server?.stop()
  model.stop()
  await state.remove()
})

async function chat(scope: string, name: string, url = server.url): Promise<Page> {
  const page = await browser.newPage()
  await page.goto(chatPage)
  await page.getByLabel('Server').fill(url)
  await page.getByLabel('Key').fill(ADMIN_KEY)
  await page.getByLabel('Scope').fill(scope)
  await page.getByLabel('Your name').fill(name)
  await page.getByRole('button', { name: 'Connect' }).click()
  await connected(page)
  return page
}

const connected = (page: Page): Promise<void> => page.getByText(/^Connected to/).waitFor()
const talk = (page: Page): Promise<string[]> => page.locator('#talk li').allTextContents()
/** Until the page shows these messages and no other, each of them whole. */
async function shows(page: Page, lines: string[]): Promise<void> {
  // Text and class in one look: a message may begin to stream between two.
  const isShown = async () => {
    const shown = await page.evaluate<string[]>(
      `[...document.querySelectorAll('#talk li')].map((item) => item.matches('.streaming') ? '…' : item.textContent)`,
    )
    return JSON.stringify(shown) === JSON.stringify(lines)
  }
  try {
    await eventually(isShown, `the page shows ${lines.join(' | ')}`, 60_000)
  } catch (error) {
    throw new Error(`${messageOf(error)}; it shows ${(await talk(page)).join(' | ')}`, { cause: error })
  }
}

async function say(page: Page, content: string): Promise<void> {
  await page.getByLabel('Message').fill(content)
  await page.getByLabel('Message').press('Enter')
}

type Entry = { seq: number; kind: string; status?: string }
async function logOf(page: Page): Promise<Entry[]> {
  const lines = await page.locator('#log li').all()
  return Promise.all(lines.map(async (line) => JSON.parse((await line.getAttribute('title')) ?? 'null') as Entry))
}

test('a chat streams its answers, and continues after kill -9 and a restart without loss or duplicates', async () => {
  const page = await chat('chat/browser', 'alice')
  const faults: Error[] = []
  page.on('pageerror', (error) => faults.push(error))

  const first = gate()
  model.script = async function* (question) {
    yield 'You said '
    await first.opened
    yield `${question}.`
  }
  await say(page, 'one')
  await page.locator('#talk .streaming', { hasText: /^You said $/ }).waitFor()
  expect(await talk(page)).toEqual(['one', 'You said '])
  first.open()
  await shows(page, ['one', 'You said one.'])
  expect(await page.locator('#talk .waiting').count()).toBe(0)
  await page.locator('#log li', { hasText: 'turn-ended' }).waitFor()

  const never = gate()
  model.script = async function* (question) {
    yield `Half an answer to ${question}, `
    await never.opened
  }
  await say(page, 'two')
  await page.locator('#talk .streaming', { hasText: 'Half an answer' }).waitFor()
  await server.kill9()
  await page.getByText(/trying again in/).waitFor()
  model.script = async function* (question) {
    yield `You said ${question}.`
  }
  server = await start(server.port)
  await connected(page)
  await shows(page, ['one', 'You said one.', 'two', 'You said two.'])

  await say(page, 'three')
  await shows(page, ['one', 'You said one.', 'two', 'You said two.', 'three', 'You said three.'])
  expect(await page.locator('#talk .waiting').count()).toBe(0)
  await eventually(async () => (await logOf(page)).filter(({ kind }) => kind === 'turn-ended').length === 4, 'the last turn has ended')
  const entries = await logOf(page)
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1))
  expect(entries.filter(({ kind }) => kind === 'turn-ended').map(({ status }) => status)).toEqual(['result', 'lost', 'result', 'result'])
  expect(entries.filter(({ kind }) => kind === 'event-ended').map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
  expect(model.asked).toEqual(['one', 'two', 'two', 'three'])
  expect(faults).toEqual([])
  await page.close()
})

test('two people in one scope see each other, and a wrong key gets an error and is not retried', async () => {
  const alice = await chat('chat/two', 'alice')
  const bob = await chat('chat/two', 'bob')
  await say(alice, 'hello')
  await shows(alice, ['hello', 'You said hello.'])
  await shows(bob, ['alice: hello', 'You said hello.'])
  await say(bob, 'hi')
  await shows(alice, ['hello', 'You said hello.', 'bob: hi', 'You said hi.'])
  await shows(bob, ['alice: hello', 'You said hello.', 'hi', 'You said hi.'])

  await bob.getByLabel('Key').fill('wrong')
  await bob.getByRole('button', { name: 'Connect' }).click()
  await bob.getByText(/^401: /).waitFor()
  expect(await bob.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true)
  await Promise.all([alice.close(), bob.close()])
})

test('a message whose acknowledgement is lost is said once, and one that never arrived is sent again', async () => {
  const line = await lineTo(server.port)
  model.asked.length = 0
  const page = await chat('chat/line', 'alice', line.url)
  await say(page, 'one')
  await shows(page, ['one', 'You said one.'])

  line.fault('answers lost')
  await say(page, 'two')
  await eventually(async () => model.asked.includes('two'), 'the scope has the message')
  expect(await page.locator('#talk .waiting').allTextContents()).toEqual(['two'])
  line.fault(null)
  line.cut()
  await shows(page, ['one', 'You said one.', 'two', 'You said two.'])
  await eventually(async () => (await page.locator('#talk .waiting').count()) === 0, 'the message is no longer shown as on its way')

  line.fault('requests lost')
  const { lost } = line
  await say(page, 'three')
  await eventually(async () => line.lost > lost, 'the message is lost')
  line.fault(null)
  line.cut()
  await shows(page, ['one', 'You said one.', 'two', 'You said two.', 'three', 'You said three.'])
  expect(model.asked).toEqual(['one', 'two', 'three'])
  await page.close()
  line.stop()
})

test('the API reference shows each route, needs no other host, and sends a request with a key', async () => {
  const page = await browser.newPage()
  const hosts = new Set<string>()
  const faults: string[] = []
  page.on('request', (request) => void (request.url().startsWith('data:') || hosts.add(new URL(request.url()).origin)))
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  await page.goto(`${server.url}/v1/docs`)
  await page.getByLabel('Key').fill(ADMIN_KEY)
  await page.locator('.operation').first().waitFor()
  expect(await page.locator('.operation').count()).toBeGreaterThan(50)

  await page.getByLabel('Filter').fill('getDetailedHealth')
  const health = page.locator('#getDetailedHealth')
  await health.locator('summary').first().click()
  await health.getByText('Needs a key with the role').waitFor()
  await health.getByRole('button', { name: 'Send' }).click()
  await health.getByText('200 OK').waitFor()

  // A link to a schema opens it.
  await page.goto(`${server.url}/v1/docs#EventRecord`)
  await page.locator('#EventRecord[open] code').getByText('accepted_at').first().waitFor()
  await page.goto(`${server.url}/v1/docs#publishScopeEvents`)
  const sends = page.locator('#publishScopeEvents')
  await page.getByLabel('Key').fill(ADMIN_KEY)
  await sends.getByLabel('scope').fill('chat/reference')
  await sends.getByLabel('wait').fill('outcome')
  await sends.getByRole('button', { name: 'Send' }).click()
  await sends.locator('output').getByText('"status": "completed"').waitFor()
  expect(faults).toEqual([])
  expect([...hosts]).toEqual([server.url])
  await page.close()
})
