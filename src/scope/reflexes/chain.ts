import type { AgentRegistry } from '../../agent/registry.ts'
import { parseAction } from '../../contract/action.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { EntryHead, NewEntry } from '../../contract/log-entry.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import type { Sandbox } from '../../reflexes/sandbox.ts'
import type { Stored } from '../inbox/event-row.ts'
import type { Log } from '../log.ts'
import { childHead, headOf } from '../spans.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import { consumesAtOnce, type Decided, type Fire } from './fire.ts'
import { permit, type Permission } from './permit.ts'
import type { Link, Programs } from './versions.ts'
import type { Proving } from './shadow.ts'
import type { Records } from './stats.ts'
import type { Seen, Situation } from './reflex-context.ts'
import type { Unit } from '../unit.ts'

/** What reflexes may compute on the events of one batch, in units of fuel: about half a second, whatever they are. */
const FUEL_A_BATCH = 100_000_000
/** What a run costs beside its fuel: its context is copied, hashed and written down. */
const FUEL_A_RUN = 25_000
/** A reflex that writes reflexes is no factory. */
const MOST_WRITTEN_A_MINUTE = 5

type Parts = {
  agents: AgentRegistry
  scope: string
  programs: Programs
  situation: Situation
  records: Records
  proving: Proving
  toolbox: Toolbox
  agent: () => Agent
  sandbox: () => Sandbox
  /** Whether a reflex carried out an action under this key before. */
  carriedOut: (version: ReflexVersion, idempotence_key: string) => boolean
  log: Log
  now: () => number
}
/** `keys`: of the actions that its events have called for so far. */
type Batch = { fuel: number; keys: Set<string> }

/** Step 3: System 1. Small programs that see an event before any model does; the first valid action wins (G6: whatever a program does, this returns). */
export class Chain {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get empty(): boolean {
    return this.#parts.programs.links.length === 0
  }

  /** For the events of one batch: they share what reflexes may compute. */
  batch(unit: Unit): (stored: Stored) => Decided {
    const left: Batch = { fuel: FUEL_A_BATCH, keys: new Set() }
    return (stored) => this.#decide(unit, stored, left)
  }

  #decide(unit: Unit, stored: Stored, batch: Batch): Decided {
    const { situation, programs, now } = this.#parts
    const at = now()
    const see = situation.of(stored, at)
    const decided: Decided = { entries: [], fire: null, fired: -1, consumed: false, trials: [] }
    const shown = new Set<string>()
    const run = (version: ReflexVersion, state: 'active' | 'shadow') => this.#run(unit, { stored, version, state, see, shown, batch, at })
    for (const link of programs.links) {
      for (const version of link.watching) watch(decided, run(version, 'shadow'))
      if (decided.fire) continue
      const runnable = this.#runnable(link, at)
      if (runnable.ok) act(decided, run(runnable.version, 'active'))
      else decided.entries.push(passed(stored, runnable.why, unrun(link)))
    }
    return decided
  }

  /** Whether the link's program runs on this event, or why not. */
  #runnable({ reference, acting, absent }: Link, at: number): { ok: true; version: ReflexVersion } | { ok: false; why: Why } {
    if (absent) return { ok: false, why: { reason: absent.reason, error: absent.detail } }
    if (!acting) return { ok: false, why: { reason: 'missing', error: 'its newest version only watches' } }
    const { records } = this.#parts
    const reason = records.heldBack(acting.id, reference, at)
    if (reason === null) return { ok: true, version: acting }
    records.of(acting).metrics.held_back += 1
    return { ok: false, why: { reason, error: null } }
  }

  #run(unit: Unit, { stored, version, state, see, shown, batch, at }: Asked): Result {
    const { records, proving, sandbox, log, toolbox, agent, scope } = this.#parts
    const not = (why: Why): Result => ({ fire: null, entry: passed(stored, why, { ...named(version, state), ...NOTHING_SEEN }) })
    if (batch.fuel <= 0) return not(USED_UP)
    const who = state === 'active' ? version.id : `${version.id}@${version.version}`
    const seen = see(records.recent(who, at))
    if (!seen.fits) return not(TOO_LARGE)
    const run = runReflex(sandbox(), version, seen.json)
    batch.fuel -= run.fuel + FUEL_A_RUN
    const known = shown.has(seen.hash)
    shown.add(seen.hash)
    const { fuel, duration_us } = run
    const context = known ? null : log.cleanContext(seen.context, seen.json.text)
    const ran: Ran = { ...named(version, state), context_hash: seen.hash, context, fuel, duration_us }
    const asked = {
      scope,
      event: stored.event,
      version,
      toolbox,
      has_trigger: agent().trigger !== null,
      agents: this.#parts.agents,
      scratch: seen.context.scratch,
      now: at,
    }
    const permission = run.action ? this.#permit(run.action, who, asked) : null
    proving.ran(unit, version, run, permission?.ok === false)
    if (run.action && permission?.ok) {
      const { action } = run
      const reused = state === 'active' && this.#repeats(version, action, permission.lane ? null : batch)
      records.fired(who, { at, event_id: stored.event.id, action })
      const entry: NewEntry = { ...childHead(headOf(stored.event)), kind: 'reflex-fired', action: cleaned(log, action), ...ran }
      return { fire: { version, action, permitted: permission, reused }, entry }
    }
    const reason = run.reason === 'fired' ? 'invalid_action' : run.reason
    const why: Why = permission?.ok === false ? { reason: 'refused', error: permission.detail } : { reason, error: run.error }
    return { fire: null, entry: passed(stored, why, ran) }
  }

  #permit(action: Fire['action'], who: string, asked: Parameters<typeof permit>[1]): Permission {
    const written = action.action_type === 'write_artifact' ? this.#parts.records.lately(who, 'write_artifact', asked.now) : 0
    return written < MOST_WRITTEN_A_MINUTE ? permit(action, asked) : { ok: false, detail: `it wrote ${written} artifacts within a minute` }
  }

  /** In the effect lane it is found out when its turn comes: the one before it may have failed by then. */
  #repeats(version: ReflexVersion, { idempotence_key }: Fire['action'], batch: Batch | null): boolean {
    if (idempotence_key === undefined) return false
    const name = `${version.id} ${idempotence_key}`
    const known = batch?.keys.has(name) === true || this.#parts.carriedOut(version, idempotence_key)
    batch?.keys.add(name)
    return known
  }
}

type Asked = {
  stored: Stored
  version: ReflexVersion
  state: 'active' | 'shadow'
  see: (recent: ReturnType<Records['recent']>) => Seen
  shown: Set<string>
  batch: Batch
  at: number
}
type Result = { fire: Fire | null; entry: NewEntry }
type Passed = Extract<NewEntry, { kind: 'reflex-passed' }>
type Why = Pick<Passed, 'reason' | 'error'>
type Ran = Omit<Passed, 'kind' | keyof Why | keyof EntryHead>

function act(decided: Decided, { fire, entry }: Result): void {
  decided.entries.push(entry)
  if (!fire) return
  decided.fire = fire
  decided.fired = decided.entries.length - 1
  decided.consumed = consumesAtOnce(fire)
}

function watch({ entries, trials }: Decided, { fire, entry }: Result): void {
  entries.push(entry)
  if (fire) trials.push(fire)
}

const USED_UP: Why = { reason: 'fuel', error: 'the events that came with this one used up what reflexes may compute at once' }
const TOO_LARGE: Why = { reason: 'too_large', error: 'the event and the scratch are larger than what a reflex can be shown' }
const NOTHING_SEEN = { context_hash: null, context: null, fuel: 0, duration_us: 0 }

const named = ({ id, version, hash }: ReflexVersion, state: 'active' | 'shadow') => ({ reflex_id: id, version, hash, state })

const unrun = ({ reference, acting }: Link): Ran => ({
  reflex_id: reference.id,
  version: acting?.version ?? reference.version ?? null,
  hash: acting?.hash ?? null,
  state: null,
  ...NOTHING_SEEN,
})

const passed = ({ event }: Stored, why: Why, ran: Ran): NewEntry => ({
  ...childHead(headOf(event)),
  kind: 'reflex-passed',
  ...why,
  ...meaningOf(why),
  ...ran,
})

/** `reflex-passed, reason: error` would read as if a test had passed. `null` says enough by itself: the reflex left the event to others. */
function meaningOf({ reason }: Why): Pick<Passed, 'detail'> {
  if (reason === 'null') return {}
  if (FAULTS.has(reason)) return { detail: 'the reflex failed and did nothing: the event went on' }
  if (reason === 'refused') return { detail: 'the scope does not allow what the reflex asked for: the event went on' }
  return { detail: 'the reflex did not run: the event went on' }
}
const FAULTS: ReadonlySet<Why['reason']> = new Set(['error', 'limit', 'invalid_action'])

/** Fields that are never logged are hidden in an action, too; one that can then not be read any more stays as it is named. */
function cleaned(log: Log, action: Fire['action']): Fire['action'] {
  const shown = log.clean(action)
  if (shown === action) return action
  const parsed = parseAction(shown)
  return parsed.ok ? parsed.action : action
}
