import ReconnectingWebSocket from 'partysocket/ws'
import { v7 as uuidv7 } from 'uuid'
import { keyDeleted } from '../src/contract/scope-api.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import type { EventInput } from '../src/http/body/event-body.ts'
import { socketAddress } from './address.ts'
import { Outgoing, type Ack } from './outgoing.ts'
import { askTicket, TicketRefused } from './ticket.ts'

export type { Ack } from './outgoing.ts'

/**
 * A piece of a turn's answer while it is produced, or a reflex's answer to an event. The
 * authoritative answer is the later entry `reply-sent`.
 */
export type Delta = { turn_id: string; content: string } | { turn_id: null; event_id: string; content: string }
/**
 * A ticket provider is called for each connection, also after its key was deleted: it may have
 * another key. It throws TicketRefused to stop.
 */
type Credential = { key: string } | { ticket: () => Promise<string> }
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
}
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
  const { base_url, scope, connection_id, onEntry, onDelta, onError, onOpen } = options
  const outgoing = new Outgoing()
  let last_seq = options.after ?? null
  let heard = true
  let opened = false
  let closed: Error | undefined

  const socket = new ReconnectingWebSocket(address, null, {
    minReconnectionDelay: 250 + Math.random() * 250,
    maxReconnectionDelay: 10_000,
    reconnectionDelayGrowFactor: 1.7,
    connectionTimeout: 10_000,
    shouldReconnectOnClose: ({ code }) => !isFinal(code),
  })
  socket.addEventListener('message', ({ data }) => {
    heard = true
    if (data === 'pong') return
    const frame: Frame = JSON.parse(String(data))
    receive(frame)
  })
  socket.addEventListener('error', ({ message }) => onError?.(new Error(message || `the connection to ${scope} failed`)))
  socket.addEventListener('close', ({ code, reason }) => {
    if (!isFinal(code)) return
    const error = new Error(`the connection to ${scope} was ended: ${reason}`)
    close(error)
    onError?.(error)
  })
  const pulse = setInterval(beat, PING_MS)

  /** With a deleted key each attempt would end the same way. */
  function isFinal(code: number): boolean {
    return code === keyDeleted.code && 'key' in options
  }

  async function address(): Promise<string> {
    heard = true
    opened = false
    try {
      const ticket = 'ticket' in options ? await options.ticket() : await askTicket(base_url, scope, options.key)
      return socketAddress(base_url, scope, { ticket, connection_id, after: last_seq === null ? undefined : String(last_seq) })
    } catch (error) {
      if (error instanceof TicketRefused) close(error)
      throw error
    }
  }

  function receive(frame: Frame): void {
    switch (frame.type) {
      case 'open':
        // Only now the resume position is known: an event sent earlier could be handled and logged
        // unheard.
        last_seq ??= frame.seq
        opened = true
        for (const text of outgoing.texts) socket.send(text)
        return onOpen?.()
      case 'log':
        if (last_seq !== null && frame.entry.seq <= last_seq) return
        last_seq = frame.entry.seq
        return onEntry?.(frame.entry)
      case 'mark':
        // Sent back after everything before it was read: the scope sends only a limited amount
        // ahead.
        socket.send(JSON.stringify(frame))
        return
      case 'ack':
        return outgoing.acknowledged({ id: frame.id, status: frame.status })
      case 'delta':
        return onDelta?.(deltaOf(frame))
      case 'error': {
        const error = new Error(frame.errors.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; '))
        if (!outgoing.refused(error, frame.id)) onError?.(error)
      }
    }
  }

  /** A connection can be dead without being closed: if no ping is answered, open a new one. */
  function beat(): void {
    if (socket.readyState !== socket.OPEN) return
    if (!heard) return socket.reconnect()
    heard = false
    socket.send('ping')
  }

  function close(reason = new Error('the connection was closed before this was acknowledged')): void {
    clearInterval(pulse)
    closed = reason
    socket.close()
    outgoing.abandon(reason)
  }

  return {
    send(event) {
      const id = event.id ?? uuidv7()
      if (closed) return Promise.reject(closed)
      const text = JSON.stringify({ ...event, id })
      const { answered, known } = outgoing.add(id, text)
      // Otherwise it is sent with the next connection.
      if (!known && opened && socket.readyState === socket.OPEN) socket.send(text)
      return answered
    },
    close: () => close(),
    get last_seq() {
      return last_seq
    },
  }
}

function deltaOf(frame: Delta): Delta {
  const { content } = frame
  return frame.turn_id === null ? { turn_id: null, event_id: frame.event_id, content } : { turn_id: frame.turn_id, content }
}
