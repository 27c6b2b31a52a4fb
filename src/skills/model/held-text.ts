import { TAGS } from '../asp/blocks.ts'

const MARKS = TAGS.flatMap((tag) => [`<${tag}>`, `</${tag}>`])
const MARK = new RegExp(MARKS.join('|'), 'g')
const LONGEST = Math.max(...MARKS.map((mark) => mark.length))

/**
 * A streamed text that is passed on up to the first mark of a block. The rest is held until the
 * answer is whole, which shows if the mark is quoted.
 */
export class HeldText {
  #whole = ''
  #passed = 0
  #holds = false

  get whole(): string {
    return this.#whole
  }

  /** The length of the part of `whole` that was let through. */
  get passed(): number {
    return this.#passed
  }

  /** Adds a piece and returns the text that may pass now, which may begin with earlier text. */
  push(delta: string): string {
    this.#whole += delta
    if (this.#holds) return ''
    MARK.lastIndex = this.#passed
    const mark = MARK.exec(this.#whole)
    this.#holds = mark !== null
    const end = mark?.index ?? this.#whole.length - begunMark(this.#whole.slice(-LONGEST))
    const safe = this.#whole.slice(this.#passed, end)
    this.#passed = Math.max(this.#passed, end)
    return safe
  }
}

/** The length of the end of the text that a mark may begin with. */
function begunMark(text: string): number {
  const at = text.lastIndexOf('<')
  if (at < 0) return 0
  const end = text.slice(at)
  return MARKS.some((mark) => mark.length > end.length && mark.startsWith(end)) ? end.length : 0
}
