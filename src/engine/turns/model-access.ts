import type { UsedLicence } from '../../contract/licence.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { FoldRecord } from '../../traces/entries/kind.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { backoff } from '../../base/backoff.ts'
import { iso } from '../../base/time.ts'
import { faultText, type ModelFault } from '../../base/faults.ts'
import type { ModelRefusal } from '../../models/model-errors.ts'
import type { TraceContext } from '../../contract/scope-api.ts'
import type { ModelWait } from '../../contract/scope.ts'
import { Money, type MoneyParts } from './money.ts'
import { moved, type OtherPeriods } from '../effects/shared-money.ts'
import type { Parking } from '../inbox/parking.ts'
import { scopeHead } from '../log/spans.ts'
import type { ModelReport } from '../../store/scope-rows.ts'

type Allowance = { ok: true } | ModelRefusal

/** `declared`: the budgets of the deployment, if it has any. */
type BudgetParts = Pick<MoneyParts, 'now' | 'scope' | 'shared' | 'problem' | 'lease'> & { declared: string | undefined }

/** A refusal by a budget, for whose events it is shown, and the limits that it followed from. */
type ShownRefusal = { at: number; detail: string; limits: string }

type Used = { period: number; tokens: number; others?: OtherPeriods }

const TOLD = 'budget_told'
/** A scope wakes this often while its events wait for a budget: a deploy may have raised it. */
const LOOK_MS = 3_600_000
const PERIOD_MS = { hour: 3_600_000, day: 86_400_000, total: Number.POSITIVE_INFINITY }

/** The limits of the scope's model calls: tokens in a period, aligned to UTC, and money. */
export class Budget {
  readonly #settings: () => Settings
  readonly #now: () => number
  /** Undefined while no budget in money is set. */
  readonly money: () => Money | undefined
  readonly #declared: string | undefined
  #told: ShownRefusal | null
  #used: Used

  constructor(database: Database, settings: () => Settings, { now, ...shared }: BudgetParts) {
    this.#settings = settings
    const budget = () => settings().budget
    let money: Money | undefined
    this.money = () => ((money ?? (budget() || shared.declared)) ? (money ??= new Money({ ...shared, database, budget, now })) : undefined)
    this.#now = now
    this.#declared = shared.declared
    this.#told = database.read<ShownRefusal | null>(TOLD, null)
    this.#used = database.read('budget', { period: 0, tokens: 0 })
  }

  /** The context's `llm_tokens_remaining`; null without a budget. */
  remaining(): number | null {
    const budget = this.#settings().token_budget
    if (budget === null) return null
    return Math.max(0, budget.tokens - this.#usedIn(this.#period()).tokens)
  }

  allow(): Allowance {
    const budget = this.#settings().token_budget
    if (budget === null || (this.remaining() ?? 0) > 0) return this.money()?.spentOut() ?? { ok: true }
    const length = PERIOD_MS[budget.per]
    const until = Number.isFinite(length) ? (this.#period() + 1) * length : null
    const renewed = until === null ? '' : `it is renewed at ${iso(until)}, or `
    const when = `${renewed}raise token_budget in the settings to continue`
    return { ok: false, reason: 'budget', until, detail: `the token budget of ${budget.tokens} per ${budget.per} is spent; ${when}` }
  }

  spend(unit: Unit, tokens: number): void {
    const period = this.#period()
    if (this.#used.period !== period) this.#used = this.#usedIn(period)
    this.#used = { ...this.#used, tokens: tokens + this.#used.tokens }
    unit.write('budget', this.#used)
  }

  /** The refusal for people; null without one. */
  get told(): string | null {
    return this.#told?.detail ?? null
  }

  /** Notes that a turn's events wait from now on. */
  refused(unit: Unit, detail: string): void {
    this.#tell(unit, { at: unit.now, detail, limits: this.#limits() })
  }

  /** On waking: true if other limits hold than those by which events wait. */
  changed(unit: Unit): boolean {
    if (this.#told === null || this.#told.limits === this.#limits()) return false
    this.#tell(unit, null)
    return true
  }

  /** Time after `since` at which a scope whose events wait wakes to look; null if none do. */
  looksAt(since: number, parking: Pick<Parking, 'waits'>): number | null {
    if (this.#told === null || !parking.waits('budget', since)) return null
    const { at } = this.#told
    return at + (Math.floor(Math.max(0, since - at) / LOOK_MS) + 1) * LOOK_MS
  }

  #tell(unit: Unit, told: ShownRefusal | null): void {
    unit.write(TOLD, told)
    this.#told = told
  }

  /** The settings are the agent's, too, which a deploy changes like the variable. */
  #limits(): string {
    const { budget, token_budget } = this.#settings()
    return JSON.stringify([budget ?? null, token_budget, this.#declared ?? null])
  }

  #usedIn(period: number): Used {
    const { sum, others } = moved(this.#used.others, [this.#used.period, this.#used.tokens], period)
    return { period, tokens: sum, others }
  }

  #period(): number {
    const budget = this.#settings().token_budget
    const length = PERIOD_MS[budget?.per ?? 'total']
    return Number.isFinite(length) ? Math.floor(this.#now() / length) : 0
  }
}

type Saving = { agent: () => Pick<Agent, 'trigger'>; features: readonly { readonly turns?: () => FoldRecord['sums'] | null }[] }
const NO_TURNS = { turns: 0, model_calls: 0, tokens: 0, cost_usd: 0 }

/** The average cost of the turns so far, which an action that spares one saves. */
export function savingsOf({ agent, features }: Saving): NonNullable<UsedLicence['saves']> {
  // The counters have the model calls of dry turns, too.
  const counting = features.find((feature) => feature.turns)
  const sums = counting?.turns?.()
  if (agent().trigger === null || sums === null) return { model_calls: 0, tokens: 0, cost_usd: 0 }
  const { turns, model_calls, tokens, cost_usd } = sums ?? NO_TURNS
  const share = (sum: number) => (turns === 0 ? 0 : sum / turns)
  return { model_calls: turns === 0 ? 1 : share(model_calls), tokens: share(tokens), cost_usd: share(cost_usd) }
}

/** Times in ms. `tries` counts turns that failed to reach the model. */
type Outage = { since: number; tries: number; ask_at: number; detail: string }

type ModelOutageParts = { database: Database; settings: () => Settings; now: () => number; random: () => number; parking: Parking }

const OUTAGE = 'model_outage'

/**
 * An outage of the model's provider. Until `ask_at` the model is not called; then the next turn
 * retries for all waiting events. An answer releases them all.
 */
export class ModelOutage {
  readonly #parts: ModelOutageParts
  #outage: Outage | null

  constructor(parts: ModelOutageParts) {
    this.#parts = parts
    this.#outage = parts.database.read<Outage | null>(OUTAGE, null)
  }

  /** Time of the next retry in ms; null without an outage. */
  get askAt(): number | null {
    return this.#outage?.ask_at ?? null
  }

  /** Text for people; null without an outage. */
  get told(): string | null {
    return this.#outage && describe(this.#outage)
  }

  get state(): ModelWait | null {
    if (this.#outage === null) return null
    const { since, tries, ask_at, detail } = this.#outage
    return { since: iso(since), until: iso(ask_at), tries, detail }
  }

  allow(): { ok: true } | ModelRefusal {
    const outage = this.#outage
    if (outage === null || outage.ask_at <= this.#parts.now()) return { ok: true }
    return { ok: false, reason: 'outage', until: outage.ask_at, detail: describe(outage) }
  }

  /** Records that a turn failed to reach the model. */
  failed(unit: Unit, fault: ModelFault): void {
    const at = unit.now
    const { settings, random } = this.#parts
    const { since, tries } = this.#outage ?? { since: at, tries: 0 }
    const delay = retryDelay(fault, { tries, retry: settings().retry, jitter: random() })
    this.#keep(unit, { since, tries: tries + 1, ask_at: at + delay, detail: faultText(fault) })
    if (tries > 0) return
    const { retry_after_ms, status } = fault
    unit.log({ ...scopeHead(), kind: 'model-lost', status, error: faultText(fault), retry_after_ms, ask_at: iso(at + delay) })
  }

  /** Ends the outage. */
  answered(unit: Unit): void {
    if (this.#outage === null) return
    const { parking } = this.#parts
    const { since, tries } = this.#outage
    this.#keep(unit, null)
    parking.release(unit, 'model')
    unit.log({ ...scopeHead(), kind: 'model-restored', since: iso(since), waited_ms: unit.now - since, tries })
  }

  /** Retries now, after a change of the settings. */
  hurry(unit: Unit): void {
    if (this.#outage) this.#keep(unit, { ...this.#outage, ask_at: unit.now })
  }

  /** A person asks to retry now. Returns null without an outage, and else what is logged of it. */
  hurriedBy(unit: Unit, by: string, trace?: TraceContext): { tries: number } | null {
    if (this.#outage === null) return null
    const { since, tries } = this.#outage
    this.#parts.parking.release(unit, 'model')
    this.hurry(unit)
    unit.log({ ...scopeHead(trace), kind: 'model-hurried', by, since: iso(since), tries })
    return { tries }
  }

  /** Corrects times written by a clock that was ahead by `ahead_ms`. */
  moved(unit: Unit, ahead_ms: number): void {
    const { now } = unit
    if (this.#outage === null) return
    const { since, ask_at } = this.#outage
    this.#keep(unit, { ...this.#outage, since: Math.min(since, now), ask_at: Math.max(now, ask_at - ahead_ms) })
  }

  #keep(unit: Unit, outage: Outage | null): void {
    unit.write(OUTAGE, outage)
    this.#outage = outage
  }
}

/** Waits at least the provider's `Retry-After`, and never longer than the maximum outage. */
function retryDelay(
  { retry_after_ms }: ModelFault,
  { tries, retry, jitter }: { tries: number; retry: Settings['retry']; jitter: number },
): number {
  const { backoff_ms, max_backoff_ms, model_outage_s } = retry
  const pause_ms = backoff({ first_ms: backoff_ms, longest_ms: max_backoff_ms }, tries + 1) * ((1 + jitter) / 2)
  // Jitter spreads the retries of scopes that received the same time.
  const told = retry_after_ms === null ? 0 : retry_after_ms + jitter * backoff_ms
  return Math.ceil(Math.min(Math.max(pause_ms, told), model_outage_s * 1000))
}

const describe = ({ since, ask_at, detail }: Outage): string =>
  `waiting for the model since ${iso(since)}: ${detail}; next retry at ${iso(ask_at)}`

/**
 * The last results of the scope's model calls. Times in ms. `failures`: since the answer. `lost`:
 * failures of the deployment's model alone, and `served_at`: its last answer. An earlier version
 * writes neither.
 */
type Calls = {
  answered_at: number | null
  failing_since: number | null
  failures: number
  error: string | null
  lost?: number
  served_at?: number
}

const CALLS = 'model_calls'
const NONE: Calls = { answered_at: null, failing_since: null, failures: 0, error: null, lost: 0 }
/** Answers in a row are written this often: each write costs, and people read minutes. */
const ANSWER_MS = 10_000

/** Health is judged by what real calls did: a request made only to probe a model costs money. */
export class ModelCalls {
  #calls: Calls

  constructor(database: Pick<Database, 'read'>) {
    this.#calls = database.read(CALLS, NONE)
  }

  /** `is_shared`: by the deployment's model, which others have, too. */
  answered(unit: Unit, is_shared: boolean): void {
    const { answered_at, failures, served_at = 0 } = this.#calls
    const last = is_shared ? served_at || null : answered_at
    if (failures === 0 && last !== null && Math.abs(unit.now - last) < ANSWER_MS) return
    this.#keep(unit, { ...NONE, answered_at: unit.now, served_at: is_shared ? unit.now : served_at })
  }

  /** `is_lost`: anybody's call of the deployment's model would fail. */
  failed(unit: Unit, error: string, is_lost: boolean): void {
    const { failing_since, failures, lost = 0 } = this.#calls
    const counts = { failures: failures + 1, lost: lost + (is_lost ? 1 : 0) }
    this.#keep(unit, { ...this.#calls, failing_since: failing_since ?? unit.now, error, ...counts })
  }

  #keep(unit: Unit, calls: Calls): void {
    unit.write(CALLS, calls)
    this.#calls = calls
  }
}

/** For the scope's row in D1, as stored. `is_open`: events may wait for the model. */
export function modelReport(database: Pick<Database, 'read'>, is_open: boolean): ModelReport {
  const { answered_at, failing_since, failures, error, lost = 0, served_at = 0 } = database.read(CALLS, NONE)
  return {
    model_answered_at: answered_at,
    model_failing_since: failing_since,
    model_failures: failures,
    model_error: error,
    model_lost: lost,
    model_served_at: served_at,
    model_ask_at: is_open ? (database.read<Outage | null>(OUTAGE, null)?.ask_at ?? null) : null,
  }
}
