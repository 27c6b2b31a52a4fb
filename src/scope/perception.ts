import { relevant } from '../core/filter.ts'
import type { Agent } from '../agents/define-agent.ts'
import type { Settings } from '../protocol/settings.ts'
import type { Inbox, Stored } from './inbox.ts'
import type { Log } from './log.ts'
import type { Settlement } from './settlement.ts'
import { scopeHead } from './spans.ts'
import type { WorkingMemory } from './working-memory.ts'

type Parts = {
  inbox: Inbox
  memory: WorkingMemory
  log: Log
  settlement: Settlement
  agent: () => Agent
  settings: () => Settings
  thinking: () => boolean
}

const messageOf = (error: unknown): string => (error instanceof Error ? `${error.name}: ${error.message}` : String(error))

/** Step 2: filters decide what joins the DecisionContext. Synchronous and short: it never waits for a turn (G4). */
export class Perception {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Within a unit of work; `stored` is in order of acceptance (G2). Returns how many events now wait for a turn. */
  perceive(stored: readonly Stored[]): number {
    const { settings, memory, inbox, settlement } = this.#parts
    if (settings().consumer === 'pull' || stored.length === 0) return 0
    const matched: Stored[] = []
    const ignored: number[] = []
    for (const one of stored) {
      const verdict = this.#filter(one)
      if (verdict.relevant === true) matched.push(one)
      else if (verdict.relevant === false) ignored.push(one.seq)
      else settlement.failed(inbox.failPerceiving([one.seq], settlement.failure(verdict.error)), verdict.error)
    }
    if (matched.length > 0) memory.keep(matched)
    settlement.end(ignored, 'ignored', { by: 'filter' })
    const reason = this.#withoutTurn()
    if (reason === null) return matched.length
    settlement.end(matched.map(({ seq }) => seq), 'completed', { by: 'perceive', reason })
    this.trim()
    return 0
  }

  /** Bounds the context; what leaves was considered already. */
  trim(): void {
    const { memory, log, settings } = this.#parts
    const count = memory.trim()
    if (count > 0) log.append([{ ...scopeHead(), kind: 'context-trimmed', count, context_limit: settings().context_limit }])
  }

  /** A filter sees the event in the context's company, before it joins. */
  #filter(one: Stored): { relevant: true } | { relevant: false } | { relevant: null; error: string } {
    const { agent, memory } = this.#parts
    try {
      if (!relevant(agent().filters, one.event, memory.live)) return { relevant: false }
    } catch (error) {
      return { relevant: null, error: `a filter of agent ${agent().name} failed: ${messageOf(error)}` }
    }
    memory.add(one)
    return { relevant: true }
  }

  #withoutTurn(): string | null {
    const { agent, settings, thinking } = this.#parts
    if (agent().trigger === null) return `agent ${agent().name} has no trigger`
    if (settings().overlap === 'drop' && thinking()) return 'a turn was in flight, and the overlap policy is drop'
    return null
  }
}
