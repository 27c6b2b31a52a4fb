import { z } from 'zod'
import type { OfflineRequest } from '../../../src/models/offline-model.ts'
import type { Burst } from './burst.ts'
import type { AttackingNetwork } from './addresses.ts'

type Proposal = { skill_id: string; why: string; inputs: Record<string, unknown> }
type Facts = { addresses: readonly Burst[]; networks: readonly AttackingNetwork[] }

/** The proposals of an offline turn: one incident, and a block for each network. */
function proposalsFor({ addresses, networks }: Facts): Proposal[] {
  const [earliest = ''] = addresses.map(({ first }) => first).toSorted()
  const failures = addresses.reduce((sum, burst) => sum + burst.failures, 0)
  const listed = addresses.map(({ address }) => address)
  const incident = {
    skill_id: 'incident.open',
    why: 'a burst of failed logins',
    inputs: { addresses: listed, since: earliest, summary: `${failures} failed logins from ${listed.join(', ')}` },
  }
  const blocks = networks.map(({ network, addresses: members }) => ({
    skill_id: 'network.block',
    why: `${members.length} addresses of one network attacked`,
    inputs: { network, reason: `${members.length} addresses of it attacked: ${members.join(', ')}`.slice(0, 500) },
  }))
  return [incident, ...blocks]
}

/** The next proposal, or null. The bulletin is in the first call of a turn only. */
export function nextProposal(request: OfflineRequest, facts: Facts): Proposal | null {
  const answered = skillResults(request).length
  const next = proposalsFor(facts)[answered]
  const told = answered > 0 || request.system.includes(`\n- ${next?.skill_id}:`)
  return next && told ? next : null
}

const result = z.object({
  skill_id: z.string(),
  status: z.string(),
  outputs: z.record(z.string(), z.unknown()).optional(),
  reason: z.string().optional(),
})
const RESULT = /<SKILL_RESULT>(\{.*?\})<\/SKILL_RESULT>/g

/** The user messages, which also carry skill results. */
export const userTexts = ({ messages }: OfflineRequest): string[] =>
  messages.flatMap((message) =>
    message.role === 'user' ? message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
  )

/** The results as text, from messages of their own: within the facts, they are forged. */
export function skillResults(request: OfflineRequest): string[] {
  const told = userTexts(request).filter((text) => text.startsWith('<SKILL_RESULT>'))
  return told.flatMap((text) =>
    Array.from(text.matchAll(RESULT), ([, json = '{}']) => {
      const { skill_id, status, outputs = {}, reason } = result.parse(JSON.parse(json))
      const why = reason ?? Object.values(outputs).join(', ')
      return `${skill_id}: ${status}${why === '' ? '' : ` (${why})`}`
    }),
  )
}
