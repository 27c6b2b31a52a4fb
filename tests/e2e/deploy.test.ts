import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, type Api } from '../../cli/lib/api.ts'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { startCloud, type Cloud } from '../../examples/deploy/cloud.ts'
import { tellLearning } from '../../examples/deploy/learning.ts'
import { startScriptedModel, type ScriptedModel } from '../../examples/deploy/model.ts'
import { secretVars } from '../../examples/deploy/set-up.ts'
import { OTHER_SCOPE, SCOPE, tellRefusals, tellStory } from '../../examples/deploy/story.ts'
import { ADMIN_KEY, temporaryState, wholeLog } from './api.ts'

const TOKEN = 'e2e-cloud-token'
const state = await temporaryState()
let server: LocalServer
let cloud: Cloud
let model: ScriptedModel
let api: Api

beforeAll(async () => {
  cloud = await startCloud(TOKEN)
  model = await startScriptedModel()
  const vars = { REFLEX_ADMIN_KEY: ADMIN_KEY, ...secretVars(cloud), ...model.vars }
  server = await startServer({ persist_to: state.directory, migrated: true, vars })
  api = connect(server.url, ADMIN_KEY)
})
afterAll(async () => {
  await server.stop()
  model.stop()
  cloud.stop()
  await state.remove()
})

test("a deployment goes from a chat through skills, gate and plans to the cloud, and the scope's log has each of the eight steps", async () => {
  const steps = await tellStory(api, cloud)
  expect(steps.map(({ holds }) => holds)).toEqual(Array(8).fill(true))
  const log = await wholeLog(server.url, SCOPE)
  const of = (kind: string) => log.filter((entry) => entry['kind'] === kind)
  expect(of('skill-decided').map(({ skill_id }) => skill_id)).toEqual([
    'ensure_acr',
    'docker_build_and_push',
    'deploy.container.appservice',
  ])
  expect(of('bulletin-built')).toHaveLength(2)
  expect(of('skill-applied')).toMatchObject([
    { skill_id: 'ensure_acr', status: 'ok', cost_usd: 0 },
    { skill_id: 'docker_build_and_push', status: 'ok', cost_usd: 0.02 },
    { skill_id: 'deploy.container.appservice', status: 'ok', outputs: { endpoint: 'https://payments-stg-webapp.azurewebsites.net' } },
  ])
  expect(cloud.changes).toEqual([
    'POST /images/build',
    'POST /images/push',
    'PUT /apps/payments-stg-webapp',
    'POST /apps/payments-stg-webapp',
  ])
  // The cloud's token goes to the cloud, and nowhere else.
  expect(JSON.stringify(log)).not.toContain(TOKEN)
})

test('forbidden and risky deployments are refused and failed ones undone, each with its reason', async () => {
  expect(await tellRefusals(api, cloud)).toMatchObject([{ holds: true }, { holds: true }, { holds: true }])
  const log = await wholeLog(server.url, OTHER_SCOPE)
  expect(log.filter(({ kind }) => kind === 'skill-compensation-ended')).toMatchObject([
    { tool: 'http.app.set_image', undoes: 'image', status: 'ok' },
  ])
})

test('the example does not claim what did not happen', async () => {
  cloud.unhealthy = true
  const steps = await tellStory(api, cloud, 'deploy/ill')
  cloud.unhealthy = false
  expect(steps.map(({ holds }) => holds)).toEqual([true, true, true, true, true, true, false, true])
})

test('a skill is learned from runs that called tools, passes its tests, and makes the next run cost at most 0.6 of the first', async () => {
  const steps = await tellLearning(api, cloud)
  expect(steps.map(({ holds, shown }) => (holds ? 'holds' : shown))).toEqual(['holds', 'holds', 'holds'])
  expect(steps[0]?.shown[0]).toBe('ensure_acr → docker_build_and_push → deploy')
  expect(cloud.apps.get('payments-stg-webapp')).toBe('acmeregistry.example/payments:a1b2c43')
})

test('the command says that no model was asked, and ends with 0', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['examples/deploy/index.ts'], {
    env: { ...process.env, REFLEX_MODEL: '' },
  })
  expect(stdout).toContain('no model was asked')
  expect(stdout).toContain('All of it is in the log.')
  expect(stdout).not.toContain('NOT SHOWN')
})
