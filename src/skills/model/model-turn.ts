import type { ProposalSession } from '../session/session.ts'
import type { Exchange } from './prompt.ts'
import { guided, type Protocol } from './protocol.ts'
import type { SkillReport } from './settle-intents.ts'

export type ModelTurnOptions = {
  session: ProposalSession
  /** Every role of whoever the turn is for. */
  roles: readonly string[]
  goal_labels?: readonly string[]
  entity_types?: readonly string[]
  /** The text by which skills are found; the users' messages unless given. */
  text?: string
  protocol?: Protocol
  /** Model calls for one call of the wrapped model. */
  max_rounds?: number
  now?: () => number
  onReport?: ((report: SkillReport) => void) | undefined
}

type Unfinished = { over: number; messages: readonly unknown[]; results: readonly string[] }

/** As long as a provider may ask to wait before a call is repeated. */
const REPEATED_MS = 60_000

/**
 * The state that a turn's model calls share: the session, whose bulletin one of them receives, and
 * the exchanges that the caller does not know.
 */
export class ModelTurn {
  readonly options: ModelTurnOptions
  readonly exchanges: Exchange[] = []
  /** The tool calls that the caller was given to bring back. */
  readonly calls = new Set<string>()
  /**
   * The messages that a call had exchanged with its model before it failed, with the number of the
   * caller's messages: the repeated call continues from there.
   */
  unfinished: Unfinished | null = null
  #pending: string | null = null
  #taken = false
  #failed_at: number | null = null

  constructor(options: ModelTurnOptions) {
    this.options = options
  }

  /**
   * The last call of the model did not come to its end a short while ago: the next one is its
   * repetition. Later it is somebody else's with the same words.
   */
  get failed(): boolean {
    return this.#failed_at !== null && this.#now - this.#failed_at < REPEATED_MS
  }

  get #now(): number {
    return (this.options.now ?? Date.now)()
  }

  /** For the first call; again where that was not answered, so that a repetition has it. */
  bulletin(text: string): string {
    if (!this.#taken) this.#pending = guided(this.options.session.bulletin(text), this.options.protocol ?? 'asp')
    this.#taken = true
    return this.#pending ?? ''
  }

  answered(): void {
    this.#pending = null
  }

  ended({ failed }: { failed: boolean }): void {
    this.#failed_at = failed ? this.#now : null
    if (!failed) this.unfinished = null
  }
}
