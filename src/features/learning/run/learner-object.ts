import { DurableObject } from 'cloudflare:workers'
import { v7 as uuidv7 } from 'uuid'
import { backoff, pauses } from '../../../base/backoff.ts'
import { messageOf } from '../../../base/error-text.ts'
import { warn } from '../../../base/warn.ts'
import { Alarm } from '../../../kernel/alarm.ts'
import type { LearnerApi, LearnStart } from '../contract/learner-api.ts'
import { type EvidencePart, learnKinds, MOST_WINDOW, type ReadPlace, type StartedRun } from '../contract/runs.ts'
import type { LearningSettings } from '../contract/setting.ts'
import type { Env } from '../../../env.ts'
import { senderOfKey } from '../../../contract/sender.ts'
import { teachingKeys } from '../../../store/access/keys.ts'
import { writeRun } from '../store/learn-runs.ts'
import { storeOf } from '../../../store/store.ts'
import type { Saw } from '../episode.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { ended } from './ending.ts'
import { RunSteps, type ReadHistory } from './steps-of-run.ts'
import { LearnerStore, type LearningRun } from './store.ts'
import type { Program, Sandbox } from '../../../reflexes/sandbox.ts'
import { partsOf } from '../../../reflexes/weights.ts'
import type { ProgramWhy } from '../contract/why.ts'
import { explained, explaining } from '../reflexes/explain.ts'
import { whyOf } from '../reflexes/explain-words.ts'

/** Runs the program with an entry that says why, and acts on nothing. */
function explainRun(sandbox: Sandbox, { hash, code }: Program, saw: Saw): { why: ProgramWhy; fuel: number } {
  const unknown = (reason: string): ProgramWhy => ({ would: null, points: null, reasons: [reason] })
  const entry = explaining(code)
  if (entry === null) return { why: unknown('Its code is not of the form that learning writes, so that it says no more.'), fuel: 0 }
  const { value, error, fuel } = sandbox.run({ hash: `why ${hash}`, code: entry.code }, saw)
  const found = explained.safeParse(value)
  if (!found.success) return { why: unknown(`It could not be explained: ${error ?? 'its answer has another form'}.`), fuel }
  const parts = partsOf(code)
  return { why: whyOf(entry, parts.ok ? parts.weights : null, found.data, saw), fuel }
}

/** Work of one alarm. Its CPU time counts towards the limit of an invocation. */
const SLICE_MS = 5000
/** D1 gets the progress of a run this often. */
const REPORT_MS = 2000
const MOST_FAILURES = 20
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/**
 * Learns from the decisions of one scope, in runs. An alarm does a run step by step: each step ends
 * in one transaction, so that a run which is killed begins its current step again.
 */
export class LearnerObject extends DurableObject<Env> implements LearnerApi {
  readonly #store: LearnerStore
  readonly #steps: RunSteps
  readonly #alarm: Alarm
  #reported_at = 0
  /** A run waits until then after a failure. */
  #paused_until = 0
  /** The time for which the scope keeps decisions; null if it did not say. */
  #kept_ms: number | null = null

  constructor(context: DurableObjectState, env: Env, history: ReadHistory) {
    super(context, env)
    this.#store = new LearnerStore(context.storage)
    this.#steps = new RunSteps({ env, store: this.#store, history })
    this.#alarm = new Alarm(context.storage)
    this.#alarm.source((since) => this.#due(since))
  }

  async start(request: LearnStart): Promise<StartedRun> {
    // D1 must not miss how the run before it ended.
    if (this.#store.run?.status !== 'running') await this.#report()
    const scope = this.env.SCOPE.getByName(request.scope)
    const [{ settings }, teachers] = await Promise.all([scope.state(), scope.teachers()])
    const { run } = this.#store
    if (run?.status === 'running') {
      if (run.quiet && request.started_by !== 'schedule') {
        this.#store.unit(() => this.#store.write({ ...run, quiet: false }))
        await this.#report()
      }
      this.#wake()
      return { run_id: run.run_id, status: run.status, already_running: true }
    }
    const teaching = await teachingKeys(storeOf(this.env), request.scope).catch(() => [])
    const trusted_sources = [...(request.trusted_sources ?? []), ...teachers, ...teaching.map(senderOfKey)]
    const fresh = { ...newRun({ ...request, trusted_sources }, settings.learning, Date.now()), asks_nothing: teachers.length > 0 }
    const is_off = fresh.quiet && settings.learning.mode === 'off'
    const begun = is_off ? ended(fresh, 'done', 'The setting learning.mode is off.', Date.now()) : fresh
    this.#store.unit(() => this.#store.write(begun))
    this.#wake()
    await this.#report().catch((error: unknown) => warn({ message: 'failed to report a learning run; will retry', error }))
    return { run_id: begun.run_id, status: begun.status, already_running: false }
  }

  async evidence(of: { run_id: string; decision: string; part: EvidencePart }): Promise<ReadPlace[] | null> {
    return this.#store.groundsOf(of)
  }

  async explain({ hash, code, saw }: { hash: string; code: string; saw: string }) {
    return explainRun(isolateSandbox(), { hash, code }, JSON.parse(saw) as Saw)
  }

  /** Resumes a run now. */
  #wake(): void {
    this.#paused_until = 0
    this.#alarm.rearm()
  }

  /** Between runs: when the oldest decision is to be forgotten, and daily: settings may change. */
  #due(since: number): number | null {
    if (this.#store.run?.status === 'running' || this.#store.unreported) return Math.max(since, this.#paused_until)
    const { oldest } = this.#store
    if (oldest === null) return null
    if (this.#kept_ms === null) return since + HOUR_MS
    return Math.min(since + DAY_MS, Math.max(since + HOUR_MS, oldest + this.#kept_ms))
  }

  override alarm(): Promise<void> {
    return this.#alarm.fired(() => this.#work())
  }

  /** Runs one step at a time, until the end of the slice or a failure. */
  async #work(): Promise<void> {
    const until = Date.now() + SLICE_MS
    this.#paused_until = 0
    if (!(await this.#tried(() => this.#forgetOld()))) return
    while (this.#store.run?.status === 'running' && Date.now() < until) {
      if (!(await this.#tried(() => this.#step()))) return
      // Let other callers of the object run, and the clock advance.
      await scheduler.wait(0)
    }
    try {
      await this.#report()
    } catch (error) {
      warn({ message: 'failed to report a learning run; will retry', error })
      this.#paused_until = Date.now() + backoff(pauses.learning)
    }
  }

  /**
   * Forgets decisions that the scope no longer keeps, before a run reads and between runs; and all,
   * if the scope masks other fields now.
   */
  async #forgetOld(): Promise<void> {
    this.#kept_ms = null
    const { run } = this.#store
    if (!run) return
    const { settings } = await this.env.SCOPE.getByName(run.scope).state()
    const kept_ms = (this.#kept_ms = settings.retention_days * DAY_MS)
    const masked = JSON.stringify(settings.redact.toSorted())
    const before = this.#store.get('masked')
    const { oldest } = this.#store
    const begins = run.status !== 'running' || (run.progress.phase === 'read' && run.progress.done === 0)
    const is_old = begins && oldest !== null && oldest < Date.now() - kept_ms
    if (before === masked && !is_old) return
    this.#store.unit(() => {
      this.#store.put('masked', masked)
      if (is_old) this.#store.forgetBefore(Date.now() - kept_ms)
      if (before === undefined || before === masked) return
      this.#store.forgetAll()
      const current = this.#store.run
      if (current?.status === 'running') this.#store.write(readAgain(current))
    })
    if (before !== masked) this.#steps.restart()
  }

  async #step(): Promise<void> {
    await this.#steps.next()
    if (Date.now() - this.#reported_at > REPORT_MS) await this.#report()
  }

  /** False if the run failed, and waits before it is tried again. */
  async #tried(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      return this.#failed(error)
    }
  }

  #failed(error: unknown): boolean {
    const { run } = this.#store
    if (run?.status !== 'running') return true
    const failures = run.failures + 1
    warn({ message: 'a step of a learning run failed', scope: run.scope, run_id: run.run_id, failures, error })
    const answer = `It stopped: ${messageOf(error)}`
    const next = failures < MOST_FAILURES ? { ...run, failures } : ended(run, 'failed', answer, Date.now())
    this.#store.unit(() => this.#store.write(next))
    this.#paused_until = Date.now() + (next.status === 'running' ? backoff(pauses.learning, failures) : 0)
    return next.status !== 'running'
  }

  /** Copies the run to D1, if D1 lacks a change. */
  async #report(): Promise<void> {
    const { run, revision, unreported } = this.#store
    this.#reported_at = Date.now()
    if (!run || !unreported) return
    if (run.quiet) return this.#store.reported(revision)
    const {
      trusted_sources: _trusted,
      set_sources: _set,
      replies: _replies,
      min_agreement: _agreement,
      drifted: _drifted,
      round: _round,
      begun: _begun,
      failures: _failures,
      asks: _asks,
      settled: _settled,
      changed: _changed,
      quiet: _quiet,
      asks_nothing: _asks_nothing,
      ...told
    } = run
    await writeRun(storeOf(this.env), told, revision)
    this.#store.reported(revision)
  }
}

/** The run from its beginning, without what it has registered. */
const readAgain = (run: LearningRun): LearningRun => ({
  ...run,
  progress: { phase: 'read', done: 0, of: null },
  episodes: { read: 0, used: 0, asked_again: 0, skipped: [], from: null, to: null },
  rejected: [],
  round: 0,
  begun: 0,
  asks: [],
  settled: 0,
  changed: 0,
})

function newRun({ scope, window, kinds = [...learnKinds], ...of }: LearnStart, settings: LearningSettings, now: number): LearningRun {
  const { started_by, by, drifted = [], trusted_sources = [] } = of
  return {
    run_id: uuidv7(),
    scope,
    status: 'running',
    started_by,
    by,
    kinds,
    window: Math.min(window ?? settings.window, MOST_WINDOW),
    progress: { phase: 'read', done: 0, of: null },
    episodes: { read: 0, used: 0, asked_again: 0, skipped: [], from: null, to: null },
    found: 0,
    answer: 'It is running.',
    started_at: now,
    ended_at: null,
    candidates: [],
    rejected: [],
    trusted_sources: [...settings.trusted_sources, ...trusted_sources],
    set_sources: settings.trusted_sources,
    replies: settings.replies,
    min_agreement: settings.min_agreement,
    drifted,
    round: 0,
    begun: 0,
    failures: 0,
    asks: [],
    settled: 0,
    changed: 0,
    quiet: started_by === 'schedule',
  }
}
