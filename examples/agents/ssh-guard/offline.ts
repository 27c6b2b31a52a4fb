import { z } from 'zod'
import type { OfflineAnswer, OfflineRequest } from '../../../src/models/offline-model.ts'
import { burst, type Burst } from './burst.ts'
import { nextProposal, skillResults, userTexts } from './proposals.ts'
import { attackedFrom } from './addresses.ts'

export const FACTS = 'FACTS'
const MOST_REASON = 500
const facts = z.object({ addresses: z.array(burst), networks: z.array(attackedFrom) })
const answer = z.object({ blocked: z.boolean(), reason: z.string().optional() })

/** Without a model: proposes the listed skills, blocks each listed address, and never unblocks. */
export function guardOffline(request: OfflineRequest): OfflineAnswer | null {
  const known = factsOf(request)
  if (known === null) return null
  const proposal = nextProposal(request, known)
  if (proposal) return { text: `I propose ${proposal.skill_id}. <SKILL_PROPOSE>${JSON.stringify(proposal)}</SKILL_PROPOSE>` }
  const bursts = known.addresses
  const answers = toolAnswers(request)
  const attacking = bursts.filter(({ blocked }) => !blocked)
  const next = request.tools.includes('block') ? attacking[answers.length] : undefined
  if (next) return { tool: { name: 'block', input: { address: next.address, reason: reasonOf(next).slice(0, MOST_REASON) } } }
  const outcomes = new Map(
    attacking.map(({ address }, index) => [address, answers[index] ?? 'not blocked, for the tool block is not allowed here']),
  )
  const said = bursts.map((burst) => `${burst.address}: ${reasonOf(burst)}, ${outcomes.get(burst.address) ?? 'blocked before'}`)
  const logins = bursts.filter((burst) => burst.logins > 0).map(({ address }) => address)
  const advice = logins.length > 0 ? ` Look first at ${logins.join(', ')}: a login worked from there.` : ' Allow keys only, no passwords.'
  return { text: `${[...said, ...skillResults(request)].join('; ')}.${advice}` }
}

const reasonOf = ({ failures, users, first, last }: Burst): string =>
  `${failures} failed logins from ${first} to ${last}${users.length > 0 ? ` as ${users.map((user) => JSON.stringify(user)).join(', ')}` : ''}`

function factsOf(request: OfflineRequest): z.infer<typeof facts> | null {
  const line = userTexts(request)
    .flatMap((text) => text.split('\n'))
    .find((one) => one.startsWith(`${FACTS} `))
  return line === undefined ? null : facts.parse(JSON.parse(line.slice(FACTS.length)))
}

function toolAnswers({ messages }: OfflineRequest): string[] {
  const results = messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
  return results.flatMap((part) => {
    if (part.type !== 'tool-result') return []
    const { output } = part
    if (output.type !== 'json') return ['not blocked, for the tool failed']
    const { blocked, reason } = answer.parse(output.value)
    return [blocked ? 'blocked' : `not blocked: ${reason}`]
  })
}
