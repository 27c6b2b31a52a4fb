import type { LogEntry } from '../../src/contract/log-entry.ts'

/** The results of one skill's proposals. */
export type SkillTally = { ran: number; failed: number; refused: number; to_approve: number }
export type SkillTallies = Readonly<Record<string, SkillTally>>

/** Returns the tallies after one more entry. Entries that end no proposal change nothing. */
export function countSkill(tallies: SkillTallies, entry: LogEntry): SkillTallies {
  const outcome = outcomeOf(entry)
  const skill_id = 'skill_id' in entry ? entry.skill_id : null
  if (outcome === null || typeof skill_id !== 'string') return tallies
  const tally = tallies[skill_id] ?? { ran: 0, failed: 0, refused: 0, to_approve: 0 }
  return { ...tallies, [skill_id]: { ...tally, [outcome]: tally[outcome] + 1 } }
}

function outcomeOf(entry: LogEntry): keyof SkillTally | null {
  if (entry.kind === 'skill-applied') return entry['status'] === 'ok' || entry['status'] === 'reused' ? 'ran' : 'failed'
  if (entry.kind === 'approval-requested') return 'to_approve'
  if (entry.kind === 'skill-refused') return 'refused'
  if (entry.kind === 'skill-decided') return REFUSED.has(String(verdictOf(entry['decision']))) ? 'refused' : null
  return null
}

const REFUSED = new Set(['refused', 'deny', 'clarify', 'needs_promotion'])

const verdictOf = (decision: unknown): unknown =>
  typeof decision === 'object' && decision !== null && 'verdict' in decision ? decision.verdict : null
