import type { Question } from '../plan/slots.ts'
import type { ProposalSession } from '../session/session.ts'
import type { PromptExchange } from './prompt.ts'
import { guided, type Protocol } from './protocol.ts'
import type { Intent } from './intents.ts'
import { settleIntents, type CallReply, type SkillReport } from './settle-intents.ts'

export type ModelTurnOptions = {
  session: ProposalSession
  /** All roles of the turn's principal. */
  roles: readonly string[]
  goal_labels?: readonly string[] | undefined
  entity_types?: readonly string[] | undefined
  /** The text by which skills are found; the users' messages unless given. */
  text?: string
  protocol?: Protocol | undefined
  /** Model calls for one call of the wrapped model. */
  max_rounds?: number | undefined
  now?: (() => number) | undefined
  onReport?: ((report: SkillReport) => void) | undefined
}

type Unfinished = { over: number; messages: readonly unknown[]; results: readonly string[] }

/** As long as a provider may ask to wait before a call is repeated. */
const REPEATED_MS = 60_000

/** The state that a turn's model calls share: the session, and exchanges unknown to the caller. */
export class ModelTurn {
  readonly options: ModelTurnOptions
  readonly exchanges: PromptExchange[] = []
  /** The tool calls that the caller was given to bring back. */
  readonly calls = new Set<string>()
  /**
   * The exchanges of a failed call, by its number of messages: the repeated call continues there.
   */
  unfinished: Unfinished | null = null
  #pending: string | null = null
  #taken = false
  #failed_at: number | null = null

  constructor(options: ModelTurnOptions) {
    this.options = options
  }

  /** The last call failed recently, so the next one with the same words is its repetition. */
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

const MOST_ROUNDS = 4

/** The rounds of one call of the wrapped model and their proposals. */
export class TurnCall {
  readonly reports: SkillReport[] = []
  #rounds = 0
  readonly #turn: ModelTurn
  readonly #text: string
  readonly #signal: AbortSignal | undefined

  constructor(turn: ModelTurn, { text, signal }: { text: string; signal: AbortSignal | undefined }) {
    this.#turn = turn
    this.#text = turn.options.text ?? text
    this.#signal = signal
  }

  /** Begins a round. Returns the bulletin for the first one. */
  begin(): string {
    this.#signal?.throwIfAborted()
    return this.#rounds === 0 ? this.#turn.bulletin(this.#text) : ''
  }

  /** The model answered. `calls` are its tool calls that the caller has to bring back. */
  answered(calls: readonly string[]): void {
    this.#rounds += 1
    this.#turn.answered()
    for (const id of calls) this.#turn.calls.add(id)
  }

  get isLastRound(): boolean {
    return this.#rounds >= (this.#turn.options.max_rounds ?? MOST_ROUNDS)
  }

  /** Refuses the proposals of the last round. Adds a note to the text if there is nothing else. */
  cutOff(visible: string, { silent }: { silent: boolean }): string {
    const reason = `not acted upon: the answer took ${this.#rounds} rounds already`
    this.report({ kind: 'problem', skill_id: '', status: 'refused', reason })
    return visible.trim() === '' && silent ? `${visible}I stopped after ${this.#rounds} rounds of skills without an answer.` : visible
  }

  clarify(questions: Question[]): void {
    this.report({ kind: 'clarify', questions })
  }

  async settle(intents: readonly Intent[]): Promise<CallReply[]> {
    const { session, roles, goal_labels, entity_types } = this.#turn.options
    const request = { from: 'model', roles, text: this.#text, signal: this.#signal, goal_labels, entity_types } as const
    const { replies, reports } = await settleIntents(intents, { session, request })
    for (const report of reports) this.report(report)
    return replies
  }

  report(report: SkillReport): void {
    this.reports.push(report)
    this.#turn.options.onReport?.(report)
  }

  ended<End>(end: End): End {
    this.#turn.ended({ failed: false })
    return end
  }

  /** Marks the call as failed if the work fails. */
  async attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      this.#turn.ended({ failed: true })
      throw error
    }
  }

  /** Marks the call as failed if its stream fails, or is left before its end. */
  async *watched<Part>(parts: AsyncGenerator<Part>): AsyncGenerator<Part> {
    let whole = false
    try {
      yield* parts
      whole = true
    } finally {
      if (!whole) this.#turn.ended({ failed: true })
    }
  }
}
