export type Ack = { id: string; status: 'accepted' | 'duplicate' }
type Sent = { text: string; answered: Promise<Ack>; resolve: (ack: Ack) => void; reject: (error: Error) => void }

/**
 * What was sent and not yet answered, in order. A scope answers each message of a socket once, in the order in which they came: an ack names its event, and so
 * does an error where the scope could read the id; else it is for the oldest one.
 */
export class Outgoing {
  readonly #sent = new Map<string, Sent>()

  /** `known`: it was sent before and waits for its answer. */
  add(id: string, text: string): { answered: Promise<Ack>; known: boolean } {
    const waiting = this.#sent.get(id)
    if (waiting) return { answered: waiting.answered, known: true }
    const { promise: answered, resolve, reject } = Promise.withResolvers<Ack>()
    this.#sent.set(id, { text, answered, resolve, reject })
    return { answered, known: false }
  }

  /** To be sent again on a new connection: each has its id, so that a scope which has it already calls it a duplicate. */
  get texts(): string[] {
    return Array.from(this.#sent.values(), ({ text }) => text)
  }

  acknowledged(ack: Ack): void {
    this.#sent.get(ack.id)?.resolve(ack)
    this.#sent.delete(ack.id)
  }

  /** Whether there was one that it could be for. */
  refused(error: Error, id?: string): boolean {
    const [oldest] = this.#sent.keys()
    const refused = id ?? oldest
    const sent = refused === undefined ? undefined : this.#sent.get(refused)
    if (refused === undefined || !sent) return false
    this.#sent.delete(refused)
    sent.reject(error)
    return true
  }

  abandon(error: Error): void {
    while (this.refused(error));
  }
}
