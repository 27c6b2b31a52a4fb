import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

const quiet = ['--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

/** Debian's Chromium, or the one that the variable CHROMIUM names. It asks no other host. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
  if (!existsSync(executablePath)) throw new Error(`${executablePath} is missing, and this needs a real browser: apt-get install chromium`)
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', ...quiet] })
}
