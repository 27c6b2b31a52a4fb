import { iso } from '../../../base/time.ts'
import type { StoredApproval } from '../../../contract/approval.ts'
import type { Doubt } from '../../../contract/origin.ts'
import type { TrustedText } from '../../../contract/settings/origins.ts'
import type { OfferedRule } from '../../../contract/offered-rule.ts'

/** Fewer approvals are no habit. */
const LEAST = 3
const MOST_SHOWN = 10

type Decided = Pick<StoredApproval, 'id' | 'kind' | 'skill_id' | 'inputs' | 'status' | 'edits' | 'created_at'>
/** Questions about an argument of a tool whose values stood in texts of the same kind. */
type Habit = { tool: string; argument: string; in: string; said_no: boolean; approved: { id: string; value: string; at: number }[] }

/**
 * The rules that follow from what people decided, the newest first: where they approved values of
 * one kind of text for an argument again and again, and never said otherwise.
 */
export function offeredRules(decided: readonly Decided[], given: readonly TrustedText[]): OfferedRule[] {
  const habits = new Map<string, Habit>()
  for (const one of decided)
    for (const { tool, origins, is_approved } of callsIn(one))
      for (const { argument, value, in: text } of origins) {
        if (text === undefined) continue
        const key = JSON.stringify([tool, argument, text])
        const habit = habits.get(key) ?? { tool, argument, in: text, said_no: false, approved: [] }
        habits.set(key, habit)
        if (is_approved) habit.approved.push({ id: one.id, value, at: one.created_at })
        else habit.said_no = true
      }
  return [...habits.values()].flatMap((habit) => (habit.said_no || isGiven(habit, given) ? [] : offered(habit, given)))
}

type DecidedCall = { tool: string; origins: Doubt[]; is_approved: boolean }

/** The calls of a question with what is in doubt. One that was changed is not approved. */
function callsIn({ kind, skill_id, inputs, status, edits }: Decided): DecidedCall[] {
  const asked =
    kind === 'call' ? [{ ...inputs, tool: skill_id }] : kind === 'calls' ? (inputs['calls'] as { tool: string; origins?: unknown }[]) : []
  return asked.map(({ tool, origins }: { tool: string; origins?: unknown }, index) => ({
    tool,
    origins: Array.isArray(origins) ? (origins as Doubt[]) : [],
    is_approved: status === 'approved' && (kind === 'call' ? !edits : !Object.hasOwn(edits ?? {}, String(index + 1))),
  }))
}

const isGiven = ({ tool, argument, in: text }: Habit, given: readonly TrustedText[]): boolean =>
  given.some((rule) => rule.in === text && rule.what.includes(argument) && (rule.tools?.includes(tool) ?? true))

function offered({ tool, argument, in: text, approved }: Habit, given: readonly TrustedText[]): OfferedRule[] {
  const questions = new Map(approved.map((one) => [one.id, one]))
  const oldest = [...questions.values()].at(-1)
  if (questions.size < LEAST || !oldest) return []
  const rule: TrustedText = { in: text, what: [argument], tools: [tool] }
  return [
    {
      says: `What stands in texts of \`${text}\` may be \`${argument}\` of \`${tool}\`, without a question.`,
      rule,
      approved: questions.size,
      values: [...new Set(approved.map(({ value }) => value))].slice(0, MOST_SHOWN),
      approvals: [...questions.keys()].slice(0, MOST_SHOWN),
      since: iso(oldest.at),
      patch: { trusted_text: [...given, rule] },
    },
  ]
}
