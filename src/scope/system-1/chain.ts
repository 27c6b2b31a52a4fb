import { parseAction } from '../../protocol/action.ts'
import type { Agent } from '../../agents/define-agent.ts'
import type { NewEntry, PassReason } from '../../protocol/log-entry.ts'
import type { ReflexVersion } from '../../protocol/reflex.ts'
import { runReflex, type ReflexRun } from '../../reflexes/run-reflex.ts'
import type { Sandbox } from '../../reflexes/sandbox.ts'
import type { Stored } from '../inbox.ts'
import type { Log } from '../log.ts'
import { childHead, eventHead } from '../spans.ts'
import type { Toolbox } from '../toolbox.ts'
import { consumesAtOnce, type Decided, type Fire } from './fire.ts'
import { permit, type Permission } from './permit.ts'
import type { Link, Programs } from './programs.ts'
import type { Proving } from './proving.ts'
import type { Records } from './records.ts'
import type { Seen, Situation } from './situation.ts'

/** What reflexes may compute on the events of one batch, in units of fuel: about half a second, whatever they are. */
const FUEL_A_BATCH = 100_000_000
/** What a run costs beside its fuel: its context is copied, hashed and written down. */
const FUEL_A_RUN = 25_000
/** A reflex that writes reflexes is no factory. */
const MOST_WRITTEN_A_MINUTE = 5

type Parts = {
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
  batch(): (stored: Stored) => Decided {
    const left: Batch = { fuel: FUEL_A_BATCH, keys: new Set() }
    return (stored) => this.#decide(stored, left)
  }

  #decide(stored: Stored, batch: Batch): Decided {
    const { situation, programs, now } = this.#parts
    const at = now()
    const see = situation.of(stored, at)
    const decided: Decided = { entries: [], fire: null, fired: -1, consumed: false, trials: [] }
    const shown = new Set<string>()
    const run = (version: ReflexVersion, state: 'active' | 'shadow') => this.#run({ stored, version, state, see, shown, batch, at })
    for (const link of programs.links) {
      for (const version of link.watching) this.#watch(version, run(version, 'shadow'), decided, stored)
      if (decided.fire) continue
      const passed = this.#withheld(link, at)
      if (passed || !link.acting) decided.entries.push(passedEntry(stored, link, passed ?? { reason: 'missing', detail: null }))
      else this.#act(link.acting, run(link.acting, 'active'), decided, stored)
    }
    return decided
  }

  /** Why the link's program does not run on this event. */
  #withheld({ reference, acting, absent }: Link, at: number): { reason: PassReason; detail: string | null } | null {
    if (absent) return absent
    if (!acting) return { reason: 'missing', detail: 'its newest version only watches' }
    const reason = this.#parts.records.heldBack(acting.id, reference, at)
    if (reason === null) return null
    this.#parts.records.of(acting).metrics.held_back += 1
    return { reason, detail: null }
  }

  #act(version: ReflexVersion, result: Result, decided: Decided, { event }: Stored): void {
    const { records, now } = this.#parts
    decided.entries.push(result.entry)
    if (!result.fire) return
    decided.fire = result.fire
    decided.fired = decided.entries.length - 1
    decided.consumed = consumesAtOnce(result.fire)
    records.fired(version.id, { at: now(), event_id: event.id, action: result.fire.action })
  }

  #watch(version: ReflexVersion, result: Result, decided: Decided, { event }: Stored): void {
    const { records, now } = this.#parts
    decided.entries.push(result.entry)
    if (!result.fire) return
    decided.trials.push({ version, action: result.fire.action })
    records.fired(`${version.id}@${version.version}`, { at: now(), event_id: event.id, action: result.fire.action })
  }

  #run({ stored, version, state, see, shown, batch, at }: Asked): Result {
    const { records, proving, sandbox, log, toolbox, agent, scope } = this.#parts
    if (batch.fuel <= 0) return { fire: null, entry: withoutRun(stored, version, state, 'fuel', USED_UP) }
    const who = state === 'active' ? version.id : `${version.id}@${version.version}`
    const seen = see(records.recent(who, at))
    if (!seen.fits) return { fire: null, entry: withoutRun(stored, version, state, 'too_large', TOO_LARGE) }
    const run = runReflex(sandbox(), version, seen.context)
    batch.fuel -= run.fuel + FUEL_A_RUN
    const known = shown.has(seen.hash)
    shown.add(seen.hash)
    const about = { version, state, context_hash: seen.hash, context: known ? null : log.clean(seen.context), run }
    const asked = {
      scope,
      event: stored.event,
      version,
      toolbox,
      has_trigger: agent().trigger !== null,
      scratch: seen.context.scratch,
      now: at,
    }
    const permission = run.action ? this.#permit(run.action, who, asked) : null
    proving.ran(version, run, permission?.ok === false)
    if (run.action && permission?.ok) {
      const entry = { ...headOf(stored), kind: 'reflex-fired' as const, action: cleaned(log, run.action), ...fieldsOf(about) }
      const reused = state === 'active' && this.#repeats(version, run.action, permission.lane ? null : batch)
      return { fire: { version, action: run.action, permitted: permission, reused }, entry }
    }
    if (permission?.ok === false) return { fire: null, entry: entryOf(stored, about, { reason: 'refused', error: permission.detail }) }
    return {
      fire: null,
      entry: entryOf(stored, about, { reason: run.reason === 'fired' ? 'invalid_action' : run.reason, error: run.error }),
    }
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
type About = { version: ReflexVersion; state: 'active' | 'shadow'; context_hash: string; context: unknown; run: ReflexRun }

const headOf = ({ event }: Stored) => childHead(eventHead({ id: event.id, trace_id: event.meta.trace_id }))

const fieldsOf = ({ version, state, context_hash, context, run }: About) => ({
  reflex_id: version.id,
  version: version.version,
  hash: version.hash,
  state,
  context_hash,
  context,
  fuel: run.fuel,
  duration_us: run.duration_us,
})

const entryOf = (stored: Stored, about: About, why: { reason: PassReason; error: string | null }): NewEntry => ({
  ...headOf(stored),
  kind: 'reflex-passed',
  ...why,
  ...fieldsOf(about),
})

const USED_UP = 'the events that came with this one used up what reflexes may compute at once'
const TOO_LARGE = 'the event and the scratch are larger than what a reflex can be shown'

const withoutRun = (
  stored: Stored,
  version: ReflexVersion,
  state: 'active' | 'shadow',
  reason: PassReason,
  error: string | null,
): NewEntry => ({
  ...headOf(stored),
  kind: 'reflex-passed',
  reason,
  error,
  reflex_id: version.id,
  version: version.version,
  hash: version.hash,
  state,
  context_hash: null,
  context: null,
  fuel: 0,
  duration_us: 0,
})

const passedEntry = (
  stored: Stored,
  { reference, acting }: Link,
  { reason, detail }: { reason: PassReason; detail: string | null },
): NewEntry => ({
  ...headOf(stored),
  kind: 'reflex-passed',
  reason,
  error: detail,
  reflex_id: reference.id,
  version: acting?.version ?? reference.version ?? null,
  hash: acting?.hash ?? null,
  state: null,
  context_hash: null,
  context: null,
  fuel: 0,
  duration_us: 0,
})

/** Fields that are never logged are hidden in an action, too; one that can then not be read any more stays as it is named. */
function cleaned(log: Log, action: Fire['action']): Fire['action'] {
  const parsed = parseAction(log.clean(action))
  return parsed.ok ? parsed.action : action
}
