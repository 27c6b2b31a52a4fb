import type { EntryHead, EntryKind, NewEntry, SkillEntryKind } from '../../contract/log-entry.ts'
import type { Family } from '../../contract/reports/statistics.ts'
import { sampleBucket } from '../../reflexes/metrics.ts'

type Counts = Record<string, number>
/** Adds to the open buckets. A count named `max_…` is compared instead. */
export type Add = (family: Family, label: string, counts: Counts) => void

/** The running turn, as far as its end is counted with what happened in it. */
type OpenTurn = {
  span_id: string
  /** The first card of its bulletin, if it had one. */
  first: string | null
  has_bulletin: boolean
  /** `pending`: proposals that did not run successfully. */
  skills: Record<string, { runs: number; ok: number; pending: number }>
}
export type FoldRecord = {
  turn: OpenTurn | null
  /** Failures in a row, by skill. */
  streaks: Record<string, number>
  /** Sums over all turns, whose averages are what a reflex saves. */
  sums: { turns: number; model_calls: number; tokens: number; cost_usd: number }
}

export const emptyFold = (): FoldRecord => ({ turn: null, streaks: {}, sums: { turns: 0, model_calls: 0, tokens: 0, cost_usd: 0 } })

type Context = { record: FoldRecord; add: Add; has_trigger: boolean }
type SkillEntry = EntryHead & Readonly<Record<string, unknown>>
type EntryOf<Kind extends EntryKind> = Kind extends SkillEntryKind ? SkillEntry : Extract<NewEntry, { kind: Kind }>
type Handlers = { [Kind in EntryKind]?: (entry: EntryOf<Kind>, context: Context) => void }

const sample = (name: string, value: number): Counts => ({ [`${name}.${sampleBucket(value)}`]: 1 })
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Counts one log entry. The log alone gives the same numbers again. */
export function foldEntry(entry: NewEntry, context: Context): void {
  const handle = handlers[entry.kind] as ((one: NewEntry, to: Context) => void) | undefined
  handle?.(entry, context)
}

const handlers: Handlers = {
  'event-accepted': (_entry, { add }) => add('scope', '', { accepted: 1 }),
  'event-retried': (_entry, { add }) => add('scope', '', { retried: 1 }),
  'event-ended': ({ status, outcome }, context) => {
    const by = outcome.by === 'turn' && outcome.idle ? 'condition' : outcome.by
    context.add('scope', '', { [status]: 1, [`by_${by}`]: 1 })
    if (outcome.by === 'reflex') countDecided(outcome.reflex_id, { ...context, reused: outcome.reused === true })
  },
  'turn-started': ({ span_id }, { record }) => {
    record.turn = { span_id, first: null, has_bulletin: false, skills: {} }
  },
  'turn-ended': (entry, context) => endTurn(entry, context),
  'model-called': ({ status, usage: { input_tokens, output_tokens, cost_usd } }, { add }) =>
    add('scope', '', {
      model_calls: 1,
      model_failures: status === 'ok' ? 0 : 1,
      input_tokens,
      output_tokens,
      model_cost_usd: cost_usd ?? 0,
      unpriced_calls: cost_usd === null ? 1 : 0,
    }),
  'decision-made': (entry, context) => {
    handlers['model-called']?.(entry as never, context)
    const { middle } = entry
    if (middle) context.add('reflex', middle.decision_id, { runs: 1, fires: middle.left === null ? 1 : 0 })
  },
  'notice-ended': ({ status }, { add }) => add('scope', '', { notices: 1, notices_failed: status === 'delivered' ? 0 : 1 }),
  'effect-ended': ({ status, tool }, { add }) => {
    const failed = status === 'ok' || status === 'reused' ? 0 : 1
    add('scope', '', { effects: 1, effects_failed: failed })
    add('tool', tool, { calls: 1, failed })
  },
  'reflex-fired': ({ reflex_id, state, duration_us }, { add }) => {
    add('scope', '', sample('reflex_us', duration_us))
    if (state === 'shadow') return add('reflex', reflex_id, { runs: 1, shadow_fires: 1 })
    add('reflex', reflex_id, { runs: 1, fires: 1 })
    add('scope', '', { fires: 1 })
  },
  'reflex-passed': ({ reflex_id, reason, duration_us }, { add }) => {
    add('scope', '', sample('reflex_us', duration_us))
    add('reflex', reflex_id, { runs: 1, errors: reason === 'error' || reason === 'limit' || reason === 'invalid_action' ? 1 : 0 })
  },
  'replay-done': ({ mode, compared, changed }, { add }) => {
    if (mode === 'pinned') add('scope', '', { replayed: compared, replayed_otherwise: changed })
  },
  'reflex-overruled': ({ reflex_id }, { add }) => add('reflex', reflex_id, { overruled: 1 }),
  'dry-turn-ended': ({ usage }, { add }) => add('scope', '', { dry_turns: 1, dry_turn_cost_usd: usage.cost_usd ?? 0 }),
  'reflex-audited': ({ reflex_id, judged_by, agreed }, { add }) => {
    const counts =
      judged_by === 'audit' ? { audits: 1, audits_disagreed: agreed === false ? 1 : 0 } : { corrections: agreed === false ? 1 : 0 }
    add('reflex', reflex_id, counts)
    add('scope', '', counts)
  },
  'reflex-moved': ({ reflex_id, from, to }, { add }) => {
    if (from !== 'active' || to === 'active') return
    add('reflex', reflex_id, { evictions: 1 })
    add('scope', '', { evictions: 1 })
  },
  'bulletin-built': ({ cards, tokens, parent_id }, { record, add }) => {
    add('scope', '', { bulletins: 1, bulletin_tokens: typeof tokens === 'number' ? tokens : 0 })
    const turn = turnOf(record, parent_id)
    if (!turn || !Array.isArray(cards)) return
    turn.has_bulletin = true
    turn.first = textOf((cards[0] as { skill_id?: unknown } | undefined)?.skill_id) || null
  },
  'skill-decided': (entry, context) => {
    if (entry.dry_run === true) return
    countDecision(entry, 1, context)
    if (entry.duration_ms !== null) context.add('scope', '', sample('gate_us', 1000 * entry.duration_ms))
  },
  // The gate decides again with the parsed slots.
  'skill-slots-parsed': (entry, context) => countDecision({ ...entry, decision: { verdict: 'clarify' } }, -1, context),
  'skill-refused': (_entry, { add }) => add('scope', '', { skill_refusals: 1 }),
  'approval-requested': ({ skill_id }, { add }) => add('skill', textOf(skill_id), { approvals: 1 }),
  'skill-started': ({ skill_id, parent_id }, { record, add }) => {
    const id = textOf(skill_id)
    add('skill', id, { calls: 1 })
    const turn = turnOf(record, parent_id)
    if (turn) inTurn(turn, id).runs += 1
  },
  'skill-reused': (entry, context) => endRun(entry, context, 'reused'),
  'skill-applied': (entry, context) => endRun(entry, context, textOf(entry.status)),
}

const turnOf = ({ turn }: FoldRecord, parent_id: string | null): OpenTurn | null => (turn?.span_id === parent_id ? turn : null)

const inTurn = ({ skills }: OpenTurn, id: string) => (skills[id] ??= { runs: 0, ok: 0, pending: 0 })

/**
 * Counts the average cost of a turn as saved, since no turn sees the event. A reused action saves
 * nothing again.
 */
function countDecided(reflex_id: string, { record: { sums }, add, has_trigger, reused }: Context & { reused: boolean }): void {
  const counts: Counts = { decided: 1 }
  if (has_trigger && !reused) {
    const share = (sum: number) => (sums.turns === 0 ? 0 : sum / sums.turns)
    counts['saved_model_calls'] = sums.turns === 0 ? 1 : share(sums.model_calls)
    counts['saved_tokens'] = share(sums.tokens)
    counts['saved_cost_usd'] = share(sums.cost_usd)
  }
  add('reflex', reflex_id, counts)
  add('scope', '', counts)
}

type Decided = { skill_id?: unknown; decision?: unknown; parent_id: string | null }

function countDecision({ skill_id, decision, parent_id }: Decided, change: 1 | -1, { record, add }: Context): void {
  const id = textOf(skill_id)
  const verdict = textOf((decision as { verdict?: unknown } | null)?.verdict)
  const counts: Counts = { proposals: change }
  if (verdict === 'clarify') counts['clarifies'] = change
  if (verdict === 'deny') counts['policy_denials'] = change
  add('skill', id, counts)
  add('scope', '', counts)
  const turn = turnOf(record, parent_id)
  // An approval is not a failure of the proposal.
  if (turn && verdict !== 'needs_approval') inTurn(turn, id).pending += change
}

type Ended = { skill_id?: unknown; cost_usd?: unknown; duration_ms: number | null; parent_id: string | null }

function endRun({ skill_id, cost_usd, duration_ms, parent_id }: Ended, { record, add }: Context, status: string): void {
  const id = textOf(skill_id)
  const is_ok = status === 'ok' || status === 'reused'
  const streak = is_ok ? 0 : (record.streaks[id] ?? 0) + 1
  if (is_ok) delete record.streaks[id]
  else record.streaks[id] = streak
  add('skill', id, {
    [status === 'reused' ? 'reused' : is_ok ? 'ok' : 'failed']: 1,
    ...(streak > 0 && { max_streak: streak }),
    ...(typeof cost_usd === 'number' && { cost_usd }),
    ...(duration_ms !== null && sample('run_ms', duration_ms)),
  })
  const turn = turnOf(record, parent_id)
  if (!turn || !is_ok) return
  const known = inTurn(turn, id)
  known.ok += 1
  known.pending -= 1
}

/** The sums with a turn, if the entry ends one. */
export function addTurn(sums: FoldRecord['sums'], entry: NewEntry): FoldRecord['sums'] {
  if (entry.kind !== 'turn-ended') return sums
  const { model_calls, input_tokens, output_tokens, cost_usd } = entry.usage
  return {
    turns: sums.turns + 1,
    model_calls: sums.model_calls + model_calls,
    tokens: sums.tokens + input_tokens + output_tokens,
    cost_usd: sums.cost_usd + (cost_usd ?? 0),
  }
}

function endTurn(entry: EntryOf<'turn-ended'>, { record, add }: Context): void {
  const { status, duration_ms, span_id, usage } = entry
  const cost_usd = usage.cost_usd ?? 0
  record.sums = addTurn(record.sums, entry)
  const turn = turnOf(record, span_id)
  record.turn = null
  const measured: Counts = {
    turns: 1,
    turn_cost_usd: cost_usd,
    ...(duration_ms !== null && { turn_time_ms: duration_ms, ...sample('turn_ms', duration_ms) }),
  }
  const used = Object.entries(turn?.skills ?? {})
  const counts: Counts = {
    ...measured,
    turns_failed: status === 'failed' || status === 'timeout' ? 1 : 0,
    refused: status === 'refused' ? 1 : 0,
  }
  if (turn?.has_bulletin && used.some(([, { ok }]) => ok > 0)) {
    counts['ranked'] = 1
    counts['ranked_first'] = turn.first !== null && (turn.skills[turn.first]?.ok ?? 0) > 0 ? 1 : 0
  }
  for (const [id, { runs, pending }] of used) {
    const fallbacks = status === 'result' ? Math.max(0, pending) : 0
    add('skill', id, { ...(runs > 0 && measured), fallbacks })
    counts['fallbacks'] = (counts['fallbacks'] ?? 0) + fallbacks
  }
  add('scope', '', counts)
}
