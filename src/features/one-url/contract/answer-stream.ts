import type { AnswerLine } from './answer.ts'

/** `answer`: lines of JSON, as they are made or at the end. */
export type AnswerOut = {
  readonly answer: ReadableStream<Uint8Array> | Promise<string>
  write(line: AnswerLine): void
  close(): void
}

/** An answer that is sent as a whole. */
export class AnswerText implements AnswerOut {
  readonly #ended = Promise.withResolvers<string>()
  #text = ''

  get answer(): Promise<string> {
    return this.#ended.promise
  }

  write(line: AnswerLine): void {
    this.#text += lineOf(line)
  }

  close(): void {
    this.#ended.resolve(this.#text)
  }
}

const lineOf = (line: AnswerLine): string => `${JSON.stringify(line)}\n`

const BEAT_MS = 2000

/** Lines of JSON to a caller, who may leave at any time. */
export class AnswerStream implements AnswerOut {
  readonly answer: ReadableStream<Uint8Array>
  #controller: ReadableByteStreamController | null = null
  readonly #encoder = new TextEncoder()
  readonly #beats = setInterval(() => this.write({ line: 'beat' }), BEAT_MS)

  constructor(left: (why: string) => void) {
    this.answer = new ReadableStream({
      type: 'bytes',
      start: (controller) => void (this.#controller = controller),
      cancel: () => {
        this.#end()
        left('the caller left in the middle of the answer')
      },
    })
  }

  write(line: AnswerLine): void {
    this.#controller?.enqueue(this.#encoder.encode(lineOf(line)))
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
