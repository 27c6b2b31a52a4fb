import { SkillSession } from '../../skills/session/session.ts'
import type { SessionSettings } from '../../skills/session/context.ts'
import type { SessionPorts } from '../../skills/session/ports.ts'
import type { ProposalRequest, SkillProposal } from '../../skills/session/proposal.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Act } from '../../contract/reflex.ts'
import { skillAct, skillName } from '../../contract/skill-act.ts'
import { argumentsHash } from '../../tools/tool-keys.ts'
import type { Asked, SkillRuns } from './runs.ts'

type Own = {
  runs: SkillRuns
  /** The turn, action or call that this session is for, and its earlier attempts: what they had run is not run again. */
  causes: readonly string[]
  /** The next run is recorded under it. */
  asked: Asked
  /** Where the acts of its turn are noted. */
  acts: Act[] | undefined
}

/** A session whose proposals are those of a turn that may be repeated: the same proposal has the same run. Once that turn is over, what it runs is stopped. */
export class ScopeSession extends SkillSession {
  readonly #own: Own
  #busy = false

  constructor(settings: SessionSettings, ports: SessionPorts, own: Own) {
    super(settings, ports)
    this.#own = own
  }

  override async propose(proposal: SkillProposal, given: ProposalRequest): Promise<ProposalResult> {
    const { asked } = this.#own
    const stops = [given.signal, asked.signal].filter((signal) => signal !== undefined)
    const request = { ...given, signal: stops.length > 0 ? AbortSignal.any(stops) : undefined }
    if (request.dry_run || this.#busy) return super.propose(proposal, request)
    this.#busy = true
    try {
      const result = await this.#once(proposal, request)
      if (hasActed(result)) this.#own.acts?.push(skillAct(proposal.skill_id, proposal.inputs))
      return result
    } finally {
      this.#busy = false
    }
  }

  async #once(proposal: SkillProposal, request: ProposalRequest): Promise<ProposalResult> {
    const { runs, causes, asked } = this.#own
    const { id } = skillName(proposal.skill_id)
    asked.inputs_hash = argumentsHash(proposal.inputs)
    const first = runs.earlier(id, causes, asked.inputs_hash)
    // An interrupted turn's run may still be at work, or be undone just now: the two must not run side by side.
    if (first) await runs.rested(first.run_id)
    const earlier = first && runs.earlier(id, causes, asked.inputs_hash)
    if (earlier?.result) return { ...earlier.result, idempotent: true }
    if (earlier) throw new Error(`the run ${earlier.run_id} of ${id} has not come to its end: it is not run a second time`)
    return super.propose(proposal, request)
  }
}

/** An approval is requested instead of a run: that is all that the turn can do. */
const hasActed = ({ status }: ProposalResult): boolean => status === 'ok' || status === 'needs_approval'
