import { LiveScreen } from '../lib/live-screen.ts'
import { isTerminal, type Terminal } from '../lib/paint.ts'
import { cut, duration } from '../lib/text.ts'

const SAY_EVERY_MS = 5000

/** A line of progress: redrawn on a terminal, printed now and then elsewhere, with its time. */
export class LiveLine {
  readonly #output: Terminal
  readonly #screen: LiveScreen | null
  readonly #started: number
  #said_at = -Infinity

  constructor(output: Terminal, started = performance.now()) {
    this.#started = started
    this.#output = output
    this.#screen = isTerminal(output) ? new LiveScreen(output) : null
  }

  show(text: string): void {
    if (this.#screen) return this.#screen.draw([cut(text, (this.#output.columns ?? 80) - 1)])
    const now = performance.now()
    if (now - this.#said_at < SAY_EVERY_MS) return
    this.#said_at = now
    this.#output.write(`${duration(now - this.#started).padStart(8)}  ${text}\n`)
  }

  close(): void {
    this.#screen?.erase()
  }
}
