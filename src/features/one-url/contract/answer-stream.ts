import type { AnswerLine } from './answer.ts'

const BEAT_MS = 2000

/** Lines of JSON to a caller, who may leave at any time. */
export class AnswerStream {
  readonly readable: ReadableStream<Uint8Array>
  #controller: ReadableByteStreamController | null = null
  readonly #encoder = new TextEncoder()
  readonly #beats = setInterval(() => this.write({ line: 'beat' }), BEAT_MS)

  constructor(left: (why: string) => void) {
    this.readable = new ReadableStream({
      type: 'bytes',
      start: (controller) => void (this.#controller = controller),
      cancel: () => {
        this.#end()
        left('the caller left in the middle of the answer')
      },
    })
  }

  write(line: AnswerLine): void {
    this.#controller?.enqueue(this.#encoder.encode(`${JSON.stringify(line)}\n`))
  }

  close(): void {
    this.#controller?.close()
    this.#end()
  }

  #end(): void {
    clearInterval(this.#beats)
    this.#controller = null
  }
}
