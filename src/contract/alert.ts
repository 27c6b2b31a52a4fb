import type { Json } from '../base/json.ts'

export const alertNames = [
  'dead-letters',
  'approval-waiting',
  'budget-spent',
  'budget-near',
  'reflex-demoted',
  'certificate-lapsed',
  'model-silent',
  'model-failing',
  'turns-slow',
  'tool-failing',
  'cost-rise',
  'database-unavailable',
  'ledger-size',
] as const
export type AlertName = (typeof alertNames)[number]
/** A condition of the deployment. `id` names the condition and its period: it is raised once. */
export type Alert = { id: string; name: AlertName; summary: string; details: Readonly<Record<string, Json>> }
