import type { GateRequest } from '../../../src/skills/gate/decision.ts'
import { deployManifest } from './deploy-manifest.ts'

export const NOW = Date.parse('2026-11-21T05:00:00.000Z')

/** A request that is allowed, with what is named changed. */
export function gateRequest(changes: Partial<GateRequest> = {}): GateRequest {
  return {
    manifest: deployManifest(),
    state: 'active',
    compat: { env: ['staging'], toolset: 'v6', repo: 'github.com/acme/payments', project: 'acme/payments' },
    inputs: { app_name: 'payments-stg-webapp', image_tag: 'acr.io/pay:abc' },
    inputs_from: 'model',
    text: 'Deploy latest to staging',
    goal_labels: ['deploy'],
    entity_types: [],
    blackboard: { ctx: { subscription: 'blue' }, env: { az: { account: { subscription: 'blue' } } }, work: {}, policy: {} },
    tools: ['term.exec', 'tests.run'],
    recent_success: false,
    roles: ['publisher', 'ReleaseManager'],
    last_run_at: null,
    running: 0,
    probes: { deploy_window: () => 'open', risk_scan: () => 'low' },
    now: NOW,
    ...changes,
  }
}
