import { isJsonFields, type JsonFields } from '../../base/json.ts'
import { Comparison } from '../report.ts'

/** Compares what was decided, not what it was decided from, which the changes exchange. */
export class Decisions extends Comparison {
  override compare(...[at, kind, { recorded, replayed }]: Parameters<Comparison['compare']>): boolean {
    return super.compare(at, kind, { recorded: decidedIn(recorded), replayed: decidedIn(replayed) })
  }

  override compareMasked(...[at, kind, { recorded, replayed }]: Parameters<Comparison['compareMasked']>): void {
    super.compareMasked(at, kind, { recorded: decidedIn(recorded), replayed: decidedIn(replayed) })
  }
}

/** Entries of skill sessions as far as they are decisions; other values as they are. */
function decidedIn(value: unknown): unknown {
  if (!isJsonFields(value) || typeof value['kind'] !== 'string') return value
  const { kind, decision } = value
  if (kind === 'skill-decided' && isJsonFields(decision)) return gateDecision(value, decision)
  const { manifest_hash: _hash, ...rest } = value
  return rest
}

/** Scores, checks and their texts name thresholds, which differ though the verdict may not. */
const gateDecision = ({ skill_id, enforced }: JsonFields, { verdict, stage, questions }: JsonFields) => ({
  skill_id,
  enforced,
  verdict,
  stage,
  questions,
})
