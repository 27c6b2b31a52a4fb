import { manifestSchema, type Manifest } from '../../../src/skills/manifest/manifest.ts'
import { withPath } from '../../../src/skills/cel/expression.ts'

/** The document's own example, as an author writes it. */
export const deployJson = {
  id: 'deploy.container.appservice',
  version: '1.3.0',
  owner: 'team-platform',
  scope: 'project',
  description: 'Deploys an image to an App Service and waits until it is healthy',
  compat: { env: ['staging'], toolset: 'v6', repo: 'github.com/acme/payments' },
  signature: {
    inputs: [
      { name: 'app_name', type: 'string', required: true },
      { name: 'image_tag', type: 'string', required: true },
    ],
    outputs: [{ name: 'endpoint', type: 'url' }],
    blackboard_bindings: {
      inputs: { app_name: 'ctx.appservice', image_tag: 'work.image_tag' },
      outputs: { endpoint: 'work.endpoint' },
    },
  },
  preconditions: {
    tools_available: ['term.exec', 'tests.run'],
    data_present: ['app_name', 'image_tag'],
    invariants: ['az.account.subscription == ctx.subscription', "deploy_window('staging') == 'open'"],
  },
  plan: {
    idempotence_key: 'deploy:appservice:{{app_name}}:{{image_tag}}',
    budget: { max_cost_usd: 0.1, max_latency_ms: 5000 },
    steps: [
      {
        tool: 'term.exec',
        args: { cmd: 'az webapp config container set --name {{app_name}} --image {{image_tag}}' },
        timeout_ms: 1500,
      },
      { tool: 'term.exec', args: { cmd: 'az webapp restart --name {{app_name}}' }, timeout_ms: 1000 },
      { tool: 'term.exec', args: { cmd: 'curl -sSf https://{{app_name}}.azurewebsites.net/healthz' }, timeout_ms: 1000 },
    ],
    compensation: [
      {
        when: 'partial_failure',
        tool: 'term.exec',
        args: { cmd: 'az webapp config container set --name {{app_name}} --image {{work.prev_image_tag}}' },
      },
    ],
    result_map: { endpoint: 'https://{{app_name}}.azurewebsites.net' },
  },
  effects: { writes: ['work.endpoint'], external: ['updated:appservice_image'] },
  activation: {
    required_slots: ['app_name', 'image_tag'],
    goal_labels: ['deploy', 'appservice'],
    keywords_any: ['deploy', 'release', 'push image'],
    score_weights: { goal_label: 3.0, keyword_hit: 1.0, recent_success: 1.5 },
    tau: 3.5,
    cooldown_s: 30,
    max_concurrency: 3,
  },
  llm_support: {
    parsers: [
      {
        name: 'extract_app_name',
        model: 'gpt-4o-2025-04',
        temperature: 0.0,
        prompt_ref: 'prompts/app_name_extract.v1',
        inputs: ['raw_text'],
        outputs: ['app_name'],
      },
    ],
  },
  policy: { allow_roles: ['ReleaseManager'], deny_if: ["risk_scan(args) == 'high'"] },
  tests: {
    unit_cases: ['tests/deploy_basic.json'],
    fuzz: { count: 50, mutations: ['alt_image_tag', 'missing_slot'] },
    expected: { pass_rate_unit: 0.95, pass_rate_fuzz: 0.85 },
  },
  provenance: { mined_from_traces: ['trace_2025-08-10T12:30Z_'], support: 0.041, success: 0.98, delta_cost: -0.42, delta_p95: -0.3 },
}

/** A valid manifest, with what is named by its path changed. */
export function deployManifest(changes: Record<string, unknown> = {}): Manifest {
  return manifestSchema.parse(deployWith(changes))
}

export function deployWith(changes: Record<string, unknown> = {}): unknown {
  return Object.entries(changes).reduce<unknown>(
    (json, [path, value]) => changed(json, path.split('.'), value),
    structuredClone(deployJson),
  )
}

function changed(json: unknown, path: readonly string[], value: unknown): unknown {
  const [name = '', ...rest] = path
  if (path.length === 0) return value
  if (Array.isArray(json)) return json.toSpliced(Number(name), 1, changed(json[Number(name)], rest, value))
  const inner = (json as Record<string, unknown> | undefined)?.[name]
  return withPath(json, [name], changed(inner, rest, value))
}
