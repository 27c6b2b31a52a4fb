import type { LanguageModelV4 } from '@ai-sdk/provider'
import { Toolbox, type FoundTool } from '../../../agent/toolbox.ts'
import type { EditedInputs } from '../../../contract/approval.ts'
import type { Act } from '../../../contract/reflex.ts'
import type { Event } from '../../../core/event.ts'
import { modelForSession } from '../../../skills/model/model.ts'
import { actsOf, agentRoles, entityTypesIn, type SessionSettings } from '../../../skills/session/context.ts'
import type {
  ApprovedRun,
  ParkedRun,
  ProposalRequest,
  SkillProposal,
  Parked,
  RunRecord,
  SessionEntry,
  SessionPorts,
  HostRunnerPorts,
} from '../../../skills/session/ports.ts'
import type { ProposalResult } from '../../../skills/session/result.ts'
import { SkillSession, type ProposalSession } from '../../../skills/session/session.ts'
import type { Around, Given } from '../given.ts'
import type { Basis } from '../recording.ts'
import { Unrecorded, type Comparison } from '../report.ts'
import { isMasked } from '../../../base/secrets.ts'
import { sessionsIn, type RecordedDecision, type SessionRecord } from './session-record.ts'
import { canonicalJson, type Json, sameJson, type JsonFields } from '../../../base/json.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import { SkillIndex } from '../../../skills/bulletin/skill-index.ts'
import type { ProbeCall } from '../../../skills/cel/expression.ts'
import type { GateDecision } from '../../../skills/gate/decision.ts'
import { placeOf } from '../../../skills/manifest/compat.ts'
import type { Manifest, FoundSkill } from '../../../skills/manifest/manifest.ts'
import { askParser } from '../../../skills/model/ask-parser.ts'
import type { Source, EffectEnded } from '../source.ts'
import { costIn } from '../../../skills/runner/call-step.ts'
import type { LastGood, StepBegin, ToolOptions } from '../../../skills/runner/ports.ts'
import { CutOff } from '../../../tools/may-have-happened.ts'
import { stepSpan } from '../../../traces/ids.ts'

type RecordedRunParts = {
  source: Source
  given: Given
  record: SessionRecord
  comparison: Comparison
  clean: (value: unknown) => unknown
  toolOf: (name: string) => FoundTool
  write: (entry: SessionEntry) => void
  /** Stops the run as it was stopped when it was recorded. */
  abort: () => void
  missing: string[]
}

/** The error with which the runner stops a step: its own time limit, or the end of its asker. */
const STOPPED = /^the step was stopped: (timeout|aborted)$/

/** The end of an effect that a crash cut off. */
const LOST = /^the server died/

/** The ports of one run, answered from the recorded effects of its steps. No tool is called. */
class RecordedRun implements HostRunnerPorts {
  readonly #parts: RecordedRunParts
  readonly #run_id: string
  readonly #calls = new Map<string, EffectEnded[]>()
  #step: { phase: string; index: number } | null = null
  /** Calls of tools so far: a wait that a call follows is the time limit of that call. */
  #called = 0
  #timer: () => void = () => {}

  constructor(run_id: string, parts: RecordedRunParts) {
    this.#run_id = run_id
    this.#parts = parts
  }

  readonly journal: HostRunnerPorts['journal'] = {
    load: async () => [],
    begin: async (_run_id, { phase, index }: StepBegin) => void (this.#step = { phase, index }),
    end: async (_run_id, _place, _end, entry) => this.#parts.write(entry),
  }

  readonly callTool = async (tool: string, args: JsonFields, { hide }: ToolOptions): Promise<{ output: unknown; cost_usd: number }> => {
    this.#called += 1
    await Promise.resolve()
    const ended = this.#next()
    const { comparison, clean, source } = this.#parts
    if (!ended) throw this.#notCalled(tool)
    const asked = { tool, input: clean(hide(this.#parsed(tool, args) as Json)) }
    const recorded = { tool: ended.tool, input: (source.inputOf(ended) ?? { value: asked.input }).value }
    if (this.#parts.given.departures && !sameJson(recorded, asked)) throw this.#otherCall(ended, recorded, asked)
    if (isMasked(recorded)) comparison.compareMasked(ended, 'effect', { recorded, replayed: asked })
    else comparison.compare(ended, 'effect', { recorded, replayed: asked })
    return this.#answer(ended)
  }

  readonly lastGood = async (): Promise<LastGood | { not_free: string } | null> => {
    const next = this.#parts.record.next('skill-started', 'skill-reused', 'skill-applied')
    if (next?.kind === 'skill-reused') return { outputs: next['outputs'] as JsonFields, detail: null }
    return next?.kind === 'skill-applied' && next['reason'] === 'key' ? { not_free: String(next['detail']) } : null
  }

  readonly remember = async (): Promise<void> => {}

  readonly alone = async <Result>(_key: string, work: () => Promise<Result>): Promise<Result> => work()

  /** A pause between attempts ends at once; a time limit only where the call timed out. */
  readonly wait = (_ms: number, signal: AbortSignal): Promise<void> => {
    const called = this.#called
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      queueMicrotask(() => (this.#called === called ? resolve() : (this.#timer = resolve)))
    })
  }

  #next(): EffectEnded | undefined {
    const { phase, index } = this.#step ?? { phase: '', index: 0 }
    const span = stepSpan(this.#run_id, phase, index)
    const calls = this.#calls.get(span) ?? callsUnder(this.#parts.source, span)
    this.#calls.set(span, calls)
    return calls.shift()
  }

  /** The input with the defaults of the tool's schema, as it is logged. */
  #parsed(tool: string, args: JsonFields): unknown {
    const found = this.#parts.toolOf(tool)
    const parsed = found.ok ? found.definition.input.safeParse(args) : null
    return parsed?.success ? parsed.data : args
  }

  /** Another call has another output, which is not known. */
  #otherCall(ended: EffectEnded, recorded: object, replayed: { tool: string }): Error {
    const { comparison, missing } = this.#parts
    comparison.diverge(ended, 'effect', { path: '', recorded, replayed: null })
    comparison.diverge(ended, 'effect', { path: '', recorded: null, replayed })
    missing.push(`the tool ${replayed.tool} was not called with this input when the run was recorded`)
    return new Unrecorded(missing.at(-1))
  }

  /** The step ended before its tool was called, or another run did not come to this step. */
  #notCalled(tool: string): Error {
    const end = this.#parts.record.left.find(
      ({ kind, index, run_id }) =>
        run_id === this.#run_id && index === this.#step?.index && (kind === 'skill-step-ended' || kind === 'skill-compensation-ended'),
    )
    if (end?.['status'] === 'failed' && typeof end['error'] === 'string') return new Error(end['error'])
    const { record } = this.#parts
    const ended = record.entries.some(({ kind, run_id }) => kind === 'skill-applied' && run_id === this.#run_id)
    const reason = ended ? `the tool ${tool} was not called in this step when the run was recorded` : 'the session did not end the run'
    return this.#lacks(reason)
  }

  #lacks(reason: string): Unrecorded {
    this.#parts.missing.push(reason)
    return new Unrecorded(reason)
  }

  async #answer({ status, tool, output, error, ...ended }: EffectEnded): Promise<{ output: unknown; cost_usd: number }> {
    if (status === 'ok' || status === 'reused') {
      if (error !== null || isNotLogged(output)) throw this.#lacks(`the output of ${tool} was too large for the log`)
      return { output, cost_usd: ended.cost_usd ?? costIn(output) }
    }
    const message = error ?? `the tool ${tool} failed`
    if (LOST.test(message)) throw this.#lacks('the process died during the run')
    const [, stopped] = STOPPED.exec(message) ?? []
    if (stopped !== undefined) {
      if (stopped === 'timeout') this.#timer()
      else this.#parts.abort()
      return new Promise(() => {})
    }
    const { retryable = false, cost_usd = 0 } = ended
    const found = this.#parts.toolOf(tool)
    const reads = found.ok && found.definition.repeatable === true
    if (status === 'unknown' && !reads) throw Object.assign(new CutOff(message), { cost_usd })
    throw Object.assign(new Error(message), { retryable, cost_usd })
  }
}

const callsUnder = (source: Source, span: string): EffectEnded[] =>
  source.entriesOf('effect-ended').filter(({ parent_id }) => parent_id === span)

const isNotLogged = (output: unknown): boolean => sameJson(Object.keys(Object(output)), ['not_logged'])

type SessionParts = {
  source: Source
  given: Given
  comparison: Comparison
  record: SessionRecord
  settings: Settings
  clean: (value: unknown) => unknown
  toolOf: (name: string) => FoundTool
  model: LanguageModelV4
  /** Types of the entities that the owner's events name. */
  entity_types: readonly string[]
  /** Stops a run as it was stopped when it was recorded. */
  abort: () => void
  /** Reasons for which the session cannot be repeated. */
  missing: string[]
  /** Receives the runs that wait for an approval. */
  parked: Map<string, ParkedRun>
}

/** The settings of a session, with the blackboard as it was seeded: nothing is read again. */
function sessionSettings({ record: { seed }, settings, entity_types }: SessionParts): SessionSettings {
  const { goal_labels, goal_postconditions, k_cards, tau, policy_mode, refused_skills, anchors } = settings
  const { blackboard, sources, ages_ms, omitted, overridden } = seed as unknown as SessionSettings['seeded']
  const { ancestors } = seed
  return {
    trace_id: seed.trace_id,
    place: placeOf(settings),
    seeded: { blackboard, sources, ages_ms: ages_ms ?? {}, omitted: omitted ?? {}, overridden },
    goal_labels,
    entity_types,
    goal_postconditions,
    k_cards,
    tau,
    policy_mode,
    refused_skills,
    anchors,
    ...(Array.isArray(ancestors) && { ancestors: ancestors as string[] }),
  }
}

/** The ports of a session, which answer as they did when it was recorded. Nothing is written. */
function sessionPorts(parts: SessionParts): SessionPorts {
  const { record, comparison, clean, model, missing } = parts
  const write = (entry: SessionEntry) => {
    if (missing.length === 0 && entry.kind !== 'blackboard-seeded') record.compare(entry, comparison)
  }
  const lacks = (reason: string): never => {
    missing.push(reason)
    throw new Unrecorded(reason)
  }
  const facts = (): RecordedDecision => record.decided() ?? lacks('a skill was proposed on which no decision was recorded')
  const clock = new RunClock(record)
  return {
    registry: {
      index: () => shownSkills(parts),
      find: (id) => foundSkill(parts, id),
      recentSuccess: () => recentSuccess(record),
      transitions: () => new Map(Object.entries((record.next('bulletin-built')?.['transitions'] ?? {}) as Record<string, number>)),
      hasOutputs: () => facts().request.answered === true,
      usage: () => {
        const { last_run_at, running } = (record.deciding ?? facts()).request
        return { last_run_at, running }
      },
    },
    runner: ({ run_id }) => new RecordedRun(run_id, { ...parts, write }),
    runs: {
      begin: async ({ run_id }: RunRecord) => clock.begin(run_id),
      end: async (_run_id, _end, told) => {
        for (const entry of told) write(entry)
        clock.end()
      },
    },
    approvals: { park: async (run, told) => park(parts, run, (approval_id) => write(told(approval_id))) },
    controlPlane: async () => facts().request.control_plane ?? null,
    tools: () => facts().request.tools,
    // Older recordings do not tell whether it does.
    whyCounts: () => facts().request.why_counts !== false,
    absence: (tool) => facts().request.absent_tools?.[tool] ?? null,
    origins: () => facts().request.origins ?? null,
    probes: recordedProbes(record),
    ask: async (request, signal) => {
      const refusal = parserRefusal(record, request.model)
      if (refusal !== null) throw new Error(refusal)
      return askParser({ model, name: request.model, signal }, request)
    },
    log: write,
    redact: (value) => clean(value) as Json,
    now: () => clock.read() ?? record.decided()?.request.now ?? Date.parse(record.seed.at),
    newId: () => record.nextId(),
  }
}

/** Times are those that the run read; without them, time stands still. */
class RunClock {
  readonly #record: SessionRecord
  #left: number[] | null = null

  constructor(record: SessionRecord) {
    this.#record = record
  }

  begin(run_id: string): void {
    const end = this.#record.left.find(({ kind, run_id: of }) => of === run_id && kind === 'skill-applied')
    this.#left = [...((end?.['clock'] as number[] | undefined) ?? [0])]
  }

  end(): void {
    this.#left = null
  }

  /** Null outside of a run. */
  read(): number | null {
    if (!this.#left) return null
    const [next = 0] = this.#left
    if (this.#left.length > 1) this.#left.shift()
    return next
  }
}

/** The skills whose cards the bulletin had. Others did not compete, or are not in the recording. */
function shownSkills({ record, given }: SessionParts): SkillIndex {
  const hashes = (record.next('bulletin-built')?.['manifests'] ?? []) as string[]
  return new SkillIndex(hashes.map((hash) => ({ manifest: given.manifest(hash), state: 'active' })))
}

/** The version that the proposal meant; null if a proposal was refused because there was none. */
function foundSkill({ record, given, missing }: SessionParts, id: string): FoundSkill | null {
  const decided = record.decided(id)
  if (decided?.['skill_id'] === id) {
    const manifest = manifestOf(decided, given, missing)
    return { manifest, state: decided.request.state }
  }
  const refused = record.next('skill-refused')
  if (refused?.['skill_id'] === id && String(refused['reason']).startsWith('there is no skill')) return null
  const reason = `the skill ${id} was not proposed when the session was recorded`
  missing.push(reason)
  throw new Unrecorded(reason)
}

function manifestOf({ manifest_hash }: RecordedDecision, given: Given, missing: string[]): Manifest {
  try {
    return given.manifest(manifest_hash)
  } catch (error) {
    if (error instanceof Unrecorded) missing.push(error.message)
    throw error
  }
}

/** Skills that ran with success lately, as far as the next entry names them. */
function recentSuccess(record: SessionRecord): ReadonlySet<string> {
  const next = record.next('bulletin-built', 'skill-decided')
  if (next?.kind === 'bulletin-built') return new Set((next['recent_success'] ?? []) as string[])
  const decided = record.decided()
  return new Set(decided?.request.recent_success ? [String(decided['skill_id'])] : [])
}

/** Probes that answer as in the decision or guard that comes next. */
function recordedProbes(record: SessionRecord): SessionPorts['probes'] {
  const answer = (name: string, args: Json[]): unknown => {
    const next = record.next('skill-decided', 'skill-guard-evaluated')
    const calls = next?.kind === 'skill-guard-evaluated' ? next['probes'] : (next?.['decision'] as GateDecision | undefined)?.probes
    const own = ((calls ?? []) as ProbeCall[]).filter(({ probe }) => probe === name)
    const call = own.find((one) => canonicalJson(one.args) === canonicalJson(args)) ?? own[0]
    if (!call) throw new Error('this call was not recorded')
    if ('error' in call) throw new Error(call.error)
    return call.result
  }
  const names = new Set(record.entries.flatMap(probesIn).map(({ probe }) => probe))
  return Object.fromEntries(Array.from(names, (name) => [name, (...args: Json[]) => answer(name, args)]))
}

const probesIn = ({ kind, decision, probes }: { kind: string; [field: string]: unknown }): ProbeCall[] =>
  (kind === 'skill-decided' ? (decision as GateDecision).probes : kind === 'skill-guard-evaluated' ? (probes as ProbeCall[]) : undefined) ??
  []

/** The reason why a parser's model was not asked: the deployment had another one. */
function parserRefusal(record: SessionRecord, model: string): string | null {
  const attempts = (record.next('skill-slots-parsed')?.['attempts'] ?? []) as { model: string; detail: string | null }[]
  return attempts.find((one) => one.model === model && one.detail?.startsWith('the parser is pinned to'))?.detail ?? null
}

function park({ record, missing, parked }: SessionParts, run: ParkedRun, told: (approval_id: string) => void): Parked {
  const asked = record.next('approval-requested', 'skill-refused')
  if (asked?.kind === 'skill-refused') return { ok: false, detail: String(asked['reason']) }
  const approval_id = asked?.['approval_id']
  if (typeof approval_id !== 'string') {
    const reason = 'the run waited for an approval that an earlier proposal had asked for'
    missing.push(reason)
    throw new Unrecorded(reason)
  }
  parked.set(approval_id, run)
  told(approval_id)
  return { ok: true, approval_id, asked_before: false }
}

type ProposedFor = { request: ProposalRequest; events: readonly Event[] }
type Opened = { session: SkillSession; stop: AbortController; missing: string[] }
type OpenedFor = { basis: Basis; model: LanguageModelV4; events?: readonly Event[]; entity_types?: readonly string[]; missing?: string[] }

/** The skill sessions of a recording: of turns, callers, actions of reflexes, and approvals. */
export class Sessions {
  readonly #around: Around
  readonly #records: readonly SessionRecord[]
  readonly #parked = new Map<string, ParkedRun>()

  constructor(around: Around) {
    this.#around = around
    this.#records = sessionsIn(around.source)
  }

  /** The sessions of a turn, action or call, by its span, in their order. */
  of(owner: string): SessionRecord[] {
    return this.#records.filter((record) => record.owner === owner && !record.used)
  }

  /** The model of a turn, with the skills that it had. Its first session is the turn's. */
  modelOf(turn: { span_id: string; acts: Act[] }, { model, ...opened }: OpenedFor & { events: readonly Event[] }): LanguageModelV4 {
    const [record] = this.of(turn.span_id)
    if (!record) return model
    const { session } = this.#open(record, { ...opened, model })
    const { settings, max_rounds } = opened.basis
    const proposing: ProposalSession = {
      bulletin: (text) => session.bulletin(text),
      propose: async (proposal, request) => {
        const result = await session.propose(proposal, request)
        if (!request.dry_run) turn.acts.push(...actsOf(proposal, result))
        return result
      },
    }
    return modelForSession(model, { session: proposing, roles: agentRoles(settings), protocol: settings.skill_protocol, max_rounds })
  }

  /** Proposes again what a reflex proposed. Null if the recording has no answer to compare. */
  async propose(record: SessionRecord, proposal: SkillProposal, { request, events }: ProposedFor): Promise<ProposalResult | null> {
    let result: ProposalResult | null = null
    const work = async ({ session, stop: { signal } }: Opened) => void (result = await session.propose(proposal, { ...request, signal }))
    return (await this.#replay(record, work, events)) ? result : null
  }

  /** Replays the sessions that no turn or action has replayed, from their own proposals. */
  async replayRest(): Promise<void> {
    for (const record of this.#records) if (!record.used) await this.#replay(record, (opened) => this.#proposeAgain(record, opened))
  }

  async #replay(record: SessionRecord, work: (opened: Opened) => Promise<void>, events?: readonly Event[]): Promise<boolean> {
    await this.#around.host.computing.rest(8)
    const { given, comparison } = this.#around
    const basis = given.basisOf(record.seed as { basis?: string })
    try {
      if (!basis) throw new Unrecorded('the settings in force are not in the recording')
      const { source, host } = this.#around
      const calls = source.entriesOf('model-called').filter(({ parent_id }) => parent_id === record.owner)
      const model = given.model({ source, calls, comparison, clean: host.cleaner(basis.settings) })
      const [first] = record.entries.filter(({ kind }) => kind === 'skill-decided') as RecordedDecision[]
      const known = events ? { events } : { entity_types: first?.request.entity_types ?? [] }
      const opened = this.#open(record, { basis, model, ...known })
      await work(opened)
      if (opened.missing[0] !== undefined) throw new Unrecorded(opened.missing[0])
      this.finish(record)
      return true
    } catch (error) {
      if (!(error instanceof Unrecorded)) throw error
      for (const entry of record.left) comparison.cannot(entry, 'skill', error.message)
      return false
    }
  }

  async #proposeAgain(record: SessionRecord, { session, stop: { signal } }: Opened): Promise<void> {
    const { comparison } = this.#around
    const proposed = new Set<unknown>()
    for (const entry of record.entries) {
      const { kind, proposal_id } = entry
      if (kind === 'bulletin-built') comparison.cannot(entry, 'bulletin', 'the turn that it was built for is not replayed')
      if (typeof proposal_id !== 'string' || proposed.has(proposal_id)) continue
      proposed.add(proposal_id)
      if (kind !== 'skill-decided') comparison.cannot(entry, 'skill', 'a proposal that was refused before the gate is not in the recording')
      else await this.#decideAgain(entry as RecordedDecision, session, signal)
    }
    for (const entry of record.left)
      if (entry.kind === 'skill-resumed') throw new Unrecorded('the run was resumed after the process had died')
  }

  async #decideAgain(decided: RecordedDecision, session: SkillSession, signal: AbortSignal): Promise<void> {
    const { skill_id, approval_id, why, from, dry_run, request } = decided
    if (typeof approval_id === 'string') {
      const parked = this.#parked.get(approval_id)
      if (!parked) throw new Unrecorded('the proposal that was approved is not in the recording')
      await session.runApproved({ ...parked, approval_id, ...this.#editsOf(approval_id) }, { signal })
      return
    }
    const { roles, text, inputs } = request
    const asked = { from: from as ProposalRequest['from'], roles, text, dry_run: dry_run === true, signal }
    await session.propose({ skill_id: String(skill_id), inputs, why }, asked)
  }

  /** The inputs that the approver changed. They are given, like the words of an event. */
  #editsOf(approval_id: string): Pick<ApprovedRun, 'edits'> {
    const decided = this.#around.source.entriesOf('approval-decided').find((entry) => entry['approval_id'] === approval_id)
    const edits = decided?.['edits'] as EditedInputs | undefined
    return edits ? { edits: Object.fromEntries(Object.entries(edits).map(([name, { to }]) => [name, to as Json])) } : {}
  }

  /** Reports what the replay of a session left out. */
  finish(record: SessionRecord): void {
    const { source, comparison } = this.#around
    record.compareRest(comparison)
    const runs = new Set(record.entries.flatMap(({ run_id }) => (typeof run_id === 'string' ? [run_id] : [])))
    const inputs = new Map(source.entriesOf('effect-started').map((started) => [started.span_id, started]))
    for (const ended of source.entriesOf('effect-ended')) {
      const started = inputs.get(ended.span_id)
      if (comparison.covered.has(ended) || !started?.step || !runs.has(started.step.run_id)) continue
      comparison.diverge(ended, 'effect', { path: '', recorded: { tool: ended.tool, input: started.input }, replayed: null })
    }
  }

  #open(record: SessionRecord, { basis: { agent, settings }, model, events = [], entity_types, missing = [] }: OpenedFor): Opened {
    const { source, host, given, comparison } = this.#around
    record.used = true
    const served = host.agents.agentOf(source.scope, agent.name)
    const outside = { ready: async () => {}, available: () => ({}), find: () => null }
    const toolbox = new Toolbox({ scope: source.scope, agent: () => served, settings: () => settings, outside })
    const stop = new AbortController()
    const parts: SessionParts = {
      source,
      given,
      comparison,
      record,
      settings,
      clean: host.cleaner(settings),
      toolOf: (name) => toolbox.forPlan(name),
      model,
      entity_types: entity_types ?? entityTypesIn(events),
      abort: () => stop.abort(new Error('the run was stopped when it was recorded')),
      missing,
      parked: this.#parked,
    }
    return { session: new SkillSession(sessionSettings(parts), sessionPorts(parts)), stop, missing }
  }
}
