import type { Event } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'

/** What came in on a socket, to be answered in the order in which it came. */
export type Message<Socket> = { socket: Socket; bytes: number } & ({ kind: 'event'; event: Event } | { kind: 'other'; answer: () => void })
/** Takes what came, as one write. */
type Take<Socket> = (messages: readonly Message<Socket>[]) => void
type Waiting<Socket> = { messages: Message<Socket>[]; bytes: number }

/** Of one socket in one round: the others are not to wait for it. */
const SHARE = 16
/** Of all sockets in one turn. */
const TURN = 64
const TURN_BYTES = 1_000_000
const GATHER_MS = 3
/** What a moment may bring that is still no flood: so much of one socket, and of all. */
const ALONE = { of_one: 2, of_all: 8 } as const

/**
 * Turns of many sockets. A message that comes alone is taken at once. Many that come before a timer of 0 ms has fired were
 * waiting behind it already: while the runtime has messages at hand it delivers them one after the other, and does not come
 * to timers. Such messages are gathered and taken together, a share of each socket in turn. Whoever waits for each
 * acknowledgement before the next message never gets there.
 */
export class SocketTurns<Socket> {
  readonly #take: Take<Socket>
  readonly #waiting = new Map<Socket, Waiting<Socket>>()
  /** Since the last moment of calm; null while it is calm. */
  #heard: Map<Socket, number> | null = null
  #count = 0

  constructor(take: Take<Socket>) {
    this.#take = take
  }

  /** Whether a socket has sent more ahead than is kept for it. */
  full(socket: Socket): boolean {
    return (this.#waiting.get(socket)?.bytes ?? 0) >= limits.body_bytes
  }

  add(message: Message<Socket>): void {
    if (this.#isAlone(message.socket)) return this.#take([message])
    this.#gather(message)
    if (this.#count >= TURN) this.#take(this.#gathered())
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

  /** It was calm for a moment: what is left is taken, and where nothing was, the next message is alone again. */
  #ended(): void {
    const turn = this.#gathered()
    this.#heard = turn.length > 0 ? new Map() : null
    if (!this.#heard) return
    setTimeout(() => this.#ended(), GATHER_MS)
    this.#take(turn)
  }

  /** A share of each socket in turn, and again, until there is no more or enough for one write. */
  #gathered(): Message<Socket>[] {
    const turn: Message<Socket>[] = []
    let room = TURN_BYTES
    // A socket that is put back comes up again in this same loop, behind the others.
    for (const [socket, waiting] of this.#waiting) {
      this.#waiting.delete(socket)
      const share = waiting.messages.splice(0, SHARE)
      const bytes = share.reduce((sum, message) => sum + message.bytes, 0)
      turn.push(...share)
      room -= bytes
      waiting.bytes -= bytes
      if (waiting.messages.length > 0) this.#waiting.set(socket, waiting)
      if (turn.length >= TURN || room <= 0) break
    }
    this.#count -= turn.length
    return turn
  }
}
