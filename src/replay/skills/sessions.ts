import type { LanguageModelV4 } from '@ai-sdk/provider'
import { Toolbox } from '../../agent/toolbox.ts'
import type { Act } from '../../contract/reflex.ts'
import type { Event } from '../../core/event.ts'
import { modelForSession } from '../../skills/model/model.ts'
import { actsOf, agentRoles, entityTypesIn } from '../../skills/session/owner.ts'
import type { ParkedRun, ProposalRequest, SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { SkillSession, type ProposalSession } from '../../skills/session/session.ts'
import type { Around } from '../given.ts'
import type { Basis } from '../recording.ts'
import { Unrecorded } from '../report.ts'
import { sessionsIn, type Decided, type SessionRecord } from './session-record.ts'
import { sessionPorts, sessionSettings, type SessionParts } from './session-ports.ts'

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
    const { settings } = opened.basis
    const proposing: ProposalSession = {
      bulletin: (text) => session.bulletin(text),
      propose: async (proposal, request) => {
        const result = await session.propose(proposal, request)
        if (!request.dry_run) turn.acts.push(...actsOf(proposal, result))
        return result
      },
    }
    return modelForSession(model, { session: proposing, roles: agentRoles(settings), protocol: settings.skill_protocol })
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
      const [first] = record.entries.filter(({ kind }) => kind === 'skill-decided') as Decided[]
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
      else await this.#decideAgain(entry as Decided, session, signal)
    }
    for (const entry of record.left)
      if (entry.kind === 'skill-resumed') throw new Unrecorded('the run was resumed after the process had died')
  }

  async #decideAgain(decided: Decided, session: SkillSession, signal: AbortSignal): Promise<void> {
    const { skill_id, approval_id, why, from, dry_run, request } = decided
    if (typeof approval_id === 'string') {
      const parked = this.#parked.get(approval_id)
      if (!parked) throw new Unrecorded('the proposal that was approved is not in the recording')
      await session.runApproved({ ...parked, approval_id }, { signal })
      return
    }
    const { roles, text, inputs } = request
    const asked = { from: from as ProposalRequest['from'], roles, text, dry_run: dry_run === true, signal }
    await session.propose({ skill_id: String(skill_id), inputs, why }, asked)
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
