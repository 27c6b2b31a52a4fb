import { equivalenceOf, type ReplayReport, type ReplaySide } from '../contract/replay.ts'
import type { Spent } from '../contract/what-if.ts'
import { addedUsage } from '../../../traces/usage.ts'

/** A report for the scopes that a trace went through. */
export function mergeReports(reports: readonly ReplayReport[]): ReplayReport {
  return reports.reduce(mergeTwo)
}

function mergeTwo(left: ReplayReport, right: ReplayReport): ReplayReport {
  const spent = left.spent && right.spent ? sumOfSpent(left.spent, right.spent) : (left.spent ?? right.spent)
  const changed = left.changed + right.changed
  const unknown = [...left.unknown, ...right.unknown]
  return {
    ...left,
    complete: left.complete && right.complete,
    equivalent: equivalenceOf({ changed, unknown: unknown.length }),
    compared: left.compared + right.compared,
    changed,
    divergences: [...left.divergences, ...right.divergences],
    unknown,
    recorded: sumOfSides(left.recorded, right.recorded),
    replayed: sumOfSides(left.replayed, right.replayed),
    ...((left.effects ?? right.effects) && { effects: [...(left.effects ?? []), ...(right.effects ?? [])] }),
    ...(spent && { spent }),
  }
}

function sumOfSides(left: ReplaySide, right: ReplaySide): ReplaySide {
  const unanswered = (left.unanswered ?? 0) + (right.unanswered ?? 0)
  return {
    usage: addedUsage(left.usage, right.usage),
    effects: left.effects + right.effects,
    duration_ms: left.duration_ms + right.duration_ms,
    ...(unanswered > 0 && { unanswered }),
  }
}

const sumOfSpent = (left: Spent, right: Spent): Spent => ({
  calls: left.calls + right.calls,
  usd: left.usd === null || right.usd === null ? null : left.usd + right.usd,
})
