export type Ack = { id: string; status: 'accepted' | 'duplicate' }
type Sent = { text: string; answered: Promise<Ack>; resolve: (ack: Ack) => void; reject: (error: Error) => void }

/**
 * Messages without an answer yet, in order. A scope answers each socket message once, in order of
 * arrival. An ack names its event, and so does an error if the scope could read the id; otherwise
 * it answers the oldest message.
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

  /**
   * Messages to resend on a new connection. Each has its id, so a scope that already has it answers
   * "duplicate".
   */
  get texts(): string[] {
    return Array.from(this.#sent.values(), ({ text }) => text)
  }

  acknowledged(ack: Ack): void {
    this.#sent.get(ack.id)?.resolve(ack)
    this.#sent.delete(ack.id)
  }

  /** True if a message waited for this answer. */
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
