import { OFFLINE_PREFIX, type OfflineAnswer, type OfflineRequest } from '../../../src/models/offline-model.ts'
import { answeringReflex, knownOf, sameQuestion, shortHash, type Known } from './reflexes.ts'

/** A longer question is unlikely to repeat word by word. */
const LONGEST_QUESTION = 300
const LONGEST_SHOWN = 600

/** Without a model: echoes the question, and turns a repeated one into a reflex. */
export function chatOffline(request: OfflineRequest): OfflineAnswer {
  const answer = answerTo(request.text)
  const known = knownOf(request.system)
  const tool = known && isAskedAgain(request) ? nextTool(request, known, answer) : null
  return tool ? { tool } : { text: answer }
}

/** Deterministic: only a stable answer can become a reflex. */
function answerTo(text: string): string {
  const plain = text.trim().replaceAll(/\s+/g, ' ')
  const shown = plain.length > LONGEST_SHOWN ? `${plain.slice(0, LONGEST_SHOWN)}…` : plain
  return (
    `You wrote ${JSON.stringify(shown)}. I cannot think about it, but I can show how a talk goes: your message was stored, answered, and written to the log of ` +
    'this scope; ask the same again and again, and in the end a reflex answers it. Set REFLEX_MODEL to be answered by a language model.'
  )
}

function isAskedAgain({ messages, text }: OfflineRequest): boolean {
  const questions = messages.flatMap((message) =>
    message.role === 'user' ? [message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n')] : [],
  )
  const same = questions.filter((question) => sameQuestion(question) === sameQuestion(text))
  return text.length <= LONGEST_QUESTION && same.length > 1
}

/**
 * The next step: dry-run the reflex, write it, add it to the chain. Null if it exists or a step
 * failed.
 */
function nextTool(
  { text, last_tool_result: last }: OfflineRequest,
  { prefix, chain }: Known,
  answer: string,
): OfflineAnswer['tool'] | null {
  const id = `${prefix}${shortHash(sameQuestion(text))}`
  const code = answeringReflex(text, `${OFFLINE_PREFIX} ${answer}`)
  if (chain.some((reference) => reference.id === id)) return null
  if (!last) return { name: 'test_reflex', input: { code, events: 20 } }
  if (last.tool === 'test_reflex' && says(last.output, 'ok')) {
    return { name: 'write_reflex', input: { id, code, description: `Answers ${JSON.stringify(text)}.` } }
  }
  if (last.tool === 'write_reflex' && says(last.output, 'written')) {
    return { name: 'update_agent_config', input: { reflexes: [...chain, { id }] } }
  }
  return null
}

const says = (output: unknown, field: string): boolean =>
  typeof output === 'object' && output !== null && (output as Record<string, unknown>)[field] === true
