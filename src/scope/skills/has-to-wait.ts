import type { ProposalResult } from '../../skills/session/result.ts'

const PACE = new Set(['cooldown', 'concurrency'])

/** Refused for nothing but that another run of the skill is at work, or was a moment ago. */
export function hasToWait({ status, decision }: ProposalResult): boolean {
  const failed = decision.stages.flatMap(({ verdict, checks }) => (verdict === 'failed' ? checks.filter(({ passed }) => !passed) : []))
  return status === 'refused' && failed.length > 0 && failed.every(({ check }) => PACE.has(check))
}
