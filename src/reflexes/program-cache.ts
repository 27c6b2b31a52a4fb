import type { Answer, Compiled } from './engine/engine.ts'
import type { Program } from './sandbox.ts'

/** A program as it was compiled, or why it could not be. */
export type Prepared = { code: string; compiled: Compiled } | { code: string; compiled: null; failure: Answer }

/** Beyond this the least recently run programs are forgotten, and compiled anew when they are needed again. */
const MOST_BYTES = 16 * 1024 * 1024
const OVERHEAD = 1024

export class ProgramCache {
  readonly #programs = new Map<string, Prepared>()
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** By its code, too: a wrong hash must not run another's program. */
  get({ hash, code }: Program): Prepared | null {
    const known = this.#programs.get(hash)
    if (known?.code !== code) return null
    this.#programs.delete(hash)
    this.#programs.set(hash, known)
    return known
  }

  set(hash: string, prepared: Prepared): void {
    this.#forget(hash)
    this.#programs.set(hash, prepared)
    this.#bytes += sizeOf(prepared)
    for (const oldest of this.#programs.keys()) {
      if (this.#bytes <= MOST_BYTES) return
      this.#forget(oldest)
    }
  }

  clear(): void {
    this.#programs.clear()
    this.#bytes = 0
  }

  #forget(hash: string): void {
    const known = this.#programs.get(hash)
    if (known && this.#programs.delete(hash)) this.#bytes -= sizeOf(known)
  }
}

const sizeOf = ({ code, compiled }: Prepared): number => OVERHEAD + code.length * 2 + (compiled?.image.size ?? 0)
