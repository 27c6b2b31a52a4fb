import type { LanguageModelV4 } from '@ai-sdk/provider'
import { ScopedLocks } from '../../core/scoped-locks.ts'
import { messageOf } from '../../base/error-text.ts'
import type { ApprovalRun } from '../../contract/approval.ts'
import type { EntryHead, SkillEntryKind } from '../../contract/log-entry.ts'
import type { Act } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings.ts'
import { seedBlackboard } from '../../skills/plan/blackboard.ts'
import type { Json } from '../../base/json.ts'
import { costIn } from '../../skills/runner/call-step.ts'
import { CutOff } from '../../tools/cut-off.ts'
import { placeOf } from '../../skills/gate/place-of.ts'
import type { SessionSettings } from '../../skills/session/context.ts'
import type { HostRunnerPorts, RunIdentity, SessionEntry, SessionPorts } from '../../skills/session/ports.ts'
import type { ProposalRequest, SkillProposal } from '../../skills/session/proposal.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { isRetryable } from '../../base/faults.ts'
import type { CountedParts } from '../turns/metered-model.ts'
import type { Database } from '../database.ts'
import type { Effects } from '../effects/effect-lane.ts'
import { MOST_DEATHS, type Guard } from '../guard.ts'
import { childHead, scopeHead } from '../spans.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import { hasToWait } from './has-to-wait.ts'
import type { ParkedRuns } from './approvals.ts'
import { RunJournal } from './journal.ts'
import { notRun } from './run-reports.ts'
import type { Asked, OpenRun, SkillRuns } from './runs.ts'
import { ScopeSession } from './scope-session.ts'
import type { Shelf } from './skill-cache.ts'
import { slotModel } from './slot-model.ts'
import { logError, warn } from '../../base/warn.ts'

/** For whom a session is opened: where it stands in the log, and what it may use. `model` is the turn's own. */
export type SessionFor = {
  head: EntryHead
  causes: readonly [string, ...string[]]
  /** Stops what is being run for it. */
  signal?: AbortSignal
  model?: LanguageModelV4
  /** What the turn has done so far: each skill that it has run is one more act. */
  acts?: Act[]
}
type Parts = CountedParts & {
  scope: string
  database: Database
  guard: Guard
  effects: Effects
  toolbox: Toolbox
  shelf: Shelf
  runs: SkillRuns
  parked: ParkedRuns
  settings: () => Settings
}

/** Gated skills in a scope: each turn, action or call that may propose one has a session of its own, over this scope's registry, journal and effect lane. */
export class Skills {
  readonly #parts: Parts
  readonly #keys = new ScopedLocks()
  readonly #at_work = new Set<string>()
  #looking = false
  #look_again = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The roles of the scope's own agent, by the operator's setting `blackboard.policy.roles`. */
  get agentRoles(): string[] {
    const roles = this.#parts.settings().blackboard.policy?.['roles']
    return Array.isArray(roles) ? roles.map(String) : ['agent']
  }

  /** Whether there is any skill that fits here: where there is none, a turn has no session and its log says nothing of skills. */
  async any(): Promise<boolean> {
    await this.#parts.shelf.catchUp({ at_once: false })
    return this.#parts.shelf.index().size > 0
  }

  async open(owner: SessionFor): Promise<ScopeSession> {
    const { shelf, toolbox } = this.#parts
    await Promise.all([shelf.catchUp({ at_once: owner.model === undefined }), toolbox.ready()])
    return this.#session(owner)
  }

  async propose(proposal: SkillProposal, request: ProposalRequest, owner: SessionFor): Promise<ProposalResult> {
    const session = await this.open(owner)
    return session.propose(proposal, request)
  }

  /** On waking. */
  recover(): void {
    this.resumeLost()
    this.#runWhatIsApproved()
  }

  /** What was cut off is brought to its end, in the background; at each alarm, for it may fail the first time. */
  resumeLost(): void {
    const { runs } = this.#parts
    for (const run of runs.lost()) {
      const { run_id } = run.record
      runs.takeUp(run_id)
      void this.#resume(run).finally(() => runs.letGo(run_id))
    }
  }

  /** Somebody decided on an approval, or it is time to look. What is approved runs in the background. */
  async look(): Promise<void> {
    this.#look_again = true
    if (this.#looking) return
    this.#looking = true
    const { parked, scope } = this.#parts
    try {
      while (this.#look_again) {
        this.#look_again = false
        await parked.look()
        this.#runWhatIsApproved()
      }
    } catch (error) {
      warn({ message: 'approvals could not be looked for, they will be again', scope, error })
    } finally {
      this.#looking = false
    }
  }

  /** Also what could not begin when it was last tried. */
  #runWhatIsApproved(): void {
    for (const run of this.#parts.parked.running()) {
      if (this.#at_work.has(run.approval_id)) continue
      this.#at_work.add(run.approval_id)
      void this.#runApproved(run).finally(() => this.#at_work.delete(run.approval_id))
    }
  }

  async #runApproved(run: Parameters<ScopeSession['runApproved']>[0]): Promise<void> {
    const { runs, parked, guard, scope, now } = this.#parts
    const cause = `approval:${run.approval_id}`
    const known = runs.earlier(run.skill_id, [cause], '')
    let unrun: ApprovalRun | null = null
    try {
      if (known) {
        await runs.rested(known.run_id)
        // It could not be resumed: the next look finds it again.
        if (runs.lost().some(({ record }) => record.run_id === known.run_id)) return
      } else {
        // One that takes the object down before its record is kept would be begun for ever.
        if (!(await this.#mayBegin(run.approval_id))) return parked.done(run.approval_id, null)
        const session = await this.open({ head: { ...scopeHead(), trace_id: run.trace_id }, causes: [cause] })
        const result = await session.runApproved(run)
        guard.done({ kind: 'run', id: run.approval_id })
        // Somebody said yes: it runs once it can, for as long as it could have been approved.
        if (hasToWait(result) && now() < run.expires_at) return
        if (result.run_id === null) unrun = notRun(result, now())
      }
      parked.done(run.approval_id, unrun)
      this.#runWhatIsApproved()
    } catch (error) {
      logError({ message: 'an approved run failed to begin, the next look tries again', scope, error })
    }
  }

  async #mayBegin(approval_id: string): Promise<boolean> {
    const { guard, unit } = this.#parts
    const work = { kind: 'run', id: approval_id } as const
    if (await guard.begin(work)) return true
    unit((unit) => guard.park(unit, work, `the approved run took its scope down ${guard.deaths(work)} times: ${guard.reason(work)}`), work)
    return false
  }

  async #resume({ record, asked, stopping }: OpenRun): Promise<void> {
    const { scope } = this.#parts
    try {
      const head = { ...scopeHead(), trace_id: record.trace_id }
      const session = await this.open({ head, causes: [asked.cause] })
      await session.resume(record, await this.#howToResume(record.run_id, stopping))
    } catch (error) {
      logError({ message: 'a run could not be resumed, the next alarm tries again', scope, error })
    }
  }

  /** Each resumption is counted before it begins. A run that takes the object down again and again is stopped and undone; if that does, too, it is given up. */
  async #howToResume(run_id: string, stopping: boolean): Promise<{ signal?: AbortSignal; give_up?: string }> {
    const { guard, unit } = this.#parts
    const work = { kind: 'run', id: run_id } as const
    const reason = () => `the run took its scope down ${guard.deaths(work)} times: ${guard.reason(work)}`
    if (!(await guard.begin(work, 2 * MOST_DEATHS))) {
      const give_up = reason()
      unit((unit) => guard.park(unit, work, give_up), work)
      return { give_up }
    }
    if (guard.deaths(work) > MOST_DEATHS) return { signal: AbortSignal.abort(new Error(reason())) }
    return stopping ? { signal: AbortSignal.abort(new Error('its turn is over')) } : {}
  }

  #session({ head, causes, signal, model, acts }: SessionFor): ScopeSession {
    const { runs, settings, shelf } = this.#parts
    const asked: Asked = { cause: causes[0], inputs_hash: '', signal }
    const { blackboard, goal_labels } = settings()
    const seeded = seedBlackboard({ settings: blackboard as Parameters<typeof seedBlackboard>[0]['settings'] & object })
    if (!seeded.ok) throw new Error(`the setting blackboard cannot be used: ${seeded.detail}`)
    const of: SessionSettings = {
      trace_id: head.trace_id,
      place: placeOf(settings()),
      seeded,
      goal_labels,
      secret_paths: shelf.secretPaths(),
    }
    return new ScopeSession(of, this.#ports({ head, asked, model }), { runs, causes, asked, acts })
  }

  #ports({ head, asked, model }: { head: EntryHead; asked: Asked; model: LanguageModelV4 | undefined }): SessionPorts {
    const { shelf, runs, parked, toolbox, agent, log, unit, now } = this.#parts
    const append = ({ kind, trace_id: _trace, ...fields }: SessionEntry) =>
      log.append([{ ...childHead(head), ...fields, kind: kind as SkillEntryKind }])
    return {
      registry: {
        index: () => shelf.index(),
        find: (id, version) => shelf.find(id, version),
        recentSuccess: () => runs.recentSuccess(),
        usage: (id) => runs.usage(id),
      },
      runner: (run) => this.#runner(run, { head, append }),
      runs: runs.port(asked, append),
      approvals: { park: (run, told) => parked.park(run, (approval_id) => append(told(approval_id))) },
      tools: () => toolbox.allowed,
      absence: (tool) => {
        const found = toolbox.forPlan(tool)
        return found.ok ? null : found.detail
      },
      probes: (agent().probes ?? {}) as SessionPorts['probes'],
      ask: slotModel(this.#parts, { head, model, signal: asked.signal }),
      log: (entry) => unit(() => append(entry)),
      redact: (value) => log.clean(value) as Json,
      now,
      newId: () => crypto.randomUUID(),
    }
  }

  /** Steps are effects like any others: one at a time in this scope, journalled, with what the scope allows. */
  #runner(
    { run_id, skill_id, version }: RunIdentity,
    { head, append }: { head: EntryHead; append: (told: SessionEntry) => void },
  ): HostRunnerPorts {
    const { database, unit, guard, runs, toolbox, effects, now } = this.#parts
    return {
      journal: new RunJournal({ database, unit, guard, append }),
      callTool: async (tool, input, { signal, timeout_ms, idempotence_key, hide, secrets }) => {
        const found = toolbox.forPlan(tool)
        if (!found.ok) throw new Error(found.detail)
        const { definition } = found
        const cause = { by: `skill:${skill_id}@${version}` }
        const request = {
          tool,
          definition,
          input,
          key: idempotence_key,
          cause,
          turn_id: `run:${run_id}`,
          earlier_turns: [],
          head,
          signal,
          timeout_ms,
          hide,
          secrets,
        }
        try {
          const output = await effects.run(request)
          return { output, cost_usd: costIn(output) }
        } catch (error) {
          if (error instanceof CutOff) throw error
          // By the tool's own time limit, which may be shorter than the step's.
          if (!definition.repeatable && effects.lastOf(request.turn_id)?.status === 'unknown') throw new CutOff(messageOf(error))
          throw error
        }
      },
      isRetryable,
      lastGood: async (key) => runs.lastGood(key),
      remember: async (key, outputs) => runs.remember(key, outputs, now()),
      alone: (key, work) => this.#keys.run(key, work),
      wait: (ms, signal) => scheduler.wait(ms, { signal }),
    }
  }
}
