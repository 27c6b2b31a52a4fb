import type { Event } from '../../core/event.ts'
import { byteLength } from '../../base/json.ts'
import { isFields } from '../../base/check-json.ts'
import { limits } from '../../base/limits.ts'
import type { Outcome } from '../../contract/event-record.ts'
import type { ReflexEntry } from '../../contract/log-entry.ts'
import { type Decision, type ReflexRecording, actsOf } from '../../contract/reflex.ts'
import { RECENT_EVENTS, WINDOW_MS, type ReflexContext, type WindowCounts } from '../../reflexes/reflex-context.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Database } from '../../kernel/unit.ts'
import { serving } from '../storage/serving.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Log } from '../log/log.ts'
import type { Toolbox } from '../../agent/toolbox.ts'
import { shownOf } from '../../reflexes/context/context-json.ts'
import { sandboxLimits } from '../../reflexes/sandbox.ts'

const MOST_COUNTED = 1000
/** Steps that a rebuilt context counts as, between the rests of the scope. */
const STEPS_OF_CONTEXT = 2
const PAGE_BYTES = 1_000_000
/** Log entries of a chain per event: an active and a shadow version of each reflex. */
const MOST_ENTRIES = 2 * limits.chain_length

type ReactionRow = {
  seq: number
  id: string
  payload: string
  accepted_at: number
  outcome: string | null
  chain_seq: number | null
}
/** The entry of a reflex that ran, or was held back, on an event. */
type Seen = Pick<ReactionRow, 'seq' | 'payload' | 'accepted_at' | 'outcome'>
type Counted = { at: number; type: string; source: string }
type Span = { since: number; after: number; limit: number }
type Shown = { event: Event; at: number; scratch: Record<string, unknown> }
type Page = { recordings: string[]; next: number | null }
type RecordingsParts = {
  database: Database
  log: Log
  agent: () => Agent
  toolbox: Toolbox
  owned: { readonly ids: readonly string[] }
  features: readonly Pick<ScopeFeature, 'context'>[]
}

/**
 * Recorded events, contexts and decisions for evaluating a reflex on the past. A context is read
 * from the log if the chain ran, else rebuilt from the inbox.
 */
export class Recordings {
  readonly #parts: RecordingsParts

  constructor(parts: RecordingsParts) {
    this.#parts = parts
  }

  /**
   * Reads events accepted since `since` (ms) after place `after`, oldest first, without filtered
   * ones. A page holds at most `limit` events or about 1 MB, since reading it blocks the scope.
   */
  read(request: Span): Page {
    const recordings: string[] = []
    let left = PAGE_BYTES
    const newest = new Newest(this.#parts.database)
    for (const row of this.#rows(request)) {
      const recording = JSON.stringify(this.#recording(row, newest))
      recordings.push(recording)
      left -= byteLength(recording)
      if (left <= 0 || recordings.length === request.limit) return { recordings, next: row.seq }
    }
    return { recordings, next: null }
  }

  /** Reads the newest `limit` events since `since`, oldest first. */
  latest(since: number, limit: number): ReflexRecording[] {
    const first = this.#parts.database.first<{ seq: number | null }>(
      `SELECT min(seq) AS seq FROM (SELECT seq FROM events WHERE status <> 'ignored' ORDER BY seq DESC LIMIT ?)`,
      limit,
    )
    const rows = this.#rows({ since, after: (first?.seq ?? 1) - 1, limit })
    const newest = new Newest(this.#parts.database)
    return Array.from(rows, (row) => this.#recording(row, newest))
  }

  /** An event, and what the chain logged about it. Null if a filter left it out, or it is gone. */
  of(id: string): { recording: ReflexRecording; ran: ReflexEntry[] } | null {
    const sql = `SELECT seq, id, payload, accepted_at, outcome, chain_seq FROM events WHERE id = ? AND status <> 'ignored'`
    const row = this.#parts.database.first<ReactionRow>(sql, id)
    if (!row) return null
    const ran = row.chain_seq === null ? [] : Array.from(this.#ran(id, row.chain_seq))
    return { recording: this.#recording(row, new Newest(this.#parts.database)), ran }
  }

  /**
   * Contexts of events that no reflex saw, by event id. At most about `bytes` of JSON. Others may
   * call the scope meanwhile.
   */
  async rebuilt(ids: readonly string[], bytes: number): Promise<Record<string, unknown>> {
    const sql = `SELECT seq, id, payload, accepted_at, outcome, chain_seq FROM events
      WHERE id IN (SELECT value FROM json_each(?1)) AND chain_seq IS NULL AND status <> 'ignored' ORDER BY seq`
    const found: [string, unknown][] = []
    const newest = new Newest(this.#parts.database)
    let left = bytes
    const resting = serving()
    for (const row of this.#parts.database.allOf<ReactionRow>(ids, sql)) {
      await resting.rest(STEPS_OF_CONTEXT)
      const context = this.#context(row, newest)
      left -= byteLength(JSON.stringify(context))
      if (left < 0) break
      found.push([row.id, context])
    }
    return Object.fromEntries(found)
  }

  #rows({ since, after, limit }: Span): Iterable<ReactionRow> {
    return this.#parts.database.each<ReactionRow>(
      `SELECT seq, id, payload, accepted_at, outcome, chain_seq FROM events WHERE seq > ? AND accepted_at >= ? AND status NOT IN ('ignored') ORDER BY seq LIMIT ?`,
      after,
      since,
      limit,
    )
  }

  #recording({ seq, id, payload, accepted_at, outcome, chain_seq }: ReactionRow, newest: Newest): ReflexRecording {
    const logged = chain_seq === null ? null : this.#logged(id, chain_seq)
    const ended = outcome === null ? null : (JSON.parse(outcome) as Outcome)
    return {
      seq,
      event_id: id,
      at: new Date(accepted_at).toISOString(),
      source: logged ? 'recorded' : 'rebuilt',
      context: logged ?? this.#context({ seq, payload, accepted_at, outcome }, newest),
      decision: ended && this.#decision(ended),
    }
  }

  /** The context that a reflex would have been shown. */
  #context({ seq, payload, accepted_at: at, outcome }: Seen, newest: Newest): unknown {
    const scratch = outcome === null ? {} : this.#scratch(JSON.parse(outcome) as Outcome)
    return this.#parts.log.clean(this.#rebuilt(seq, { event: JSON.parse(payload) as Event, at, scratch }, newest))
  }

  /** The context that a reflex was shown, from the entries that the chain left about the event. */
  #logged(id: string, chain_seq: number): ReflexContext | null {
    for (const { context } of this.#ran(id, chain_seq)) if (context) return context as ReflexContext
    return null
  }

  *#ran(id: string, chain_seq: number): Iterable<ReflexEntry> {
    for (const entry of this.#parts.log.entries(chain_seq, MOST_ENTRIES)) {
      const ran = entry.kind === 'reflex-fired' || entry.kind === 'reflex-passed'
      if (ran && entry.event_ids[0] === id) yield entry
    }
  }

  #decision(outcome: Outcome): Decision | null {
    const entry = 'log_seq' in outcome && outcome.log_seq !== undefined ? this.#parts.log.entry(outcome.log_seq) : null
    if (outcome.by === 'turn' && entry?.kind === 'turn-ended') return { by: 'turn', acts: entry.acts }
    if (outcome.by !== 'reflex' || entry?.kind !== 'reflex-fired') return null
    return { by: 'reflex', acts: actsOf(entry.action, this.#parts.toolbox.keyOf) }
  }

  /** The scratch that the deciding turn saw. */
  #scratch(outcome: Outcome): Record<string, unknown> {
    const { log } = this.#parts
    const ended = outcome.by === 'turn' && outcome.log_seq !== undefined ? log.entry(outcome.log_seq) : null
    const started = ended?.kind === 'turn-ended' ? log.entry(ended.started_seq) : null
    return started?.kind === 'turn-started' && isFields(started.saw.scratch) ? started.saw.scratch : {}
  }

  #rebuilt(seq: number, { event, at, scratch }: Shown, newest: Newest): ReflexContext {
    const { database, agent, owned, features } = this.#parts
    const before = newest.upTo(seq)
    // Skip events that would not fit into the context.
    const recent = database.all<{ payload: string }>(
      `SELECT payload FROM events WHERE seq IN (SELECT seq FROM
          (SELECT seq, sum(bytes) OVER (ORDER BY seq DESC) AS upto FROM
            (SELECT seq, octet_length(payload) AS bytes FROM events WHERE seq <= ? AND status <> 'ignored'
              ORDER BY seq DESC LIMIT ${RECENT_EVENTS}))
          WHERE upto <= ${sandboxLimits.context_bytes}) ORDER BY seq`,
      seq,
    )
    const within = (span: number): WindowCounts => {
      const rows = before.filter((row) => row.at >= at - span)
      return { total: rows.length, by_type: tally(rows.map(({ type }) => type)), by_source: tally(rows.map(({ source }) => source)) }
    }
    const context: ReflexContext = {
      agent_id: agent().name,
      tick: seq,
      balance: 0,
      llm_tokens_remaining: null,
      recent_events: recent.map(({ payload: text }) => JSON.parse(text) as Event),
      pending_purchases: [],
      pending_contracts: [],
      owned_artifacts: owned.ids,
      event,
      window: { '10s': within(WINDOW_MS['10s']), '1m': within(WINDOW_MS['1m']), '10m': within(WINDOW_MS['10m']) },
      recent_actions: [],
      scratch,
      thinking: null,
    }
    // Offers and proposals of that time are not recorded.
    return shownOf(
      Object.assign(context, ...features.map((feature) => feature.context?.()), {
        pending_purchases: [],
        pending_contracts: [],
      }) as ReflexContext,
    )
  }
}

/** The newest events up to a place. The place only rises, so that each event is read once. */
class Newest {
  readonly #database: Database
  #rows: Counted[] = []
  #read = 0

  constructor(database: Database) {
    this.#database = database
  }

  upTo(seq: number): readonly Counted[] {
    const more = this.#database.all<Counted>(
      `SELECT accepted_at AS at, type, source FROM events WHERE seq > ? AND seq <= ? AND status <> 'ignored' ORDER BY seq DESC LIMIT ${MOST_COUNTED}`,
      this.#read,
      seq,
    )
    this.#rows = [...more, ...this.#rows].slice(0, MOST_COUNTED)
    this.#read = seq
    return this.#rows
  }
}

function tally(names: readonly string[]): Record<string, number> {
  const sums = new Map<string, number>()
  for (const name of names) sums.set(name, (sums.get(name) ?? 0) + 1)
  return Object.fromEntries(sums)
}
