import { messageOf } from '../../base/error-text.ts'
import { costIn } from '../../skills/runner/call-step.ts'
import type { Journal, JournalEntry, Phase, RunnerPorts, StepBegin, StepEnd } from '../../skills/runner/ports.ts'
import type { RunIdentity, SessionEntry } from '../../skills/session/ports.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import { type EffectPlace, ownerOfRun, type HeldEffect } from '../effects/effect.ts'
import type { GuardedWork } from '../upkeep/guard.ts'
import { runHead, stepHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import type { Lanes } from '../effects/wiring.ts'

type JournalParts = Pick<Lanes, 'database' | 'effects' | 'toolbox' | 'guard' | 'jobs' | 'unit'>
type JournalledRun = { run: RunIdentity; head: EntryHead; append: (unit: Unit, entry: SessionEntry) => void }

/**
 * The journal of one run's plan. Steps are effects: one at a time in the scope, with the tools that
 * the scope allows, and one journal row for the effect and the step that it is.
 *
 * The row's begin is written once the effect has the lane, its end together with the step's end and
 * the log entries of both. If the process dies before the first write, the step was not begun;
 * before the second, it may have happened, and the runner decides by its key; after it, it never
 * runs again (G8). `end` waits until it is on disk: a death in the next step would otherwise take
 * it back.
 */
export class StepJournal implements Journal<SessionEntry> {
  readonly #parts: JournalParts
  readonly #run: JournalledRun
  readonly #work: GuardedWork
  /** The current step of the runner. */
  #step: EffectPlace | null = null
  /** The step's last effect, whose end is not written yet. */
  #held: HeldEffect | null = null
  /** Counts calls of tools, and what ends the wait for one. */
  #attempt = 0

  constructor(parts: JournalParts, run: JournalledRun) {
    this.#parts = parts
    this.#run = run
    this.#work = { kind: 'run', id: run.run.run_id }
  }

  async load(run_id: string): Promise<JournalEntry[]> {
    return this.#parts.effects.journal.steps(run_id)
  }

  /** Written together with the effect. */
  async begin(_run_id: string, { phase, index }: StepBegin): Promise<void> {
    this.#step = this.#placeOf(phase, index)
  }

  async end(_run_id: string, { phase, index }: { phase: Phase; index: number }, end: StepEnd, entry: SessionEntry): Promise<void> {
    const { effects, guard, jobs, unit, database } = this.#parts
    const held = this.#takeHeld()
    this.#step = null
    unit((ending) => {
      if (held) held.close(ending, end)
      else effects.journal.endStep(ending, this.#placeOf(phase, index), end)
      this.#run.append(ending, entry)
      // The run progressed: earlier crashes were of other work.
      guard.done(this.#work)
      jobs.progressed(ending, 'run', this.#work.id)
    }, this.#work)
    await database.sync()
  }

  readonly call: RunnerPorts['callTool'] = async (tool, input, { signal, timeout_ms, idempotence_key, hide, secrets }) => {
    const { effects, toolbox } = this.#parts
    const { run, head } = this.#run
    const found = toolbox.forPlan(tool)
    if (!found.ok) throw new Error(found.detail)
    const { definition } = found
    const step = this.#step
    if (!step) throw new Error(`${tool} is called outside of a step`)
    const attempt = (this.#attempt += 1)
    const step_head = stepHead(runHead(head, run.run_id), run.run_id, { phase: step.phase, index: step.place })
    const held = await effects.hold({
      tool,
      definition,
      input,
      step,
      key: idempotence_key,
      cause: { by: `skill:${run.skill_id}@${run.version}` },
      turn_id: step.owner,
      earlier_turns: [],
      head: step_head,
      signal,
      timeout_ms,
      hide,
      secrets,
      approved: run.approved,
    })
    this.#held = held
    // The runner stopped waiting for it.
    if (this.#attempt !== attempt) this.flush()
    if (!held.thrown) return { output: held.output, cost_usd: costIn(held.output) }
    const { error } = held.thrown
    // Cut off by the tool's own time limit, which may be shorter than the step's.
    if (held.result.status === 'unknown' && !definition.repeatable && !(error instanceof CutOff)) throw new CutOff(messageOf(error))
    throw error
  }

  /** Writes the end of an attempt that was not the step's last, before time passes. */
  flush(): void {
    const held = this.#takeHeld()
    if (held) this.#parts.unit((unit) => held.close(unit), this.#work)
  }

  #takeHeld(): HeldEffect | null {
    const held = this.#held
    this.#held = null
    this.#attempt += 1
    return held
  }

  #placeOf(phase: Phase, place: number): EffectPlace {
    return { owner: ownerOfRun(this.#run.run.run_id), phase, place }
  }
}
