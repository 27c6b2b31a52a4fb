import type { Result } from '../../base/result.ts'
import { z } from 'zod'
import { checkJson, parseJson } from '../../base/check-json.ts'
import { fromZod } from '../../contract/problem.ts'
import { findBlocks, type FoundBlock, type Tag } from './blocks.ts'
import type { JsonFields } from '../../base/json.ts'
import type { Question } from '../plan/slots.ts'

/** A model's proposal: also the input of the native tool `propose_skill`. */
export const proposeSkillInput = z.strictObject({
  skill_id: z.string().trim().min(1).max(128),
  why: z.string().max(2000).default(''),
  inputs: z.record(z.string().max(128), z.json()).default({}),
})

/** A model's questions: also the input of the native tool `clarify`. */
export const clarifyInput = z.strictObject({
  questions: z
    .array(z.strictObject({ slot: z.string().trim().min(1).max(128), question: z.string().trim().min(1).max(1000) }))
    .min(1)
    .max(16),
})

const resultInput = z.looseObject({ skill_id: z.string().max(128), status: z.string().max(64) })

export type Proposal = { skill_id: string; why: string; inputs: JsonFields }
type AspProblem = 'bad_json' | 'bad_content' | 'nested' | 'unclosed' | 'unopened' | 'too_large' | 'too_many'

/** A block of an answer. `at` is its start. */
export type AspBlock = { at: number } & (
  | ({ kind: 'propose' } & Proposal)
  | { kind: 'clarify'; questions: Question[] }
  /** A result in a model's own text is made up: results are the runner's to give. */
  | { kind: 'result'; skill_id: string; status: string }
  /** In a code fence, in inline code or in a quoted line: mentioned, not meant. */
  | { kind: 'quoted'; tag: Tag; excerpt: string }
  | { kind: 'malformed'; tag: Tag; problem: AspProblem; detail: string; excerpt: string }
)

const BLOCK_CHARACTERS = 64_000
const MOST_BLOCKS = 32
const EXCERPT = 120

/** Parses the blocks in a model's text, in order. Their place is free, their content is strict. */
export function parseAsp(text: string): AspBlock[] {
  const blocks = findBlocks(text, MOST_BLOCKS)
  return blocks.map((block) => parseBlock(block, text))
}

function parseBlock(block: FoundBlock, text: string): AspBlock {
  const { at, tag } = block
  const excerpt = excerptOf(text.slice(at, at + EXCERPT))
  if (block.quoted) return { at, kind: 'quoted', tag, excerpt }
  const malformed = (problem: AspProblem, detail: string): AspBlock => ({ at, kind: 'malformed', tag, problem, detail, excerpt })
  if (block.end !== 'closed') return malformed(block.end, endings[block.end](tag))
  if (block.body.length > BLOCK_CHARACTERS) {
    return malformed('too_large', `the block has ${block.body.length} characters; ${BLOCK_CHARACTERS} are allowed`)
  }
  const parsed = parseJson(withoutFence(block.body))
  if (!parsed.ok) return malformed('bad_json', parsed.message)
  const json = checkJson(parsed.value)
  if (!json.ok) return malformed('bad_content', `${json.error.path} ${json.error.message}`.trim())
  const content = contents[tag](parsed.value)
  return content.ok ? { at, ...content.block } : malformed('bad_content', content.detail)
}

const endings: Record<Exclude<FoundBlock['end'], 'closed'>, (tag: Tag) => string> = {
  unclosed: (tag) => `<${tag}> is not closed: end it with </${tag}>`,
  unopened: (tag) => `</${tag}> closes nothing`,
  nested: (tag) => `another block begins before </${tag}>: close it first`,
  too_many: () => `an answer has at most ${MOST_BLOCKS} blocks`,
}

type WithoutPlace<Block> = Block extends unknown ? Omit<Block, 'at'> : never
type Content = Result<{ block: WithoutPlace<AspBlock> }>

const contents: Record<Tag, (value: unknown) => Content> = {
  SKILL_PROPOSE: (value) => {
    const parsed = proposeSkillInput.safeParse(value)
    return parsed.success ? { ok: true, block: { kind: 'propose', ...parsed.data } } : { ok: false, detail: detailOf(parsed.error) }
  },
  CLARIFY: (value) => {
    const parsed = clarifyInput.safeParse(value)
    return parsed.success ? { ok: true, block: { kind: 'clarify', ...parsed.data } } : { ok: false, detail: detailOf(parsed.error) }
  },
  SKILL_RESULT: (value) => {
    const parsed = resultInput.safeParse(value)
    if (!parsed.success) return { ok: false, detail: detailOf(parsed.error) }
    return { ok: true, block: { kind: 'result', skill_id: parsed.data.skill_id, status: parsed.data.status } }
  },
}

export const detailOf = (error: z.ZodError): string =>
  fromZod(error)
    .slice(0, 3)
    .map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
    .join('; ')

/** A model may put its JSON in a fence of its own. */
function withoutFence(body: string): string {
  const trimmed = body.trim()
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```') || trimmed.length < 6) return trimmed
  return trimmed
    .slice(3, -3)
    .replace(/^(?:json|JSON)?[ \t]*\r?\n?/, '')
    .trim()
}

const excerptOf = (text: string): string => text.toWellFormed().replaceAll(/\s+/g, ' ')
