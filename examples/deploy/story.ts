import { connect, type Api } from '../../cli/lib/api.ts'
import type { ProposalResult } from '../../src/skills/session/result.ts'
import type { Cloud } from './cloud.ts'
import { eightSteps, type Step } from './eight-steps.ts'
import { readLog } from './read-log.ts'
import { APP, COMMIT, registerSkills, scopePath, setUpScope } from './set-up.ts'

export const SCOPE = 'deploy/payments'
/** A separate scope, so that its cooldowns and keys are its own. */
export const OTHER_SCOPE = 'deploy/payments-again'

/**
 * Sets everything up, talks to the agent as a user would, and checks each of the eight steps in the
 * log.
 */
export async function tellStory(api: Api, cloud: Cloud, scope = SCOPE): Promise<Step[]> {
  await registerSkills(api)
  await setUpScope(api, { scope, cloud, roles: ['ReleaseManager'] })
  await say(api, scope, 'Deploy the latest to staging')
  await say(api, scope, APP)
  return eightSteps(await readLog(api, scope))
}

async function say(api: Api, scope: string, content: string): Promise<void> {
  const body = { type: 'ws.message', connection_id: 'alice', content }
  await api.json(scopePath(scope, '/events?wait=outcome&timeout_ms=30000'), { method: 'POST', body })
}

/**
 * Failures that the gate and the runner handle: a missing role, an unpinned image, a failing smoke
 * test.
 */
export async function tellRefusals(api: Api, cloud: Cloud): Promise<Step[]> {
  await setUpScope(api, { scope: OTHER_SCOPE, cloud, roles: ['ReleaseManager'] })
  const anyone = connect(api.url, await keyWith(api, []))
  const manager = connect(api.url, await keyWith(api, ['ReleaseManager']))
  const image_tag = `acmeregistry.example/payments:${COMMIT}`
  const without_role = await propose(anyone, image_tag)
  const not_pinned = await propose(manager, 'acmeregistry.example/payments:latest')
  const before = '1a2b3c4'
  cloud.apps.set(APP, `acmeregistry.example/payments:${before}`)
  cloud.unhealthy = true
  const unhealthy = await propose(manager, image_tag)
  cloud.unhealthy = false
  return [
    refusal('Whoever is no ReleaseManager is refused, and told what would have to change.', without_role, 'ReleaseManager'),
    refusal('An image that is not pinned is refused: risk_scan says that the risk is high.', not_pinned, 'risk_scan'),
    {
      title: 'A smoke test that fails has what was done undone: the app runs the image that it ran before.',
      shown: [
        `${unhealthy.status}: ${unhealthy.reason}`,
        ...unhealthy.compensation.map(({ tool, status }) => `undone by ${tool}: ${status}`),
        `the app runs ${cloud.apps.get(APP)}`,
      ],
      holds:
        unhealthy.status === 'partial_failure' &&
        unhealthy.compensation.length === 1 &&
        unhealthy.compensation.every(({ status }) => status === 'ok') &&
        cloud.apps.get(APP)?.endsWith(before) === true,
    },
  ]
}

async function keyWith(api: Api, roles: string[]): Promise<string> {
  const body = { name: ['example', ...roles].join('-'), roles: ['publisher', ...roles], scopes: ['deploy/*'] }
  return (await api.json<{ key: string }>('/v1/keys', { method: 'POST', body })).key
}

const propose = (api: Api, image_tag: string): Promise<ProposalResult> =>
  api.json(scopePath(OTHER_SCOPE, '/skills/propose'), {
    method: 'POST',
    body: { skill_id: 'deploy.container.appservice', inputs: { app_name: APP, image_tag }, why: 'deploy the image' },
  })

function refusal(title: string, { status, decision }: ProposalResult, because: string): Step {
  const { to_pass } = decision
  return {
    title,
    shown: to_pass.map((need) => `to pass: ${need}`),
    holds: status === 'refused' && to_pass.some((need) => need.includes(because)),
  }
}
