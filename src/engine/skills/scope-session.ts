import { noteRun } from '../../agent/failed-calls.ts'
import type { FailedRun } from '../../contract/event-record.ts'
import { type Act, skillName } from '../../contract/reflex.ts'
import { actsOf } from '../../skills/session/owner.ts'
import type { ProposalRequest, SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { SkillSession } from '../../skills/session/session.ts'
import { argumentsHash } from '../../tools/tool-keys.ts'
import type { Jobs } from '../jobs.ts'
import type { RunAsker, SkillRuns } from './runs.ts'

type AskerParts = {
  runs: SkillRuns
  jobs: Jobs
  /** The session's turn, action or call, and its earlier attempts. */
  causes: readonly string[]
  /** The asker under which the next run is recorded. */
  asker: RunAsker
  acts: Act[] | undefined
  failed_runs: FailedRun[] | undefined
}

/**
 * A session for an asker that may repeat a proposal: it gets the same run. Its end stops the run.
 */
export class ScopeSession {
  readonly #session: SkillSession
  readonly #parts: AskerParts
  #busy = false

  constructor(session: SkillSession, parts: AskerParts) {
    this.#session = session
    this.#parts = parts
  }

  bulletin(text: string): string {
    return this.#session.bulletin(text)
  }

  async propose(proposal: SkillProposal, given: ProposalRequest): Promise<ProposalResult> {
    const { asker, acts, failed_runs } = this.#parts
    const stops = [given.signal, asker.signal].filter((signal) => signal !== undefined)
    const request = { ...given, signal: stops.length > 0 ? AbortSignal.any(stops) : undefined }
    if (request.dry_run || this.#busy) return this.#session.propose(proposal, request)
    this.#busy = true
    try {
      const result = await this.#once(proposal, request)
      acts?.push(...actsOf(proposal, result))
      if (failed_runs) noteRun(failed_runs, result)
      return result
    } finally {
      this.#busy = false
    }
  }

  async #once(proposal: SkillProposal, request: ProposalRequest): Promise<ProposalResult> {
    const { runs, jobs, causes, asker } = this.#parts
    const { id } = skillName(proposal.skill_id)
    asker.inputs_hash = argumentsHash(proposal.inputs)
    const first = runs.earlier(id, causes, asker.inputs_hash)
    // An interrupted turn's run may still be running, or be compensated: the two must not overlap.
    if (first) await jobs.idle('run', first.run_id)
    const earlier = first && runs.earlier(id, causes, asker.inputs_hash)
    if (earlier?.result) return { ...earlier.result, idempotent: true }
    if (earlier) throw new Error(`the run ${earlier.run_id} of ${id} has not come to its end: it is not run a second time`)
    return this.#session.propose(proposal, request)
  }
}
