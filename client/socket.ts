import ReconnectingWebSocket from 'partysocket/ws'
import { v7 as uuidv7 } from 'uuid'
import type { EventInput } from '../src/contract/event-record.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import type { keyDeleted } from '../src/contract/scope-api.ts'
import { socketAddress } from './address.ts'
import { Outgoing, type Ack } from './outgoing.ts'
import { askTicket, TicketRefused } from './ticket.ts'

export type { Ack } from './outgoing.ts'

/**
 * A piece of a turn's answer while it is produced, or a reflex's answer to an event. `from: 0`: the
 * whole answer so far, after a new connection. The authoritative answer is the later entry
 * `reply-sent`.
 */
export type Delta = { turn_id: string; content: string; from?: 0 } | { turn_id: null; event_id: string; content: string }
/**
 * A ticket provider is called for each connection, also after its key was deleted: it may have
 * another key. It throws TicketRefused to stop.
 */
export type Credential = { key: string } | { ticket: () => Promise<string> }
export type ConnectOptions = Credential & {
  base_url: string
  scope: string
  /** The last `seq` seen. Without it, the log is followed from the time of `onOpen`. */
  after?: number
  connection_id?: string
  onEntry?: (entry: LogEntry) => void
  onDelta?: (delta: Delta) => void
  /**
   * Called also when a connection fails. It reconnects by itself unless the key is refused or was
   * deleted.
   */
  onError?: (error: Error) => void
  onOpen?: () => void
  /** A connection was lost or failed. Another one follows unless `ended`. */
  onClose?: (ended: Error | null) => void
}
/** The number of a close that no reconnection with the same key survives. */
const KEY_DELETED: (typeof keyDeleted)['code'] = 4401

export type Connection = {
  /**
   * Resolves when the event is durable. Rejects if the scope refuses it, and on close. Survives
   * lost connections.
   */
  send: (event: EventInput | { content: string; id?: string }) => Promise<Ack>
  close: () => void
  /** The `seq` after which the next connection continues. */
  readonly last_seq: number | null
}

type Frame =
  | { type: 'open'; seq: number }
  | { type: 'log'; entry: LogEntry }
  | { type: 'mark'; sent: number }
  | ({ type: 'ack' } & Ack)
  | ({ type: 'delta' } & Delta)
  | { type: 'error'; id?: string; errors: { path: string; message: string }[] }

const PING_MS = 20_000

/**
 * Follows a scope and sends events to it over any number of connections: no entry is missed and no
 * event is accepted twice.
 */
export function connectScope(options: ConnectOptions): Connection {
  const connection = new ScopeConnection(options)
  return {
    send: (event) => connection.send(event),
    close: () => connection.close(),
    get last_seq() {
      return connection.last_seq
    },
  }
}

class ScopeConnection {
  readonly #options: ConnectOptions
  readonly #outgoing = new Outgoing()
  readonly #socket: ReconnectingWebSocket
  readonly #pulse: ReturnType<typeof setInterval>
  #last_seq: number | null
  #heard = true
  #opened = false
  #closed: Error | undefined

  constructor(options: ConnectOptions) {
    this.#options = options
    this.#last_seq = options.after ?? null
    this.#socket = new ReconnectingWebSocket(() => this.#address(), null, {
      minReconnectionDelay: 250 + Math.random() * 250,
      maxReconnectionDelay: 10_000,
      reconnectionDelayGrowFactor: 1.7,
      connectionTimeout: 10_000,
      shouldReconnectOnClose: ({ code }) => !this.#isFinal(code),
    })
    this.#listen()
    this.#pulse = setInterval(() => this.#beat(), PING_MS)
  }

  get last_seq(): number | null {
    return this.#last_seq
  }

  send(event: EventInput | { content: string; id?: string }): Promise<Ack> {
    const id = event.id ?? uuidv7()
    if (this.#closed) return Promise.reject(this.#closed)
    const text = JSON.stringify({ ...event, id })
    const { answered, known } = this.#outgoing.add(id, text)
    // Otherwise it is sent with the next connection.
    if (!known && this.#opened && this.#isOpen) this.#socket.send(text)
    return answered
  }

  close(): void {
    this.#end(new Error('the connection was closed before this was acknowledged'))
  }

  #listen(): void {
    const { scope, onError, onClose } = this.#options
    this.#socket.addEventListener('message', ({ data }) => {
      this.#heard = true
      if (data === 'pong') return
      const frame: Frame = JSON.parse(String(data))
      this.#receive(frame)
    })
    this.#socket.addEventListener('error', ({ message }) => onError?.(new Error(message || `the connection to ${scope} failed`)))
    this.#socket.addEventListener('close', ({ code, reason }) => {
      this.#opened = false
      if (!this.#isFinal(code)) return this.#closed ? undefined : onClose?.(null)
      const error = new Error(`the connection to ${scope} was ended: ${reason}`)
      this.#end(error)
      onError?.(error)
    })
  }

  /** With a deleted key each attempt would end the same way. */
  #isFinal(code: number): boolean {
    return code === KEY_DELETED && 'key' in this.#options
  }

  async #address(): Promise<string> {
    const { base_url, scope, connection_id, ...credential } = this.#options
    this.#heard = true
    this.#opened = false
    try {
      const ticket = 'ticket' in credential ? await credential.ticket() : await askTicket(base_url, scope, credential.key)
      return socketAddress(base_url, scope, { ticket, connection_id, after: this.#last_seq === null ? undefined : String(this.#last_seq) })
    } catch (error) {
      if (error instanceof TicketRefused) this.#end(error)
      throw error
    }
  }

  #receive(frame: Frame): void {
    const { onEntry, onDelta, onError, onOpen } = this.#options
    switch (frame.type) {
      case 'open':
        // Only now the resume position is known: an event sent earlier could be handled and logged
        // unheard.
        this.#last_seq ??= frame.seq
        this.#opened = true
        for (const text of this.#outgoing.texts) this.#socket.send(text)
        return onOpen?.()
      case 'log':
        if (this.#last_seq !== null && frame.entry.seq <= this.#last_seq) return
        this.#last_seq = frame.entry.seq
        return onEntry?.(frame.entry)
      case 'mark':
        // Sent back after everything before it was read: the scope sends only a limited amount
        // ahead.
        this.#socket.send(JSON.stringify(frame))
        return
      case 'ack':
        return this.#outgoing.acknowledged({ id: frame.id, status: frame.status })
      case 'delta':
        return onDelta?.(deltaOf(frame))
      case 'error': {
        const error = new Error(frame.errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; '))
        if (!this.#outgoing.refused(error, frame.id)) onError?.(error)
      }
    }
  }

  get #isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  /** A connection can be dead without being closed: if no ping is answered, open a new one. */
  #beat(): void {
    if (!this.#isOpen) return
    if (!this.#heard) return this.#socket.reconnect()
    this.#heard = false
    this.#socket.send('ping')
  }

  #end(reason: Error): void {
    clearInterval(this.#pulse)
    if (this.#closed) return
    this.#closed = reason
    this.#socket.close()
    this.#outgoing.abandon(reason)
    this.#options.onClose?.(reason)
  }
}

function deltaOf({ type: _type, ...delta }: Frame & { type: 'delta' }): Delta {
  return delta
}
