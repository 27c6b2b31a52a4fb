import { formatClarify, formatResult } from '../asp/format.ts'
import type { ProposalSession } from '../session/session.ts'
import type { ProposalRequest, SkillProposal } from '../session/ports.ts'
import type { ProposalResult } from '../session/result.ts'
import type { Question } from '../plan/slots.ts'
import type { Intent } from './intents.ts'

export type SkillReport =
  | { kind: 'proposal'; result: ProposalResult }
  | { kind: 'clarify'; questions: Question[] }
  | { kind: 'problem'; skill_id: string; status: 'malformed' | 'refused'; reason: string }

export function shownReports(reports: readonly SkillReport[]): { proposals: ShownProposal[]; questions: Question[] } {
  const proposals = reports.flatMap((report) => (report.kind === 'clarify' ? [] : [shownProposal(report)]))
  return { proposals, questions: reports.flatMap((report) => (report.kind === 'clarify' ? report.questions : [])) }
}

type ShownProposal = Partial<Pick<ProposalResult, 'proposal_id' | 'approval_id' | 'run_id'>> &
  Pick<ProposalResult, 'skill_id' | 'reason'> & { status: ProposalResult['status'] | 'malformed' }

function shownProposal(report: Exclude<SkillReport, { kind: 'clarify' }>): ShownProposal {
  if (report.kind === 'problem') return { skill_id: report.skill_id, status: report.status, reason: report.reason }
  const { proposal_id, skill_id, status, reason, approval_id, run_id } = report.result
  return { proposal_id, skill_id, status, reason, approval_id, run_id }
}

export type CallReply = { call_id: string | null; text: string }

type SettledIntents = { replies: CallReply[]; reports: SkillReport[] }

/** Runs the first proposal and refuses all further ones. Each intent gets one reply. */
export async function settleIntents(
  intents: readonly Intent[],
  { session, request }: { session: ProposalSession; request: ProposalRequest },
): Promise<SettledIntents> {
  const settled: SettledIntents = { replies: [], reports: [] }
  const first = intents.find(({ kind }) => kind === 'propose')
  for (const intent of intents) {
    const { text, report } = await settle(intent, { runs: intent === first, session, request })
    settled.replies.push({ call_id: intent.call_id, text })
    settled.reports.push(report)
  }
  return settled
}

async function settle(
  intent: Intent,
  { runs, session, request }: { runs: boolean; session: ProposalSession; request: ProposalRequest },
): Promise<{ text: string; report: SkillReport }> {
  if (intent.kind === 'problem') return problem(intent.skill_id, intent.status, intent.reason)
  if (intent.kind === 'clarify') return problem('', 'refused', 'ask or propose, not both in one answer')
  return runs ? proposed(intent.proposal, { session, request }) : problem(intent.proposal.skill_id, 'refused', ONE)
}

const ONE = 'one at a time: propose it again after this'

async function proposed(
  proposal: SkillProposal,
  { session, request }: { session: ProposalSession; request: ProposalRequest },
): Promise<{ text: string; report: SkillReport }> {
  const result = await session.propose(proposal, request)
  return { text: resultMessage(result), report: { kind: 'proposal', result } }
}

/** The result for the model, with open questions if there are any. */
function resultMessage({ skill_id, status, outputs, reason, approval_id, questions, decision }: ProposalResult): string {
  const why = approval_id === null ? ((decision.to_pass.join('; ') || reason) ?? '') : `it waits for the approval ${approval_id}`
  if (status === 'clarify') return `${formatResult({ skill_id, status })}\n${formatClarify(questions)}`
  return formatResult({ skill_id, status, outputs, reason: status === 'ok' ? '' : ranBadly(status) ? (reason ?? '') : why })
}

const ranBadly = (status: ProposalResult['status']): boolean => status === 'failed' || status === 'partial_failure' || status === 'unknown'

const problem = (skill_id: string, status: 'malformed' | 'refused', reason: string): { text: string; report: SkillReport } => ({
  text: formatResult({ skill_id, status, reason }),
  report: { kind: 'problem', skill_id, status, reason },
})
