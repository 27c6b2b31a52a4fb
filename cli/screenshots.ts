import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { leaveDemo } from './demo/run.ts'
import { connect } from './lib/api.ts'
import { launchChromium } from './lib/chromium.ts'
import { tellFailure } from './lib/cli-error.ts'
import { buildDashboard } from './lib/dashboard.ts'
import { startServer, type LocalServer } from './lib/local-server.ts'
import { temporaryFolder } from './lib/temporary-folder.ts'
import { packageFolder } from './lib/package.ts'

/** The pictures of the README, of what `npm run demo` leaves, in light and dark. */
const FOLDER = join(packageFolder, 'docs/pictures')
const KEY = 'screenshots'
const pages: { name: string; path: string; ready: string }[] = [
  { name: 'overview', path: '/', ready: 'Service levels' },
  { name: 'scope', path: '/scopes/ssh~web-1', ready: 'ssh-brute-force' },
  { name: 'approvals', path: '/approvals', ready: 'What will happen' },
]
const SIZE = { width: 1100, height: 700 }
const vars = { REFLEX_ADMIN_KEY: KEY, REFLEX_MODEL: 'offline', BLOCK_WEBHOOK_URL: '', TICKET_WEBHOOK_URL: '', NOTIFY_WEBHOOK_URL: '' }

async function main(): Promise<void> {
  await buildDashboard(console.log)
  const folder = temporaryFolder('reflex-screenshots-')
  const server = await startServer({ persist_to: folder.path, vars })
  const browser = await launchChromium()
  try {
    await leaveDemo(server, KEY)
    const own = await connect(server.url, KEY).json<object>('/v1/key')
    const { trace_id } = await blocked(server)
    mkdirSync(FOLDER, { recursive: true })
    for (const page of [...pages, { name: 'trace', path: `/traces/${trace_id}`, ready: 'ssh-brute-force' }])
      for (const theme of ['light', 'dark'] as const)
        await shoot({ browser, server, session: JSON.stringify({ key: KEY, own }), ...page, theme })
  } finally {
    await browser.close()
    await server.stop()
    folder.remove()
  }
}

async function blocked(server: LocalServer): Promise<{ trace_id: string }> {
  const path = '/v1/scopes/ssh%2Fweb-1/log?kind=effect-started&limit=1000'
  const { items } = await connect(server.url, KEY).json<{ items: { trace_id: string; tool: string }[] }>(path)
  const effect = items.find(({ tool }) => tool === 'block')
  if (!effect) throw new Error('the demo blocked nothing')
  return effect
}

type Shot = { browser: Browser; server: LocalServer; session: string; name: string; path: string; ready: string; theme: 'light' | 'dark' }

async function shoot({ browser, server, session, name, path, ready, theme }: Shot): Promise<void> {
  const context = await browser.newContext({ colorScheme: theme, viewport: SIZE, reducedMotion: 'reduce' })
  await context.addInitScript((stored) => sessionStorage.setItem('reflex.session', stored), session)
  const page = await context.newPage()
  await page.goto(`${server.url}${path}`)
  await page.getByText(ready).first().waitFor()
  await page.waitForLoadState('networkidle')
  const file = join(FOLDER, `${name}-${theme}.png`)
  await page.screenshot({ path: file })
  console.log(file)
  await context.close()
}

try {
  await main()
} catch (error) {
  process.exitCode = tellFailure('No pictures were made:', error)
}
