import { factsOf } from '../../../../src/tools/tool-facts.ts'
import type { Trace } from '../../../../src/features/learning/skills/trace.ts'
import { call, times, trace } from './build-trace.ts'

/** The tools of the deployment example, as a model called them before there were skills. */
export const deployTools = factsOf({
  ensure_acr: {},
  remove_acr: { undoes: { tool: 'ensure_acr', match: ['registry'] } },
  docker_build_and_push: {},
  remove_image: { undoes: { tool: 'docker_build_and_push', match: ['registry', 'commit'] } },
  'deploy.container.appservice': {},
  roll_back: { undoes: { tool: 'deploy.container.appservice', match: ['app_name'] } },
})

const registries = ['acme', 'acme2', 'other']

/** A turn that deploys a commit, as the example does. */
export function deployment(n: number): Trace {
  const registry = registries[n % registries.length] ?? ''
  const [commit, app_name] = [`4f1c${1000 + n}`, `app-${n % 4}-stg`]
  const image_tag = `${registry}.example/payments:${commit}`
  const acts = [
    call('ensure_acr', { registry }, { output: { registry, exists: n % 2 === 0 }, duration_ms: 200 }),
    call(
      'docker_build_and_push',
      { registry, commit, platform: 'linux/amd64' },
      { output: { image_tag }, cost_usd: 0.02, duration_ms: 4000 },
    ),
    call(
      'deploy.container.appservice',
      { app_name, image_tag },
      { output: { endpoint: `https://${app_name}.example` }, duration_ms: 2000 },
    ),
  ]
  const subscription = `acme-${n % 2}`
  return trace(n, acts, {
    place: { agent: 'deploy', project: 'acme/payments', env: 'staging' },
    usage: { model_calls: 6, tokens: 9000, cost_usd: 0.1, duration_ms: 12_000 },
    goal: { text: `Please ${n % 2 === 0 ? 'deploy' : 'deploy the release'} to ${app_name}`, labels: ['deploy'] },
    blackboard: { ctx: { registry, commit, subscription, window: 'open' }, env: { subscription }, work: {}, policy: {} },
  })
}

export const otherTurns: readonly Trace[] = times(12, (n) =>
  trace(100 + n, [call('ensure_acr', { registry: 'x' })], {
    goal: { text: `Please show me the bill number ${n}`, labels: ['billing'] },
    blackboard: { ctx: { window: 'closed' }, env: {}, work: {}, policy: {} },
  }),
)

export const compileOptions = {
  tools: deployTools,
  others: otherTurns,
  owner: 'learner',
  roles: ['operator'],
  parser_model: 'small',
  previous: null,
}
