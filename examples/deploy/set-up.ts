import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CliError } from '../../cli/lib/cli-error.ts'
import type { Api } from '../../cli/lib/api.ts'
import type { SettingsPatch } from '../../src/contract/settings/settings.ts'
import type { Cloud } from './cloud.ts'

export const SKILLS = ['ensure_acr', 'docker_build_and_push', 'deploy.container.appservice'] as const
export const COMMIT = '4f1c2e9'
export const APP = 'payments-stg-webapp'

export const scopePath = (scope: string, rest = ''): string => `/v1/scopes/${encodeURIComponent(scope)}${rest}`

/** Registers the three skills over the API and activates them. */
export async function registerSkills(api: Api): Promise<void> {
  for (const id of SKILLS) {
    const manifest: { version: string } = JSON.parse(readFileSync(join(import.meta.dirname, 'skills', `${id}.json`), 'utf8'))
    const { state } = await api.json<{ state: string }>('/v1/skills', { method: 'POST', body: manifest })
    if (state !== 'active') await api.json(`/v1/skills/${id}@${manifest.version}/state`, { method: 'POST', body: { state: 'active' } })
  }
}

/**
 * The settings that make a scope deploy: its place, goal, roles and the requests that its skills
 * may send. No code is deployed for it.
 */
export async function setUpScope(api: Api, { scope, cloud, roles }: { scope: string; cloud: Cloud; roles: string[] }): Promise<void> {
  const body: SettingsPatch = {
    agent: 'deploy',
    project: 'acme/payments',
    env: 'staging',
    toolset: 'v6',
    repo: 'github.com/acme/payments',
    goal_labels: ['deploy', 'appservice'],
    allowed_hosts: [cloud.host],
    http_tools: httpTools(cloud.url),
    blackboard: {
      ctx: { subscription: 'acme-staging', registry: 'acmeregistry', commit: COMMIT },
      // Facts about the environment that were collected before the turn.
      env: { az: { account: { subscription: await subscriptionOf(cloud) } } },
      policy: { roles },
    },
  }
  await api.json(scopePath(scope), { method: 'PATCH', body })
}

/** The name of the secret that the requests carry; only the server has its value. */
const TOKEN_SECRET = 'REFLEX_TOOL_CLOUD'

/**
 * The server's variables: the secret, and the one host that may receive it, whatever a scope's
 * settings say.
 */
export const secretVars = ({ token, host }: Cloud): Record<string, string> => ({
  [TOKEN_SECRET]: `Bearer ${token}`,
  [`${TOKEN_SECRET}_HOSTS`]: host,
})

function httpTools(url: string): NonNullable<SettingsPatch['http_tools']> {
  const common = { secret_headers: { authorization: TOKEN_SECRET }, plans_only: true }
  const look = { ...common, method: 'GET', repeatable: true } as const
  return [
    { ...look, name: 'http.registry.show', description: 'Whether a registry is there', url: `${url}/registries/{{registry}}` },
    { ...common, name: 'http.registry.create', description: 'Creates a registry', method: 'PUT', url: `${url}/registries/{{registry}}` },
    { ...common, name: 'http.registry.remove', description: 'Removes a registry', method: 'DELETE', url: `${url}/registries/{{registry}}` },
    {
      ...common,
      name: 'http.image.build',
      description: 'docker build',
      method: 'POST',
      url: `${url}/images/build`,
      body: { registry: '{{registry}}', commit: '{{commit}}' },
    },
    {
      ...common,
      name: 'http.image.push',
      description: 'docker push',
      method: 'POST',
      url: `${url}/images/push`,
      body: { image: '{{image}}' },
    },
    {
      ...common,
      name: 'http.image.remove',
      description: 'Removes an image',
      method: 'POST',
      url: `${url}/images/remove`,
      body: { image: '{{image}}' },
    },
    { ...look, name: 'http.app.show', description: 'What an app runs', url: `${url}/apps/{{app}}` },
    {
      ...common,
      name: 'http.app.set_image',
      description: 'az webapp config container set',
      method: 'PUT',
      url: `${url}/apps/{{app}}`,
      body: { image: '{{image}}' },
    },
    { ...common, name: 'http.app.restart', description: 'az webapp restart', method: 'POST', url: `${url}/apps/{{app}}` },
    { ...look, name: 'http.app.health', description: 'The smoke test', url: `${url}/healthz/{{app}}` },
  ]
}

/** The tools of an agent that deploys by itself: three coarse steps, and what undoes each. */
export function learningTools(url: string): NonNullable<SettingsPatch['http_tools']> {
  const common = { secret_headers: { authorization: TOKEN_SECRET } }
  const undo = { ...common, plans_only: true }
  const release = { registry: '{{registry}}', commit: '{{commit}}' }
  return [
    {
      ...common,
      name: 'http.ensure_acr',
      description: 'Makes sure that a registry is there',
      method: 'PUT',
      url: `${url}/registries/{{registry}}`,
    },
    {
      ...undo,
      name: 'http.release_acr',
      description: 'Removes a registry that holds no image',
      method: 'DELETE',
      url: `${url}/empty-registries/{{registry}}`,
      undoes: { tool: 'http.ensure_acr', match: ['registry'] },
    },
    {
      ...common,
      name: 'http.docker_build_and_push',
      description: 'Builds the image of a commit and pushes it',
      method: 'POST',
      url: `${url}/releases`,
      body: release,
    },
    {
      ...undo,
      name: 'http.withdraw_image',
      description: 'Removes the image of a commit',
      method: 'POST',
      url: `${url}/withdrawals`,
      body: release,
      undoes: { tool: 'http.docker_build_and_push', match: ['registry', 'commit'] },
    },
    {
      ...common,
      name: 'http.deploy',
      description: 'Deploys an image to an app',
      method: 'PUT',
      url: `${url}/apps/{{app}}`,
      body: { image: '{{image}}' },
    },
    {
      ...undo,
      name: 'http.roll_back',
      description: 'Brings back the image that ran before',
      method: 'POST',
      url: `${url}/rollbacks/{{app}}`,
      body: { image: '{{image}}' },
      undoes: { tool: 'http.deploy', match: ['app', 'image'] },
    },
  ]
}

async function subscriptionOf({ url, token }: Cloud): Promise<string> {
  const response = await fetch(`${url}/subscription`, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new CliError(`the cloud was asked for its subscription and answered ${response.status}`)
  const { subscription }: { subscription: string } = JSON.parse(await response.text())
  return subscription
}
