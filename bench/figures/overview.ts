import type { Browser } from 'playwright-core'
import { buildDashboard } from '../../cli/lib/dashboard.ts'
import { launchChromium } from '../../cli/lib/chromium.ts'
import { until, type ReflexClient } from '../clients.ts'
import type { Figure } from '../figure.ts'

const SCOPES = 1000

/** The figures that matter at first: all have a number, and the browser has painted them. */
const NOTE_PAINT = `window.painted = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    const numbers = [...document.querySelectorAll('.figure .number')]
    if (numbers.length === 0 || numbers.some(({ textContent }) => textContent === '…')) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))
  }).observe(document, { childList: true, subtree: true, characterData: true })
})`

export const overviewPaint: Figure = {
  name: 'overview',
  what: 'from the link of the overview to its figures on the screen, without a cache, with 1,000 scopes',
  unit: 'ms',
  target: { at_most: 300 },
  async ours(_reflex, { another, progress }) {
    await buildDashboard()
    const reflex = await another({ REFLEX_MODEL: 'offline' })
    progress(`an event for each of ${SCOPES} scopes`)
    const events = Array.from({ length: SCOPES }, (_, n) => ({
      scope: `chat/s${n}`,
      type: 'ws.message',
      connection_id: 'bench',
      content: 'Hello',
    }))
    await reflex.publish(JSON.stringify(events))
    const isReady = ({ scopes, open }: { scopes: number; open: number }) => scopes === SCOPES && open === 0
    await until(async () => isReady(await reflex.inboxes()), { pause_ms: 500, what: 'the end of all events', timeout_ms: 300_000 })
    const browser = await launchChromium()
    return { measure: () => paintOf(browser, reflex), close: () => browser.close() }
  },
}

async function paintOf(browser: Browser, reflex: ReflexClient): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const session = JSON.stringify(await reflex.session())
  await context.addInitScript((stored) => sessionStorage.setItem('reflex.session', stored), session)
  await context.addInitScript(NOTE_PAINT)
  const page = await context.newPage()
  await page.goto(reflex.url)
  const ms = await page.evaluate<number>('window.painted')
  await context.close()
  return ms
}
