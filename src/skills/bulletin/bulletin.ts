import { estimateTokenCount } from 'tokenx'
import type { Bulletin } from '../../contract/skill.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { Blackboard } from '../plan/blackboard.ts'
import { parsePath, readPath } from '../cel/expression.ts'
import { oncePer } from '../../base/once-per.ts'
import { cuesOf, scoreOf } from './score.ts'
import type { SkillIndex, SkillQuery } from './skill-index.ts'

export const GUIDANCE =
  'To use a skill, include <SKILL_PROPOSE>{json}</SKILL_PROPOSE>. If info is missing, reply with <CLARIFY>{json}</CLARIFY>.'

const MOST_CARDS = 5
const NO_GOAL: Goal = { unmet_postconditions: [] }
const OPENING = '<SKILL_BULLETIN>'
const CLOSING = '</SKILL_BULLETIN>'

export type BulletinRequest = SkillQuery & {
  index: SkillIndex
  recent_success: ReadonlySet<string>
  goal?: Goal
  /** Maximum number of cards, up to five. */
  k?: number | undefined
}

/** Builds the bulletin of the best-scoring skills. `rank` breaks ties. */
export function buildBulletin({ index, recent_success, goal = NO_GOAL, k = MOST_CARDS, ...situation }: BulletinRequest): Bulletin {
  const cues = cuesOf(situation)
  const scored = index
    .candidatesFor(cues, situation.compat)
    .map((manifest) => ({ manifest, score: scoreOf(manifest, cues, recent_success.has(manifest.id)).score }))
  const cards = rank(scored, goal)
    .toSorted((left, right) => right.score - left.score)
    .slice(0, Math.min(MOST_CARDS, Math.max(0, Math.floor(k))))
    .map(({ manifest, score }) => ({ ...cardFor(manifest), score }))
  if (cards.length === 0) return { text: '', tokens: 0, cards }
  const text = [OPENING, GUIDANCE, ...cards.map((card) => card.text), CLOSING].join('\n')
  return { text, tokens: estimateTokenCount(text), cards }
}

/** The number of bulletins in a prompt: one in each turn is right. */
export const bulletinsIn = (prompt: string): number => prompt.split(OPENING).length - 1

/** A skill as the model sees it: `shortened` if parts were left out to fit. */
type Card = { skill_id: string; version: string; text: string; tokens: number; shortened: boolean }

const CARD_TOKENS = 120

/** A manifest never changes, so its card is made once. */
export const cardFor = oncePer((manifest: Manifest): Card => fittingCard(manifest))

/** The first form that fits: shorter descriptions first, then fewer inputs, then the id alone. */
function fittingCard(manifest: Manifest): Card {
  const { id, version } = manifest
  for (const [index, text] of shorterAndShorter(manifest).entries()) {
    const tokens = estimateTokenCount(text)
    if (tokens <= CARD_TOKENS) return { skill_id: id, version, text, tokens, shortened: index > 0 }
  }
  throw new RangeError(`not even the id ${id} fits into a card of ${CARD_TOKENS} tokens`)
}

function shorterAndShorter(manifest: Manifest): string[] {
  const { id, signature } = manifest
  const description = plain(manifest.description ?? '')
  const words = description.split(' ')
  const required = new Set(manifest.activation.required_slots)
  const inputs = signature.inputs
    .filter(({ secret }) => !secret)
    .map(({ name, type, required: always }) => ({ name, type, must: always || required.has(name) }))
    .toSorted((left, right) => Number(right.must) - Number(left.must))
  const typed = inputs.map(({ name, type, must }) => `${name}${must ? '' : '?'}: ${type}`)
  const named = inputs.filter(({ must }) => must).map(({ name }) => name)
  const outputs = signature.outputs.map(({ name }) => name)
  const cut = words.map((_, dropped) => `${words.slice(0, words.length - dropped).join(' ')}${dropped > 0 ? '…' : ''}`)
  return [
    ...cut.map((text) => cardText(id, { description: text, inputs: typed, outputs })),
    cardText(id, { description: '', inputs: typed, outputs }),
    ...named.map((_, dropped) => cardText(id, { description: '', inputs: firstOf(named, named.length - dropped), outputs: [] })),
    `- ${id}`,
  ]
}

const firstOf = (names: readonly string[], count: number): string[] =>
  count === names.length ? [...names] : [...names.slice(0, count), `${names.length - count} more`]

function cardText(
  id: string,
  { description, inputs, outputs }: { description: string; inputs: readonly string[]; outputs: readonly string[] },
): string {
  const parts = [
    description,
    inputs.length > 0 ? `inputs {${inputs.join(', ')}}` : 'no inputs',
    outputs.length > 0 ? `gives {${outputs.join(', ')}}` : '',
  ]
  return `- ${id}: ${parts.filter((part) => part !== '').join('; ')}`
}

/** A line that opens no tag: a description must not look like a part of the protocol. */
const plain = (text: string): string => text.replaceAll('<', '‹').replaceAll('>', '›').replaceAll(/\s+/g, ' ').trim()

export type Goal = {
  /** Effects to reach, as manifests name them: `updated:appservice_image`, `work.endpoint`. */
  unmet_postconditions: readonly string[]
  /** The number of times that each skill, by id, came next. Advice only: it breaks ties. */
  transition_prior?: ReadonlyMap<string, number>
}

/** A postcondition that is a path is met if the blackboard has a value there; others stay unmet. */
export function goalOf(
  postconditions: readonly string[] = [],
  blackboard: Blackboard,
  transition_prior: ReadonlyMap<string, number> = new Map(),
): Goal {
  const isMet = (postcondition: string): boolean => {
    const path = parsePath(postcondition)
    return path !== null && readPath(blackboard, path).found
  }
  return { unmet_postconditions: postconditions.filter((postcondition) => !isMet(postcondition)), transition_prior }
}

/** Sorts by the number of goals reached, then by the prior of transitions, then by name. */
export function rank<Candidate extends { manifest: Manifest }>(
  candidates: readonly Candidate[],
  { unmet_postconditions, transition_prior }: Goal,
): Candidate[] {
  const unmet = new Set(unmet_postconditions)
  const reaches = ({ manifest: { effects } }: Candidate) =>
    new Set([...effects.writes, ...effects.external].filter((effect) => unmet.has(effect))).size
  const prior = ({ manifest }: Candidate) => transition_prior?.get(manifest.id) ?? 0
  return candidates
    .map((candidate) => ({ candidate, reached: reaches(candidate), prior: prior(candidate), name: nameOf(candidate.manifest) }))
    .toSorted((left, right) => right.reached - left.reached || right.prior - left.prior || compareText(left.name, right.name))
    .map(({ candidate }) => candidate)
}

const nameOf = ({ id, version }: Manifest): string => `${id}@${version}`

const compareText = (left: string, right: string): number => (left < right ? -1 : Number(left > right))
