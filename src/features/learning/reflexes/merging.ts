import { canonicalJson } from '../../../base/json.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Episode } from '../episode.ts'
import { type ActionTemplate, type ActTemplate, allReturned, type DecisionClass, isGiven, saysBeside, withoutWords } from './classes.ts'
import { and, bitsOf, indexesOf } from './facts/bits.ts'
import { matrixOf } from './facts/matrix.ts'
import { type HeldOut, NONE, type PreparedEpisodes } from './judge.ts'
import { coveredBy, rulesFor } from './rules.ts'

export type JudgedEpisodes = { prepared: PreparedEpisodes; byClass: readonly HeldOut[] }

/** Events predict so little of a class that something else may tell its decisions apart. */
const PREDICTED = 0.8
/** Fewer newer decisions say nothing. */
export const LEAST_PREDICTED = 10

/** The classes with at least these acts that events do not predict. */
export const unpredicted = ({ prepared, byClass }: JudgedEpisodes, isAsked: (acts: readonly ActTemplate[]) => boolean): number[] =>
  prepared.classes.classes.flatMap(({ acts }, own) => {
    const { n, agreed } = byClass[own] ?? NONE
    return isAsked(acts) && (n < LEAST_PREDICTED || agreed < n * PREDICTED) ? [own] : []
  })

/** A class that replaces a group. `members`: indexes of all of its episodes. */
export type Merged = { group: readonly number[]; decision: DecisionClass; members: readonly number[] }

/** The episodes with the merged classes last, in their order. */
export function withMerged(prepared: PreparedEpisodes, all: readonly Merged[]): PreparedEpisodes {
  const { classes, of, refused } = prepared.classes
  const gone = new Set(all.flatMap(({ group }) => group))
  const kept = [...classes.keys()].filter((own) => !gone.has(own))
  const placed = new Map(kept.map((own, place) => [own, place]))
  const merged = Int32Array.from(of, (own) => placed.get(own) ?? -1)
  for (const [place, { members }] of all.entries()) for (const index of members) merged[index] = kept.length + place
  // All classes of a group begin with the same tool, and so do their fair episodes.
  const sources = [...kept, ...all.map(({ group }) => group[0] ?? 0)]
  return {
    ...prepared,
    classes: { classes: [...kept.flatMap((own) => classes[own] ?? []), ...all.map(({ decision }) => decision)], of: merged, refused },
    fair: sources.flatMap((own) => prepared.fair[own] ?? []),
  }
}

/**
 * Merges decisions of which any words will do with all that have the same other acts, unless rules
 * tell their silence: a model that mostly says what it did is silent now and then.
 */
export function* withAnyWords(episodes: readonly Episode[], judged: JudgedEpisodes): Steps<PreparedEpisodes | null> {
  const { classes, of } = judged.prepared.classes
  const open = unpredicted(judged, () => true)
  const isOpen = new Set([-1, ...open])
  const found: Merged[] = []
  for (const own of open) {
    yield
    const said = classes[own]
    const acts = said && actsBefore(said)
    const isFree = (index: number): boolean => isOpen.has(of[index] ?? -1) && !found.some(({ members }) => members.includes(index))
    const same = acts ? [...episodes.keys()].filter((index) => isFree(index) && isTheSame(episodes[index] as Episode, acts)) : []
    if (!acts || !same.some((index) => of[index] !== own)) continue
    const told = yield* toldSilence(
      same.map((index) => episodes[index] as Episode),
      acts.length,
    )
    const members = same.filter((_, place) => !told.has(place))
    const spoken = members.filter((index) => saysBeside(episodes[index]?.acts ?? []))
    const among = new Set(members)
    const group = open.filter((one) => of.every((other, index) => other !== one || among.has(index)))
    const isMore = members.some((index) => of[index] !== own)
    if (isMore && group.includes(own) && spoken.length > members.length * MOSTLY_SPOKEN) found.push({ group, members, decision: said })
  }
  return found.length === 0 ? null : withMerged(judged.prepared, found)
}

/** The places of decisions without words, as rules tell by the event and what the acts returned. */
function* toldSilence(same: readonly Episode[], acts: number): Steps<Set<number>> {
  const isSilent = same.map((one) => !saysBeside(one.acts))
  if (!isSilent.includes(true)) return new Set()
  const own = same.map((one) => ({ ...one, acts: [...withoutWords(one.acts)] }))
  let seen: Episode[] = own
  for (let count = 1; count <= acts; count += 1) seen = allReturned(own, count).map((one, place) => one ?? (seen[place] as Episode))
  const matrix = yield* matrixOf(seen)
  const positive = bitsOf(matrix.size, (place) => isSilent[place] === true)
  // Nobody teaches an act by its silence.
  const rules = yield* rulesFor({ matrix, taught: bitsOf(matrix.size, () => true), positive, crowd: () => true })
  return new Set(indexesOf(and(coveredBy(rules, matrix.size), positive)))
}
/** The share of such decisions that have words. Where fewer do, nothing is said. */
const MOSTLY_SPOKEN = 0.5

/** The acts before any words; null if its words are others, or not the last act. */
function actsBefore({ acts, terms }: DecisionClass): readonly ActTemplate[] | null {
  const others = acts.slice(0, -1)
  return terms.any_words && acts.at(-1)?.kind === 'reply' && others.every(({ kind }) => kind !== 'reply') ? others : null
}

function isTheSame({ acts, saw }: Episode, templates: readonly ActTemplate[]): boolean {
  const own = withoutWords(acts)
  const isNamed =
    own.length === templates.length && own.every(({ kind, name }, at) => kind === templates[at]?.kind && name === templates[at].name)
  return isNamed && isGiven({ acts: own, saw, words: 'exact' }, templates)
}

/** Merges decisions with the same acts in several orders, which events do not tell apart. */
export function withAnyOrder(judged: JudgedEpisodes): PreparedEpisodes | null {
  const { classes, of } = judged.prepared.classes
  const open = unpredicted(judged, (acts) => acts.length > 1 && !acts.some(({ input }) => usesOutputs(input)))
  const groups = Map.groupBy(open, (own) => (classes[own] ? keysOfActs(classes[own]).sort().join() : ''))
  const membersOf = (own: number): number[] => [...of.keys()].filter((index) => of[index] === own)
  const found = [...groups.values()].flatMap((group): Merged[] => {
    const all = group.flatMap((own) => classes[own] ?? [])
    const members = group.map(membersOf)
    const most = Math.max(...members.map(({ length }) => length))
    const usual = all[members.findIndex(({ length }) => length === most)]
    if (!usual || group.length < 2) return []
    const together = { unheard: all.some(({ unheard }) => unheard), leaves: all.every(({ leaves }) => leaves) }
    return [{ group, members: members.flat(), decision: { ...usual, ...together, terms: { ...termsOf(all), any_order: true } } }]
  })
  return found.length === 0 ? null : withMerged(judged.prepared, found)
}

/** Words of which any will do are the same act. */
const keysOfActs = ({ acts, terms }: DecisionClass): string[] =>
  acts.map(({ kind, name, input }) => canonicalJson(kind === 'reply' && terms.any_words ? { kind } : { kind, name, input }))

/** The terms of several decisions together. */
export const termsOf = (all: readonly DecisionClass[]): DecisionClass['terms'] => Object.assign({}, ...all.map(({ terms }) => terms))

function usesOutputs(template: ActionTemplate): boolean {
  if ('output' in template) return true
  if ('join' in template) return template.join.some((part) => typeof part !== 'string' && 'output' in part)
  return 'fields' in template && Object.values(template.fields).some(usesOutputs)
}
