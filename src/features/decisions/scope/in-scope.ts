import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { proofOf } from '../../proof/scope/in-scope.ts'
import { decisionModelName } from '../models/resolve.ts'
import { DecisionModelCalls } from './decisions.ts'
import { MiddleProof } from './middle-proof.ts'

/** The decision model of a scope, and the proof of its threshold. */
export function decisionsInScope(scope: Collaborators): readonly ScopeFeature[] {
  const middle_proof = new MiddleProof({ ...scope, ...proofOf(scope) })
  const chain = () => {
    const asked = scope.settings().decision_model
    if (!asked) return {}
    const { name, model = decisionModelName(scope.env), types = null } = asked
    return { decision_model: { name, model, types, threshold: middle_proof.threshold(asked) } }
  }
  return [middle_proof, new DecisionModelCalls({ ...scope, middle_proof }), { name: 'chain of the decision model', chain }]
}
