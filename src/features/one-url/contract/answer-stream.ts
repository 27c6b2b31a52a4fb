import type { AnswerLine } from './answer.ts'

/** Lines of JSON to a caller, who may leave at any time. */
export class AnswerStream {
  readonly readable: ReadableStream<Uint8Array>
  #controller: ReadableByteStreamController | null = null
  readonly #encoder = new TextEncoder()

  constructor(left: (why: string) => void) {
    this.readable = new ReadableStream({
      type: 'bytes',
      start: (controller) => void (this.#controller = controller),
      cancel: () => {
        this.#controller = null
        left('the caller left in the middle of the answer')
      },
    })
  }

  write(line: AnswerLine): void {
    this.#controller?.enqueue(this.#encoder.encode(`${JSON.stringify(line)}\n`))
  }

  close(): void {
    this.#controller?.close()
    this.#controller = null
  }
}
