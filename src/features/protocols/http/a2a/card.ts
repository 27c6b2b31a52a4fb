import type { AgentCard, AgentSkill } from '@a2a-js/sdk'

export const PROTOCOL_VERSION = '1.0'

/** The public card: it names no skill, since anybody may read it. */
export function agentCard(origin: string, scope: string, skills: AgentSkill[] = [EVENTS]): AgentCard {
  const url = `${origin}/v1/scopes/${encodeURIComponent(scope)}/a2a`
  return {
    name: `Reflex: ${scope}`,
    description: 'An agent that perceives events, and acts by reflexes, skills and a language model. A message is an event of its scope.',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: PROTOCOL_VERSION }],
    provider: undefined,
    documentationUrl: `${origin}/v1/docs`,
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true, extensions: [] },
    securitySchemes: { key: { scheme: { $case: 'httpAuthSecurityScheme', value: BEARER } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills,
    signatures: [],
  }
}

const BEARER = {
  scheme: 'Bearer',
  bearerFormat: 'rfx_…',
  description: 'A key of this deployment with the roles publisher and viewer, that covers the scope.',
}

/** An entry of the list of skills. */
export const agentSkill = (id: string, description: string, tags: string[]): AgentSkill => ({
  id,
  name: id,
  description,
  tags,
  examples: [],
  inputModes: [],
  outputModes: [],
  securityRequirements: [],
})

const EVENTS = agentSkill(
  'events',
  'Takes a text as a message, or an event as a data part with its `type`. The card for authenticated clients lists the skills of the scope.',
  ['events'],
)
