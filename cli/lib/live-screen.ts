import type { Terminal } from './paint.ts'

const HIDE_CURSOR = '\u001b[?25l'
const SHOW_CURSOR = '\u001b[?25h'
/**
 * Terminals that support synchronised updates show the frame when it is complete; others ignore
 * these codes.
 */
const BEGIN_FRAME = '\u001b[?2026h'
const END_FRAME = '\u001b[?2026l'
const CLEAR_TO_LINE_END = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/** Draws each picture over the previous one. Lines must be shorter than the terminal is wide. */
export class LiveScreen {
  readonly #output: Terminal
  #widths: number[] = []
  #shown = ''

  constructor(output: Terminal) {
    this.#output = output
  }

  draw(lines: readonly string[]): void {
    const frame = lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join('')
    if (frame === this.#shown) return
    const hide = this.#shown === '' ? HIDE_CURSOR : ''
    this.#output.write(`${hide}${BEGIN_FRAME}${this.#home()}${frame}${CLEAR_BELOW}${END_FRAME}`)
    this.#shown = frame
    this.#widths = lines.map((line) => visibleLength(line))
  }

  /** Clears the picture and restores the cursor. */
  erase(): void {
    if (this.#shown === '') return
    this.#output.write(`${this.#home()}${CLEAR_BELOW}${SHOW_CURSOR}`)
    this.#shown = ''
    this.#widths = []
  }

  /** A terminal that became narrower has wrapped the lines of the last picture. */
  #home(): string {
    const columns = this.#output.columns ?? 80
    const rows = this.#widths.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0)
    return rows > 0 ? `\u001b[${rows}A\r` : ''
  }
}

// oxlint-disable-next-line no-control-regex -- colour codes are what is looked for
const visibleLength = (line: string): number => line.replaceAll(/\u001b\[[\d;]*m/g, '').length
