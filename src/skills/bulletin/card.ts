import { estimateTokenCount } from 'tokenx'
import type { Manifest } from '../manifest/manifest.ts'

/** What the model is told of one skill: `shortened` where not all of it fitted. */
export type Card = { skill_id: string; version: string; text: string; tokens: number; shortened: boolean }

export const CARD_TOKENS = 120

const cards = new WeakMap<Manifest, Card>()

/** A manifest never changes, so that its card is made once. */
export function cardFor(manifest: Manifest): Card {
  const known = cards.get(manifest)
  if (known) return known
  const card = fittingCard(manifest)
  cards.set(manifest, card)
  return card
}

/** The first that fits: the whole card, with ever less of the description, without it, with ever fewer inputs, and the id alone. */
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

/** One line that opens no tag: a description must not look like a part of the protocol. */
const plain = (text: string): string => text.replaceAll('<', '‹').replaceAll('>', '›').replaceAll(/\s+/g, ' ').trim()
