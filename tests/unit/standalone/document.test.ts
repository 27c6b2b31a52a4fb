import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { tool, ToolLoopAgent } from 'ai'
import { afterEach, expect, test } from 'vitest'
import { z } from 'zod'
import { createReflex } from '../../../src/standalone/node/index.ts'
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

test('the golden path of the document on skills runs with its manifest, as it is written there', async () => {
  const ran: string[] = []
  const term_exec = tool({
    inputSchema: z.object({ cmd: z.string() }),
    execute: async ({ cmd }) => void ran.push(cmd),
  })
  const tests_run = tool({ inputSchema: z.object({}), execute: async () => ({ passed: true }) })
  const my_agent = new ToolLoopAgent({ model: scripted(PROPOSAL, 'Deployed.') })

  const reflex = createReflex({
    project: 'acme/payments',
    compat: { env: ['staging'], toolset: 'v6', repo: 'github.com/acme/payments' },
    storage: `local://${folder}/.reflex`,
    k_cards: 5,
    roles: ['ReleaseManager'],
    goal_labels: ['deploy', 'appservice'],
    skills: [manifest],
    probes: { deploy_window: () => 'open', risk_scan: () => 'low' },
    blackboard: { settings: { ctx: { subscription: 'pay' } }, probes: { az: { account: { subscription: 'pay' } } } },
  })
  const wrapped = reflex.wrap({ agent: my_agent, tools: { 'term.exec': term_exec, 'tests.run': tests_run } })
  const result = await wrapped.generate({ prompt: 'Deploy latest to staging' })

  expect(reflex.log.entries().find(({ kind }) => kind === 'skill-decided')).toMatchObject({ decision: { reason: 'all stages passed' } })
  expect(result.text).toBe('Deployed.')
  expect(ran).toEqual([
    'az webapp config container set --name payments-stg-webapp --image acr.io/pay:abc',
    'az webapp restart --name payments-stg-webapp',
    'curl -sSf https://payments-stg-webapp.azurewebsites.net/healthz',
  ])
  const turn = reflex.log.entries().find(({ kind }) => kind === 'turn-started')
  expect(await reflex.replay(turn?.trace_id ?? '')).toMatchObject({ equivalent: true })
  reflex.close()
})
