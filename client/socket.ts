import { v7 as uuidv7 } from 'uuid'
import type { EventInput } from '../src/contract/event-record.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import type { keyDeleted } from '../src/contract/scope-api.ts'
import { socketAddress } from './address.ts'
import { Follower, type AnswerFrame, type Delta, type Loss } from './follower.ts'
import { Outgoing, type Ack } from './outgoing.ts'
import { askTicket, TicketRefused } from './ticket.ts'

export type { Delta } from './follower.ts'
export type { Ack } from './outgoing.ts'

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
  readonly #follower: Follower
  #closed: Error | undefined

  constructor(options: ConnectOptions) {
    this.#options = options
    this.#follower = new Follower({
      after: options.after ?? null,
      address: (after) => this.#address(after),
      onOpen: () => this.#opened(),
      onEntry: options.onEntry,
      onAnswer: (frame) => this.#receive(frame),
      onLost: (loss) => this.#lost(loss),
    })
  }

  get last_seq(): number | null {
    return this.#follower.last_seq
  }

  send(event: EventInput | { content: string; id?: string }): Promise<Ack> {
    const id = event.id ?? uuidv7()
    if (this.#closed) return Promise.reject(this.#closed)
    const text = JSON.stringify({ ...event, id })
    const { answered, known } = this.#outgoing.add(id, text)
    // Without a connection, it is sent with the next one.
    if (!known) this.#follower.send(text)
    return answered
  }

  close(): void {
    this.#end(new Error('the connection was closed before this was acknowledged'))
  }

  async #address(last_seq: number | null): Promise<string> {
    const { base_url, scope, connection_id, ...credential } = this.#options
    const ticket = 'ticket' in credential ? await credential.ticket() : await askTicket(base_url, scope, credential.key)
    return socketAddress(base_url, scope, { ticket, connection_id, after: last_seq === null ? undefined : String(last_seq) })
  }

  #opened(): void {
    for (const text of this.#outgoing.texts) this.#follower.send(text)
    this.#options.onOpen?.()
  }

  #receive(frame: AnswerFrame): void {
    const { onDelta, onError } = this.#options
    switch (frame.type) {
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

  #lost(loss: Loss): void {
    const { scope, onClose, onError } = this.#options
    const error =
      'error' in loss ? loss.error : this.#isFinal(loss.code) && new Error(`the connection to ${scope} was ended: ${loss.reason}`)
    const isOver = error && (error instanceof TicketRefused || !('error' in loss))
    if (isOver) this.#end(error)
    else onClose?.(null)
    if (error) onError?.(error)
  }

  /** With a deleted key each attempt would end the same way. */
  #isFinal(code: number): boolean {
    return code === KEY_DELETED && 'key' in this.#options
  }

  #end(reason: Error): void {
    if (this.#closed) return
    this.#closed = reason
    this.#follower.end()
    this.#outgoing.abandon(reason)
    this.#options.onClose?.(reason)
  }
}

function deltaOf({ type: _type, ...delta }: AnswerFrame & { type: 'delta' }): Delta {
  return delta
}
