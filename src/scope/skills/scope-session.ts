import { SkillSession } from '../../skills/session.ts'
import type { SessionSettings } from '../../skills/session/context.ts'
import type { SessionPorts } from '../../skills/session/ports.ts'
import { skillName, type ProposalRequest, type SkillProposal } from '../../skills/session/proposal.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { argumentsHash } from '../../agents/tool-keys.ts'
import type { Asked, SkillRuns } from './runs.ts'

type Own = {
  runs: SkillRuns
  /** The turn, action or call that this session is for, and its earlier attempts: what they had run is not run again. */
  causes: readonly string[]
  /** What the next run is recorded under. */
  asked: Asked
  /** Waits for a run that is being resumed. */
  resumed: (run_id: string) => Promise<ProposalResult | null>
}

/** A session whose proposals are those of a turn that may be repeated: the same proposal has the same run. */
export class ScopeSession extends SkillSession {
  readonly #own: Own

  constructor(settings: SessionSettings, ports: SessionPorts, own: Own) {
    super(settings, ports)
    this.#own = own
  }

  override async propose(proposal: SkillProposal, request: ProposalRequest): Promise<ProposalResult> {
    const { runs, causes, asked, resumed } = this.#own
    const { id } = skillName(proposal.skill_id)
    const inputs_hash = argumentsHash(proposal.inputs)
    const earlier = request.dry_run ? null : runs.earlier(id, causes, inputs_hash)
    if (earlier) {
      const known = earlier.result ?? (await resumed(earlier.run_id))
      if (known) return { ...known, idempotent: true }
      throw new Error(`the run ${earlier.run_id} of ${id} has not come to its end: it is not run a second time`)
    }
    asked.inputs_hash = inputs_hash
    return super.propose(proposal, request)
  }
}
