import { estimateTokenCount } from 'tokenx'
import { cardFor, type Card } from './card.ts'
import { cuesOf, scoreOf } from './score.ts'
import { byName, type SkillIndex, type Situation } from './skill-index.ts'

/** The document's own words. */
export const GUIDANCE =
  'To use a skill, include <SKILL_PROPOSE>{json}</SKILL_PROPOSE>. If info is missing, reply with <CLARIFY>{json}</CLARIFY>.'

export const MOST_CARDS = 5
const OPENING = '<SKILL_BULLETIN>'
const CLOSING = '</SKILL_BULLETIN>'

export type BulletinRequest = Situation & {
  index: SkillIndex
  /** Ids of the skills whose last run went well. */
  recent_success: ReadonlySet<string>
  /** How many cards at most, up to five. */
  k?: number
}

/** `text` is for the system prompt, once per turn; empty, as `cards` is, where nothing fits. */
export type Bulletin = { text: string; tokens: number; cards: (Card & { score: number })[] }

/** The skills that fit best where the agent is and what is being said, by the gate's own score; of equals the first by id. */
export function buildBulletin({ index, recent_success, k = MOST_CARDS, ...situation }: BulletinRequest): Bulletin {
  const cues = cuesOf(situation)
  const cards = index
    .candidatesFor(cues, situation.compat)
    .map((manifest) => ({ manifest, score: scoreOf(manifest, cues, recent_success.has(manifest.id)).score }))
    .toSorted((left, right) => right.score - left.score || byName(left.manifest, right.manifest))
    .slice(0, Math.min(MOST_CARDS, Math.max(0, Math.floor(k))))
    .map(({ manifest, score }) => ({ ...cardFor(manifest), score }))
  if (cards.length === 0) return { text: '', tokens: 0, cards }
  const text = [OPENING, GUIDANCE, ...cards.map((card) => card.text), CLOSING].join('\n')
  return { text, tokens: estimateTokenCount(text), cards }
}

/** How often a prompt holds a bulletin: once in each turn is right. */
export const bulletinsIn = (prompt: string): number => prompt.split(OPENING).length - 1
