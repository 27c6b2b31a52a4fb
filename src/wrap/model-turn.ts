import type { SkillSession } from '../skills/session.ts'
import type { Exchange } from './prompt.ts'
import { guided, type Protocol } from './protocol.ts'
import type { SkillReport } from './settle-intents.ts'

export type ModelTurnOptions = {
  session: SkillSession
  /** Every role of whoever the turn is for. */
  roles: readonly string[]
  goal_labels?: readonly string[]
  entity_types?: readonly string[]
  /** What skills are found by; what the users said, unless given. */
  text?: string
  protocol?: Protocol
  /** Model calls for one call of the wrapped model. */
  max_rounds?: number
  onReport?: ((report: SkillReport) => void) | undefined
}

/** What a turn's model calls share: the session, whose bulletin one of them gets, and what happened in the calls that the caller does not know of. */
export class ModelTurn {
  readonly options: ModelTurnOptions
  readonly exchanges: Exchange[] = []
  #pending: string | null = null
  #taken = false
  #failed = false

  constructor(options: ModelTurnOptions) {
    this.options = options
  }

  /** The last call of the model did not come to its end: the next one is its repetition. */
  get failed(): boolean {
    return this.#failed
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
    this.#failed = failed
  }
}
