import type { GateDecision, Need } from '../gate/decision.ts'

/** `observe`: what the policy would refuse is logged and runs. Secrets in the wrong place and deprecated versions are refused all the same. */
export type PolicyMode = 'enforce' | 'observe'

const OBSERVABLE = new Set<Need['need']>(['policy_field', 'role', 'residency', 'not_denied', 'promotion', 'approval'])

/** Whether the decision holds, or was only watched. */
export const isEnforced = ({ stage, needs }: GateDecision, mode: PolicyMode): boolean =>
  mode === 'enforce' || stage !== 'policy' || !needs.every(({ need }) => OBSERVABLE.has(need))
