import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { isStepCount, tool, ToolLoopAgent } from 'ai'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createReflex } from '../../../src/standalone/node/index.ts'
import type { ReflexConfig } from '../../../src/standalone/config.ts'
import { scripted } from './fixtures.ts'

/** The manifest of the document on skills, without its comments. */
const manifest = {
  id: 'deploy.container.appservice',
  version: '1.3.0',
  owner: 'team-platform',
  scope: 'project',
  compat: {
    env: ['staging'],
    toolset: 'v6',
    repo: 'github.com/acme/payments',
  },
  signature: {
    inputs: [
      {
        name: 'app_name',
        type: 'string',
        required: true,
      },
      {
        name: 'image_tag',
        type: 'string',
        required: true,
      },
    ],
    outputs: [
      {
        name: 'endpoint',
        type: 'url',
      },
    ],
    blackboard_bindings: {
      inputs: {
        app_name: 'ctx.appservice',
        image_tag: 'work.image_tag',
      },
      outputs: {
        endpoint: 'work.endpoint',
      },
    },
  },
  preconditions: {
    tools_available: ['term.exec', 'tests.run'],
    data_present: ['app_name', 'image_tag'],
    invariants: ['az.account.subscription == ctx.subscription', "deploy_window('staging') == 'open'"],
  },
  plan: {
    idempotence_key: 'deploy:appservice:{{app_name}}:{{image_tag}}',
    budget: {
      max_cost_usd: 0.1,
      max_latency_ms: 5000,
    },
    steps: [
      {
        tool: 'term.exec',
        args: {
          cmd: 'az webapp config container set --name {{app_name}} --image {{image_tag}}',
        },
        timeout_ms: 1500,
      },
      {
        tool: 'term.exec',
        args: {
          cmd: 'az webapp restart --name {{app_name}}',
        },
        timeout_ms: 1000,
      },
      {
        tool: 'term.exec',
        args: {
          cmd: 'curl -sSf https://{{app_name}}.azurewebsites.net/healthz',
        },
        timeout_ms: 1000,
      },
    ],
    compensation: [
      {
        when: 'partial_failure',
        tool: 'term.exec',
        args: {
          cmd: 'az webapp config container set --name {{app_name}} --image {{work.prev_image_tag}}',
        },
      },
    ],
    result_map: {
      endpoint: 'https://{{app_name}}.azurewebsites.net',
    },
  },
  effects: {
    writes: ['work.endpoint'],
    external: ['updated:appservice_image'],
  },
  activation: {
    required_slots: ['app_name', 'image_tag'],
    goal_labels: ['deploy', 'appservice'],
    keywords_any: ['deploy', 'release', 'push image'],
    score_weights: {
      goal_label: 3.0,
      keyword_hit: 1.0,
      recent_success: 1.5,
    },
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
  policy: {
    allow_roles: ['ReleaseManager'],
    deny_if: ["risk_scan(args) == 'high'"],
  },
  tests: {
    unit_cases: ['tests/deploy_basic.json'],
    fuzz: {
      count: 50,
      mutations: ['alt_image_tag', 'missing_slot'],
    },
    expected: {
      pass_rate_unit: 0.95,
      pass_rate_fuzz: 0.85,
    },
  },
  provenance: {
    mined_from_traces: ['trace_2025-08-10T12:30Z_...'],
    support: 0.041,
    success: 0.98,
    delta_cost: -0.42,
    delta_p95: -0.3,
  },
}

const PROPOSAL = `<SKILL_PROPOSE> {"skill_id":"deploy.container.appservice", "why":"goal=deploy; app=payments-stg-webapp; image ready", "inputs":{"app_name":"payments-stg-webapp","image_tag":"acr.io/pay:abc"}} </SKILL_PROPOSE>`

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-document-'))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** The golden path's Reflex and tools, as the document writes them. */
function golden(more: Partial<ReflexConfig> = {}) {
  const ran: string[] = []
  const term_exec = tool({
    inputSchema: z.object({ cmd: z.string() }),
    execute: async ({ cmd }) => void ran.push(cmd),
  })
  const tests_run = tool({ inputSchema: z.object({}), execute: async () => ({ passed: true }) })
  const reflex = createReflex({
    project: 'acme/payments',
    compat: { env: ['staging'], toolset: 'v6', repo: 'github.com/acme/payments' },
    storage: `local://${folder}/.reflex`,
    roles: ['ReleaseManager'],
    goal_labels: ['deploy', 'appservice'],
    skills: [manifest],
    probes: { deploy_window: () => 'open', risk_scan: () => 'low' },
    blackboard: { settings: { ctx: { subscription: 'pay' } }, probes: { az: { account: { subscription: 'pay' } } } },
    ...more,
  })
  return { reflex, ran, tools: { 'term.exec': term_exec, 'tests.run': tests_run } }
}

test('the golden path of the document on skills runs with its manifest, as it is written there', async () => {
  const { reflex, ran, tools } = golden()
  const my_agent = new ToolLoopAgent({ model: scripted(PROPOSAL, 'Deployed.') })
  const wrapped = reflex.wrap({ agent: my_agent, tools })
  const result = await wrapped.generate({ prompt: 'Deploy latest to staging' })

  expect(reflex.log.entries().find(({ kind }) => kind === 'skill-decided')).toMatchObject({ decision: { reason: 'all stages passed' } })
  expect(result.text).toBe('Deployed.')
  expect(ran).toEqual([
    'az webapp config container set --name payments-stg-webapp --image acr.io/pay:abc',
    'az webapp restart --name payments-stg-webapp',
    'curl -sSf https://payments-stg-webapp.azurewebsites.net/healthz',
  ])
  const turn = reflex.log.entries().find(({ kind }) => kind === 'turn-started')
  expect(await reflex.replay(turn?.trace_id ?? '', { mode: 'pinned' })).toMatchObject({ mode: 'pinned', equivalent: true })
  reflex.close()
})

/** The text by which the model hears of its last proposal. */
function toldOf(model: ReturnType<typeof scripted>): string {
  const content = model.doGenerateCalls.at(-1)?.prompt.at(-1)?.content ?? ''
  return typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
const proposing = (inputs: object) =>
  `<SKILL_PROPOSE> ${JSON.stringify({ skill_id: manifest.id, why: 'goal=deploy', inputs })} </SKILL_PROPOSE>`

test('a proposal without a slot is answered by a question for it, and nothing runs', async () => {
  const { reflex, ran, tools } = golden()
  const model = scripted(proposing({ app_name: 'payments-stg-webapp' }), 'Which image?')
  await reflex.wrap({ agent: new ToolLoopAgent({ model }), tools }).generate({ prompt: 'Deploy latest to staging' })
  expect(toldOf(model)).toBe(
    `<SKILL_RESULT>{"skill_id":"${manifest.id}","status":"clarify"}</SKILL_RESULT>\n` +
      '<CLARIFY>{"questions":[{"slot":"image_tag","question":"What is image_tag (string)?"}]}</CLARIFY>',
  )
  expect(ran).toEqual([])
  reflex.close()
})

test('the model gets the result of a skill as the document writes it', async () => {
  const { reflex, tools } = golden()
  const model = scripted(PROPOSAL, 'Deployed.')
  await reflex.wrap({ agent: new ToolLoopAgent({ model }), tools }).generate({ prompt: 'Deploy latest to staging' })
  const outputs = { endpoint: 'https://payments-stg-webapp.azurewebsites.net' }
  expect(toldOf(model)).toBe(`<SKILL_RESULT>${JSON.stringify({ skill_id: manifest.id, status: 'ok', outputs })}</SKILL_RESULT>`)
  reflex.close()
})

test.each<[string, Partial<ReflexConfig>]>([
  ['compat', { compat: { env: ['prod'], toolset: 'v6', repo: 'github.com/acme/payments' } }],
  ['preconditions', { probes: { deploy_window: () => 'closed', risk_scan: () => 'low' } }],
  ['score', { goal_labels: [] }],
  ['policy', { roles: ['Guest'] }],
])('the gate refuses in the order of the document: by %s', async (stage, config) => {
  const { reflex, ran, tools } = golden(config)
  const model = scripted(PROPOSAL, 'I cannot.')
  await reflex.wrap({ agent: new ToolLoopAgent({ model }), tools }).generate({ prompt: 'Deploy latest to staging' })
  const decided = reflex.log.entries().find(({ kind }) => kind === 'skill-decided')
  expect(decided).toMatchObject({
    decision: { stage, stages: expect.arrayContaining([{ stage, status: 'failed', checks: expect.anything() }]) },
  })
  expect(ran).toEqual([])
  reflex.close()
})

test('a session by hand takes a blackboard, whose differences are in the log', () => {
  const { reflex } = golden()
  reflex.session({ blackboard: { ctx: { subscription: 'other' } } })
  const seeded = reflex.log.entries().find(({ kind }) => kind === 'blackboard-seeded')
  expect(seeded).toMatchObject({
    blackboard: { ctx: { subscription: 'other' } },
    sources: { 'ctx.subscription': 'override', 'env.az': 'probes' },
    overridden: [{ path: 'ctx.subscription', before: 'pay', after: 'other' }],
  })
  reflex.close()
})

test('the snapshot of the latest 10,000 turns mines what they repeat, and compiles a manifest that its tests accept', async () => {
  const { reflex } = golden({ skills: [] })
  const deployed = tool({ inputSchema: z.object({ tag: z.string() }), execute: async ({ tag }) => ({ image: `acr.io/pay:${tag}` }) })
  const restarted = tool({ inputSchema: z.object({ image: z.string() }), execute: async () => ({ done: true }) })
  for (let turn = 0; turn < 8; turn += 1) {
    const push = { name: 'docker.push', input: { tag: `v${turn}` } }
    const deploy = { name: 'app.deploy', input: { image: `acr.io/pay:v${turn}` } }
    const agent = new ToolLoopAgent({
      model: scripted({ calls: [push] }, { calls: [deploy] }, 'Deployed.'),
      tools: { 'docker.push': deployed, 'app.deploy': restarted },
      stopWhen: isStepCount(5),
    })
    await reflex.wrap({ agent }).generate({ prompt: `Deploy v${turn} to staging` })
  }
  const undoing = {
    'docker.remove': { undoes: { tool: 'docker.push', match: ['tag'] } },
    'app.restore': { undoes: { tool: 'app.deploy', match: ['image'] } },
  }
  const { candidates } = await reflex.learnSnapshot({ window: 10_000, tools: undoing })
  expect(candidates).toMatchObject([{ kind: 'skill', report: { passed: true }, evidence: { turns: 8, success: 1 } }])
  const { plan, signature } = candidates[0]?.manifest ?? {}
  expect(plan?.steps.map((step) => step.tool)).toEqual(['docker.push', 'app.deploy'])
  expect(signature?.inputs.map(({ name }) => name)).toEqual(['tag'])
  reflex.close()
})

test('the model is shown five skills at most, once a turn, where nobody sets how many', async () => {
  const cards = Array.from({ length: 7 }, (_, index) => ({ ...manifest, id: `deploy.number${index}` }))
  const { reflex, tools } = golden({ skills: cards })
  const model = scripted('Hello.')
  await reflex.wrap({ agent: new ToolLoopAgent({ model }), tools }).generate({ prompt: 'Deploy latest to staging' })
  const bulletin = reflex.log.entries().find(({ kind }) => kind === 'bulletin-built')
  expect(bulletin).toMatchObject({ cards: { length: 5 } })
  const shown = JSON.stringify(model.doGenerateCalls[0]?.prompt)
  expect(shown.match(/deploy\.number\d/g)).toHaveLength(5)
  expect(shown.split('include <SKILL_PROPOSE>')).toHaveLength(2)
  reflex.close()
})
