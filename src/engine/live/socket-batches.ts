import type { Clean } from '../../base/secrets.ts'
import type { Event } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'

/** A message of a socket. Each socket is answered in order. */
export type Message<Socket> = { socket: Socket; bytes: number } & (
  | { kind: 'event'; event: Clean<Event> }
  | { kind: 'other'; answer: () => void }
)
type Take<Socket> = (messages: readonly Message<Socket>[]) => void
type Waiting<Socket> = { messages: Message<Socket>[]; bytes: number }

/** The most messages of one socket in a round, so that the others do not wait for it. */
const SHARE = 16
const BATCH = 64
const BATCH_BYTES = 1_000_000
const GATHER_MS = 3
/** Up to this many messages of one socket, and sockets that send, are not a burst yet. */
const ALONE = { of_one: 2, of_all: 8 } as const

/**
 * Batches the messages of bursts, fairly among sockets. A lone message is handled at once. The
 * runtime delivers its messages before timers, so messages before a timer of 0 ms are a burst.
 */
export class SocketBatches<Socket> {
  readonly #take: Take<Socket>
  readonly #waiting = new Map<Socket, Waiting<Socket>>()
  /** Messages of each socket since the last pause; null during a pause. */
  #heard: Map<Socket, number> | null = null
  #count = 0

  constructor(take: Take<Socket>) {
    this.#take = take
  }

  /** True if the socket has sent more than is buffered for it. */
  full(socket: Socket): boolean {
    return (this.#waiting.get(socket)?.bytes ?? 0) >= limits.body_bytes
  }

  add(message: Message<Socket>): void {
    if (this.#isAlone(message.socket)) return this.#take([message])
    this.#gather(message)
    if (this.#count >= BATCH) this.#take(this.#gathered())
  }

  forget(socket: Socket): void {
    this.#count -= this.#waiting.get(socket)?.messages.length ?? 0
    this.#waiting.delete(socket)
  }

  #isAlone(socket: Socket): boolean {
    if (!this.#heard) setTimeout(() => this.#ended(), 0)
    this.#heard ??= new Map()
    const of_one = (this.#heard.get(socket) ?? 0) + 1
    this.#heard.set(socket, of_one)
    return this.#count === 0 && of_one <= ALONE.of_one && this.#heard.size <= ALONE.of_all
  }

  #gather(message: Message<Socket>): void {
    const waiting = this.#waiting.get(message.socket) ?? { messages: [], bytes: 0 }
    waiting.messages.push(message)
    waiting.bytes += message.bytes
    this.#waiting.set(message.socket, waiting)
    this.#count += 1
  }

  /** The timer fired: handles the rest. If nothing is left, the next message is alone again. */
  #ended(): void {
    const batch = this.#gathered()
    this.#heard = batch.length > 0 ? new Map() : null
    if (!this.#heard) return
    setTimeout(() => this.#ended(), GATHER_MS)
    this.#take(batch)
  }

  /** Takes a share of each socket in turn, until nothing is left or a batch is full. */
  #gathered(): Message<Socket>[] {
    const batch: Message<Socket>[] = []
    let room = BATCH_BYTES
    // A re-added socket comes up again in this loop, after the others.
    for (const [socket, waiting] of this.#waiting) {
      this.#waiting.delete(socket)
      const share = waiting.messages.splice(0, SHARE)
      const bytes = share.reduce((sum, message) => sum + message.bytes, 0)
      batch.push(...share)
      room -= bytes
      waiting.bytes -= bytes
      if (waiting.messages.length > 0) this.#waiting.set(socket, waiting)
      if (batch.length >= BATCH || room <= 0) break
    }
    this.#count -= batch.length
    return batch
  }
}

/** A token bucket: `per_second` messages a second, and as many in a burst. */
export class MessageRate {
  readonly #per_second: number
  #left: number
  #at: number

  constructor(per_second: number, now: number) {
    this.#per_second = per_second
    this.#left = per_second
    this.#at = now
  }

  /** Takes a token; false if the bucket is empty. */
  take(now: number): boolean {
    const filled = this.#left + (Math.max(0, now - this.#at) * this.#per_second) / 1000
    this.#left = Math.min(this.#per_second, filled)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
