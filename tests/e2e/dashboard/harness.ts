import axe, { type RunOnly } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { launchChromium } from '../../../cli/lib/chromium.ts'
import { startServer, type LocalServer } from '../../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, OFFLINE, temporaryState } from '../api.ts'
import { demoState } from './seed.ts'

export type Look = { theme?: 'light' | 'dark'; width?: number; key?: string }
/** A page and its faults: errors, blocked resources, and requests to other hosts. */
export type Opened = { page: Page; faults: string[] }

export type Dashboard = {
  url: string
  browser: Browser
  server: () => LocalServer
  /** A page that is signed in, in a session of its own. */
  open: (path: string, look?: Look) => Promise<Opened>
  /** Kills the server as a power cut would; `restart` starts it at the same address. */
  kill: () => Promise<void>
  restart: () => Promise<void>
  close: () => Promise<void>
}

/**
 * A server and one browser for all tests of a file. `demo`: it starts with what `npm run demo`
 * leaves. `seed` fills the server once it is up.
 */
export async function startDashboard({
  demo = false,
  seed,
  more = {},
}: {
  demo?: boolean
  seed?: (server: LocalServer) => Promise<unknown>
  more?: Record<string, string>
} = {}): Promise<Dashboard> {
  const state = await temporaryState(demo ? await demoState() : undefined)
  const start = (port?: number) =>
    startServer({ persist_to: state.directory, migrated: true, vars: { ...OFFLINE, ...more }, ...(port !== undefined && { port }) })
  let server = await start()
  const browser = await launchChromium()
  const close = async () => {
    await browser.close()
    await server.stop()
    await state.remove()
  }
  try {
    await seed?.(server)
  } catch (error) {
    await close()
    throw error
  }
  const { url, port } = server
  return {
    url,
    browser,
    server: () => server,
    open: (path, look) => openPage(browser, url, path, look),
    kill: () => server.kill9(),
    restart: async () => void (server = await start(port)),
    close,
  }
}

/** A page of a server in a session of its own, signed in. */
export async function openPage(browser: Browser, url: string, path: string, { theme = 'light', width = 1440, key = ADMIN_KEY }: Look = {}) {
  const own = await ask<object>(url, '/v1/key', { key })
  const context = await browser.newContext({ colorScheme: theme, viewport: { width, height: 900 }, reducedMotion: 'reduce' })
  // As the sign-in page stores it.
  await context.addInitScript((session) => sessionStorage.setItem('reflex.session', session), JSON.stringify({ key, own }))
  const page = await context.newPage()
  const faults = faultsOf(page, url)
  await page.goto(`${url}${path}`)
  return { page, faults }
}

/** Closes sessions. No route answers a page that is gone. */
export async function closePages(...pages: Page[]): Promise<void> {
  for (const page of pages) {
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await page.context().close()
  }
}

/** `Failed to load resource` is a response that the page handles, such as a 403. */
export function faultsOf(page: Page, url: string): string[] {
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    const isFault = ['error', 'warning'].includes(message.type()) && !message.text().startsWith('Failed to load resource')
    if (isFault) faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:')) faults.push(`request to ${request.url()}`)
  })
  return faults
}

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

const COLOURS = { type: 'rule' as const, values: ['color-contrast'] }

/** The findings of axe on a page as it is: rule, element and reason. */
export async function audit(page: Page, runOnly: RunOnly | string[] = RULES): Promise<string[]> {
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(axe.source)
  return page.evaluate(async (only) => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run({ runOnly: only })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`))
  }, runOnly)
}

const BEYOND = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
/** A theme changes colours alone: the other rules are applied once for each width. */
const looks = [
  { theme: 'dark', width: 1440, rules: COLOURS },
  { theme: 'dark', width: 390, rules: RULES },
  { theme: 'light', width: 390, rules: COLOURS },
  { theme: 'light', width: 1440, rules: RULES },
] satisfies { theme: 'light' | 'dark'; width: number; rules: RunOnly | string[] }[]

/**
 * The flaws of a page as it is, in light and dark, narrow and wide: the findings of axe, and
 * content that is wider than the window.
 */
export async function flawsOf(page: Page): Promise<string[]> {
  const flaws: string[] = []
  for (const { theme, width, rules } of looks) {
    await page.emulateMedia({ colorScheme: theme })
    await page.setViewportSize({ width, height: 900 })
    const beyond = await page.evaluate<number>(BEYOND)
    if (beyond > 0) flaws.push(`${theme} ${width}: ${beyond} px wider than the window`)
    for (const found of await audit(page, rules)) flaws.push(`${theme} ${width}: ${found}`)
  }
  return flaws
}
