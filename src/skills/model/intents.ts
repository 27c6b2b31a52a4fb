import type { LanguageModelV4ToolCall } from '@ai-sdk/provider'
import { parseJson } from '../../base/check-json.ts'
import { clarifyInput, detailOf, parseAsp, proposeSkillInput, type AspBlock } from '../asp/parse.ts'
import type { SkillProposal } from '../session/ports.ts'
import type { Question } from '../plan/slots.ts'

/** A request in a model's answer. `call_id` is set for native tool calls. */
export type Intent = { call_id: string | null } & (
  | { kind: 'propose'; proposal: SkillProposal }
  | { kind: 'clarify'; questions: Question[] }
  /** It cannot be executed; the model receives the reason. */
  | { kind: 'problem'; skill_id: string; status: 'malformed' | 'refused'; reason: string }
)

/** `visible` is the part of the text for the caller, up to the first block that is settled. */
export type ReadText = { intents: Intent[]; visible: string; cut_at: number }

/** The assistant's own new text, and nothing else, is ever read so. */
export function readText(text: string): ReadText {
  const blocks = parseAsp(text).filter(({ kind }) => kind !== 'quoted')
  const [first] = blocks
  if (!first) return { intents: [], visible: text, cut_at: text.length }
  const asks = blocks.every(({ kind }) => kind === 'clarify')
  const visible = asks ? withQuestions(text, blocks) : text.slice(0, first.at)
  return { intents: blocks.flatMap(intentOf), visible, cut_at: first.at }
}

function intentOf(block: AspBlock): Intent[] {
  const call_id = null
  switch (block.kind) {
    case 'propose':
      return [{ call_id, kind: 'propose', proposal: { skill_id: block.skill_id, inputs: block.inputs, why: block.why } }]
    case 'clarify':
      return [{ call_id, kind: 'clarify', questions: block.questions }]
    case 'result': {
      const reason = 'results come from Reflex alone: propose the skill and wait'
      return [{ call_id, kind: 'problem', skill_id: block.skill_id, status: 'refused', reason }]
    }
    case 'malformed':
      return [{ call_id, kind: 'problem', skill_id: '', status: 'malformed', reason: `${block.tag}: ${block.detail}` }]
    case 'quoted':
      break
  }
  return []
}

const CLOSING = '</CLARIFY>'

function withQuestions(text: string, blocks: readonly AspBlock[]): string {
  let visible = ''
  let from = 0
  for (const block of blocks) {
    if (block.kind !== 'clarify') continue
    visible += text.slice(from, block.at) + questionsText(block.questions)
    from = text.indexOf(CLOSING, block.at) + CLOSING.length
  }
  return visible + text.slice(from)
}

/** The questions of an answer that only asks; null if it does anything else. */
export function questionsOf(intents: readonly Intent[]): Question[] | null {
  if (intents.length === 0 || !intents.every(({ kind }) => kind === 'clarify')) return null
  return intents.flatMap((intent) => (intent.kind === 'clarify' ? intent.questions : []))
}

export const questionsText = (questions: readonly Question[]): string => questions.map(({ question }) => question).join('\n')

export const PROPOSE_TOOL = 'propose_skill'
export const CLARIFY_TOOL = 'clarify'

export const isOwnCall = ({ toolName }: { toolName: string }): boolean => toolName === PROPOSE_TOOL || toolName === CLARIFY_TOOL

export function readCall({ toolCallId: call_id, toolName, input }: LanguageModelV4ToolCall): Intent {
  const malformed = (reason: string): Intent => ({ call_id, kind: 'problem', skill_id: '', status: 'malformed', reason })
  const json = parseJson(input)
  if (!json.ok) return malformed(json.message)
  if (toolName === CLARIFY_TOOL) {
    const parsed = clarifyInput.safeParse(json.value)
    return parsed.success ? { call_id, kind: 'clarify', ...parsed.data } : malformed(detailOf(parsed.error))
  }
  const parsed = proposeSkillInput.safeParse(json.value)
  return parsed.success ? { call_id, kind: 'propose', proposal: parsed.data } : malformed(detailOf(parsed.error))
}
