import { createHash } from 'node:crypto'
import { z } from 'zod'
import { reflexReference } from '../../../src/contract/reflex.ts'
import type { AgentDeps } from '../../../src/agent/define-agent.ts'

/** Begins the line with the facts, as JSON, that a model needs to write reflexes here. */
export const REFLEXES = 'REFLEXES'
/** `chain` is replaced as a whole. Ids that begin with `prefix` belong to this scope. */
const known = z.object({ prefix: z.string(), chain: z.array(reflexReference) })
export type Known = z.infer<typeof known>

/** Additional guidance for a chat that may write reflexes, or an empty text. */
export function reflexNote({ tools, scope, settings }: AgentDeps): string {
  if (!('write_reflex' in tools)) return ''
  const facts: Known = { prefix: `chat-${shortHash(scope)}-`, chain: settings.reflexes }
  return `
A question that you have answered before, and that has one answer whoever asks and whenever, is worth a reflex that replies with exactly that answer. Its action
has "consume": true beside the reply, or you would be asked the same message again. Your chain, and how the ids of your reflexes begin, stand on the next line.
${REFLEXES} ${JSON.stringify(facts)}`
}

export function knownOf(instructions: string): Known | null {
  const line = instructions.split('\n').find((one) => one.startsWith(`${REFLEXES} `))
  return line === undefined ? null : known.parse(JSON.parse(line.slice(REFLEXES.length)))
}

export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8)

/** Normalises spacing and case, so that the same question compares equal. */
export const sameQuestion = (text: string): string => text.trim().replaceAll(/\s+/g, ' ').toLowerCase()

/** A reflex that answers one question and passes on everything else. */
export const answeringReflex = (question: string, answer: string): string => `const QUESTION = ${JSON.stringify(sameQuestion(question))}
const ANSWER = ${JSON.stringify(answer)}

function reflex(context) {
  const { type, content } = context.event
  if (type !== 'ws.message') return null
  const asked = content.trim().replace(/\\s+/g, ' ').toLowerCase()
  return asked === QUESTION ? { action_type: 'reply', content: ANSWER, consume: true } : null
}
`
