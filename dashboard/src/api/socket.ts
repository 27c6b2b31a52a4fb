import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { returns } from './away.ts'
import { part, query, request } from './request.ts'

type Following = {
  /** The last `seq` seen. */
  after: number
  onEntry: (entry: LogEntry) => void
  onOpen: () => void
  /** The connection is lost; another one is tried. */
  onLost: () => void
  /** Another attempt would be refused, too. */
  onRefused: (why: string) => void
}
type Frame = { type: 'open' | 'mark' } | { type: 'log'; entry: LogEntry }

const PULSE_MS = 20_000
const FIRST_MS = 300
const LONGEST_MS = 10_000

/**
 * Follows a scope's log over any number of connections, without a gap or a duplicate; returns a
 * function that ends it. `client/socket.ts` also sends events, which takes 4 kB more.
 */
export function followScope(scope: string, options: Following): () => void {
  const following = new Follower(scope, options)
  void following.connect()
  return () => following.end()
}

class Follower {
  readonly #path: string
  readonly #options: Following
  #last: number
  #socket: WebSocket | undefined
  #isOver = false
  #tries = 0
  #heard = true
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #return = returns.subscribe(() => this.#timer && this.#again())
  readonly #pulse = setInterval(() => this.#beat(), PULSE_MS)

  constructor(scope: string, options: Following) {
    this.#path = `/v1/scopes/${part(scope)}`
    this.#options = options
    this.#last = options.after
  }

  /** Each connection opens with a ticket, so the key is in no address. */
  async connect(): Promise<void> {
    const answer = await request<{ ticket: string }>('POST', `${this.#path}/tickets`)
    if (this.#isOver) return
    if (!answer.ok) {
      const { status, detail } = answer.problem
      if (![400, 401, 403, 409].includes(status)) return this.#lost()
      this.end()
      return this.#options.onRefused(detail)
    }
    const { ticket } = answer.value
    this.#heard = true
    this.#socket = new WebSocket(`${location.origin.replace('http', 'ws')}${this.#path}/ws${query({ ticket, after: this.#last })}`)
    this.#socket.addEventListener('message', ({ data }) => this.#receive(String(data)))
    this.#socket.addEventListener('close', ({ target }) => target === this.#socket && this.#lost())
  }

  end(): void {
    this.#isOver = true
    this.#return()
    clearInterval(this.#pulse)
    clearTimeout(this.#timer)
    this.#socket?.close()
  }

  #receive(text: string): void {
    this.#heard = true
    if (text === 'pong') return
    const frame = JSON.parse(text) as Frame
    if (frame.type === 'open') {
      this.#tries = 0
      this.#options.onOpen()
    }
    // Sent back once everything before it was read: the scope sends only a limited amount ahead.
    if (frame.type === 'mark') this.#socket?.send(text)
    if (frame.type !== 'log' || frame.entry.seq <= this.#last) return
    this.#last = frame.entry.seq
    this.#options.onEntry(frame.entry)
  }

  #lost(): void {
    this.#socket = undefined
    if (this.#isOver) return
    this.#options.onLost()
    this.#tries += 1
    this.#timer = setTimeout(() => this.#again(), Math.min(LONGEST_MS, FIRST_MS * 1.7 ** this.#tries))
  }

  #again(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    void this.connect()
  }

  /** A connection can be dead without being closed: if no ping is answered, open a new one. */
  #beat(): void {
    if (this.#socket?.readyState !== WebSocket.OPEN) return
    if (this.#heard) {
      this.#heard = false
      return this.#socket.send('ping')
    }
    this.#socket.close()
    this.#lost()
  }
}
