import { LiveScreen } from '../lib/live-screen.ts'
import { isTerminal, type Output } from '../lib/paint.ts'
import { cut } from '../lib/text.ts'

const SAY_EVERY_MS = 5000

/** One line of progress: redrawn on a terminal, printed now and then elsewhere. */
export class LiveLine {
  readonly #output: Output
  readonly #screen: LiveScreen | null
  #said_at = -Infinity

  constructor(output: Output) {
    this.#output = output
    this.#screen = isTerminal(output) ? new LiveScreen(output) : null
  }

  show(text: string): void {
    if (this.#screen) return this.#screen.draw([cut(text, (this.#output.columns ?? 80) - 1)])
    if (performance.now() - this.#said_at < SAY_EVERY_MS) return
    this.#said_at = performance.now()
    this.#output.write(`${text}\n`)
  }

  close(): void {
    this.#screen?.erase()
  }
}
