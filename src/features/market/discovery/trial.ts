import type { Computing } from '../../../base/computing.ts'
import type { Refused, Result } from '../../../base/result.ts'
import type { DealRefused, LedgerApi } from '../contract/ledger-api.ts'
import type { Listing } from '../contract/listing.ts'
import type { NewTrial, TrialReport } from '../contract/trial.ts'
import type { Act, ReflexVersion } from '../../../contract/reflex.ts'
import { agentOwner } from '../../../contract/reflex.ts'
import type { EvaluationReport } from '../../../contract/reports/reflex-report.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { evaluateRecordings } from '../../../reflexes/evaluation.ts'
import type { Sandbox } from '../../../reflexes/sandbox.ts'
import { beginTrial, endTrial, findTrial } from '../store/trials.ts'

/** Recordings per page. The scope limits a page by its bytes, too. */
const PAGE = 100

type TrialParts = {
  db: D1Database
  ledger: Pick<LedgerApi, 'payTrial'>
  scope: Pick<ScopeApi, 'identify' | 'chain' | 'recordings' | 'state'>
  sandbox: Sandbox
  computing: Computing
  now: number
}
export type TrialRefused = DealRefused | Refused<'other_content' | 'goods_changed'>
/** The listed version. `evaluate` runs it on the scope's recordings. */
export type TrialGoods = { hash: string; ended: boolean; evaluate: (parts: TrialParts, since: number) => Promise<Evaluated> }
type TrialRequest = NewTrial & { id: string; listing: Listing; goods: TrialGoods | null }

/**
 * Runs listed goods on what a scope recorded, without acting and without showing their code. The
 * id has one fee and one range of recordings, so that repeating it shows nothing more.
 */
export async function tryListing(
  parts: TrialParts,
  { listing, goods, scope, since, id }: TrialRequest,
): Promise<Result<{ report: TrialReport }, TrialRefused>> {
  const { db, ledger, now } = parts
  const { listing_id, hash } = listing
  if (!goods || goods.hash !== hash || goods.ended)
    return { ok: false, reason: 'goods_changed', detail: `${listing.artifact} was retired or is no longer there.` }
  const row = { listing_id, scope, id, since: Date.parse(since) }
  const other = { ok: false, reason: 'other_content', detail: `The trial ${id} has another \`since\`: use another id.` } as const
  const known = await findTrial(db, row)
  if (known && known.since !== row.since) return other
  if (known?.report) return { ok: true, report: known.report }
  const paid = await ledger.payTrial(listing_id, { buyer: agentOwner(scope), id })
  if (!paid.ok) return paid
  // A request with the same id may have come first.
  const begun = await beginTrial(db, row, now)
  if (begun.since !== row.since) return other
  if (begun.report) return { ok: true, report: begun.report }
  const evaluated = await goods.evaluate(parts, row.since)
  const { turns, model_calls, cost_usd } = (await parts.scope.state()).counters
  const report: TrialReport = {
    ...shown(evaluated),
    trial_id: id,
    listing_id,
    artifact: listing.artifact,
    scope,
    since: new Date(row.since).toISOString(),
    fee: listing.terms.trial_fee ?? 0,
    would_save: saving(evaluated, { turns, model_calls, cost_usd }),
  }
  await endTrial(db, row, report)
  return { ok: true, report }
}

/** `stages`: of a skill. */
export type Evaluated = Omit<EvaluationReport, 'errors' | 'fuel' | 'disagreements'> & {
  disagreements: { event_id: string; action: { action_type: string }; decided: Act[] }[]
  truncated: boolean
  stages?: Record<string, number>
}

export const evaluateReflex = ({ sandbox, computing, scope }: TrialParts, program: ReflexVersion, since: number): Promise<Evaluated> =>
  evaluateRecordings({
    sandbox,
    computing,
    program,
    identify: (calls) => scope.identify(calls),
    read: (after) => scope.recordings({ since, after, limit: PAGE }),
  })

/** Arguments, errors and fuel would show more of the program than its decisions do. */
function shown({ contexts, fires, passes, agreement, missed, truncated, disagreements, stages }: Evaluated) {
  return {
    contexts,
    fires,
    passes,
    agreement,
    missed,
    truncated,
    stages: stages ?? null,
    disagreements: disagreements.map(({ event_id, action, decided }) => ({ event_id, action_type: action.action_type, decided })),
  }
}

type Spent = { turns: number; model_calls: number; cost_usd: number }

function saving({ agreement: { agreed }, contexts }: Evaluated, { turns, model_calls, cost_usd }: Spent): TrialReport['would_save'] {
  const seen = contexts.recorded + contexts.rebuilt
  if (turns === 0 || seen === 0) return null
  const usd = (agreed * cost_usd) / turns
  return { model_calls: (agreed * model_calls) / turns, usd, per_1000_events_usd: (usd / seen) * 1000 }
}
