const FENCE = /^ {0,3}(`{3,}|~{3,})/
const QUOTED_LINE = /^ {0,3}>/

/**
 * Decides, for ascending positions, if they are in a code fence, in inline code or in a line that
 * begins with `>`. Each character is read once.
 */
export class Quoting {
  readonly #text: string
  #fence: string | null = null
  /** The start and end of the current line, and the position up to which it was scanned. */
  #line = 0
  #end: number
  #scanned = 0
  #ticks = 0
  #next_tick = -1
  /** The line began within a block, so that its beginning says nothing. */
  #midline = false

  constructor(text: string) {
    this.#text = text
    this.#end = this.#lineEnd(0)
  }

  isQuoted(at: number): boolean {
    while (this.#end < at) this.#nextLine()
    for (; this.#scanned < at; this.#scanned++) if (this.#text[this.#scanned] === '`') this.#ticks += 1
    if (this.#fence !== null) return true
    return this.#isQuotedLine() || (this.#ticks % 2 === 1 && this.#tickFrom(at) < this.#end)
  }

  /** Skips a block, whose own fences and quotes do not count outside of it. */
  skipTo(at: number): void {
    if (this.#fence !== null) return
    if (this.#end < at) {
      this.#ticks = 0
      this.#midline = true
      this.#line = at
      this.#end = this.#lineEnd(at)
    }
    this.#scanned = at
  }

  #nextLine(): void {
    if (!this.#midline) this.#fence = fenceAfter(this.#text.slice(this.#line, this.#end), this.#fence)
    this.#midline = false
    this.#line = this.#end + 1
    this.#end = this.#lineEnd(this.#line)
    this.#scanned = this.#line
    this.#ticks = 0
  }

  #isQuotedLine(): boolean {
    return !this.#midline && QUOTED_LINE.test(this.#text.slice(this.#line, this.#line + 4))
  }

  #tickFrom(at: number): number {
    if (this.#next_tick < at) {
      const found = this.#text.indexOf('`', at)
      this.#next_tick = found < 0 ? this.#text.length : found
    }
    return this.#next_tick
  }

  #lineEnd(from: number): number {
    const found = this.#text.indexOf('\n', from)
    return found < 0 ? this.#text.length : found
  }
}

function fenceAfter(line: string, fence: string | null): string | null {
  const found = FENCE.exec(line)?.[1]
  if (found === undefined) return fence
  if (fence === null) return found
  return found.startsWith(fence) && line.trim() === found ? null : fence
}
