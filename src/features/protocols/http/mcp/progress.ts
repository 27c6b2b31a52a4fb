import type { ProgressNotificationParams, ServerContext } from '@modelcontextprotocol/server'
import { warn } from '../../../../base/warn.ts'
import type { LogEntry } from '../../../../contract/log-entry.ts'
import { Problem } from '../../../../contract/problem.ts'
import type { ProposalResult } from '../../../../skills/session/result.ts'
import { connect } from '../../../../http/scopes/sockets.ts'
import { blocksOf } from '../../../../http/scopes/sse-blocks.ts'
import type { Caller } from '../../../../http/auth/middleware.ts'
import type { SkillsPage } from './tool.ts'

/** Tells the client how far its request has come. */
export type Tell = (progress: Omit<ProgressNotificationParams, 'progressToken'>) => Promise<void>
type ProgressStep = Pick<ProposalResult['steps'][number], 'index' | 'tool' | 'status'>

/** Null unless the client sent a token, which asks for notifications of progress. */
export function tellOf({ _meta, notify }: Pick<ServerContext['mcpReq'], '_meta' | 'notify'>): Tell | null {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return null
  return (progress) => notify({ method: 'notifications/progress', params: { progressToken, ...progress } })
}

/**
 * Follows the run of one call by the log of its scope, and tells the client of each step that has
 * ended, once.
 */
export class StepProgress {
  readonly #c: Caller
  readonly #call: { call_id: string; skill_id: string }
  readonly #tell: Tell
  readonly #stop = new AbortController()
  readonly #told = new Set<number>()
  #followed: Promise<void> = Promise.resolve()
  #run: { run_id: string; total: number | undefined } | null = null

  constructor(c: Caller, call: { call_id: string; skill_id: string }, tell: Tell) {
    this.#c = c
    this.#call = call
    this.#tell = tell
  }

  /** Begins before the call does, so that no step is missed. */
  async follow(): Promise<void> {
    const { env, var: of } = this.#c
    const { name, key_id } = of.principal
    const by = { connection_id: name, key_id, source: name, may_send: false, decides_as: null, after: null }
    const log = await connect(env, of.scope, by).catch((error: unknown): null => {
      // A call runs without it: the client hears of the steps at the end.
      if (error instanceof Problem) return null
      throw error
    })
    if (log) this.#followed = this.#read(log)
  }

  /** Tells of the steps that the log has not shown yet. */
  async end(steps: readonly ProgressStep[]): Promise<void> {
    await this.stop()
    for (const step of steps) await this.#ended(step)
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#followed
  }

  async #read(log: Response): Promise<void> {
    const { signal } = this.#stop
    try {
      for await (const block of blocksOf(log, signal)) {
        const [, data] = /^event: log\ndata: (.*)$/m.exec(block) ?? []
        const entry = data === undefined ? null : (JSON.parse(data) as LogEntry)
        if (entry?.kind === 'skill-step-ended' && entry['skill_id'] === this.#call.skill_id && (await this.#isOwn(entry['run_id'])))
          await this.#ended(entry as unknown as ProgressStep)
      }
    } catch (error) {
      // The call continues, and has its own errors.
      if (!signal.aborted) warn({ message: 'the progress of a call cannot be followed', error })
    }
  }

  async #isOwn(run_id: unknown): Promise<boolean> {
    if (!this.#run) {
      const { env, var: of } = this.#c
      const { call_id, skill_id } = this.#call
      const stub = env.SCOPE.getByName(of.scope)
      const begun = await stub.skillCall(`call:${call_id}`)
      if (!begun) return false
      const page = JSON.parse(await stub.skills({ after: '', limit: 1, only: skill_id })) as SkillsPage
      this.#run = { run_id: begun.run_id, total: page.skills[0]?.manifest.plan.steps.length }
    }
    return this.#run.run_id === run_id
  }

  async #ended({ index, tool, status }: ProgressStep): Promise<void> {
    if (this.#told.has(index)) return
    this.#told.add(index)
    const total = this.#run?.total
    const progress = { progress: this.#told.size, ...(total !== undefined && { total }), message: `${tool}: ${status}` }
    // A client that has left does not stop the run.
    await this.#tell(progress).catch(() => this.#stop.abort())
  }
}
