import type { Episode } from '../episode.ts'
import { and, bitsOf, count, indexesOf, without } from './facts/bits.ts'
import type { DecisionClass } from './classes.ts'
import { codeOf, type CodeDecision, scorerCodeOf, type ShownRule, type RuleGuard } from './code.ts'
import type { HeldOut, PreparedEpisodes } from './judge.ts'
import { fieldSpansOf, textSpansOf } from './facts/ranges.ts'
import { coveredBy, type Rule } from './rules.ts'
import { looksAt, packed, type TableScorer } from './scorer/fit.ts'
import { quote } from './facts/text.ts'
import { valueAt } from './facts/condition.ts'
import { withWeights } from '../../../reflexes/weights.ts'

const MOST_VALUES = 12
const LEAST_EACH = 3
const MOST_NAMES = 60

/** The types of events that a decision was taken on. */
const typesOf = (own: readonly Episode[]): RuleGuard => ({
  path: ['event', 'type'],
  values: [...new Set(own.map(({ saw }) => saw.event.type))].sort(),
})

/** Keeps a reflex to the values of fields and the names of counts that it was taught with. */
function guardsOf(own: readonly Episode[], all: readonly Episode[]): RuleGuard[] {
  const guards: RuleGuard[] = []
  const fields = new Set(all.flatMap(({ saw }) => Object.keys(saw.event)))
  for (const name of [
    'type',
    ...[...fields].sort().filter((field) => !['type', 'id', 'timestamp', 'scope', 'source', 'meta'].includes(field)),
  ]) {
    const counts = new Map<string | boolean | null, number>()
    for (const { saw } of own) {
      const value = valueAt(saw, ['event', name])
      if (typeof value === 'string' || typeof value === 'boolean' || value === null) counts.set(value, (counts.get(value) ?? 0) + 1)
      if (counts.size > MOST_VALUES) break
    }
    const values = [...counts.keys()].sort((one, other) => (String(one) < String(other) ? -1 : 1))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    if (
      values.length > 0 &&
      values.length <= MOST_VALUES &&
      total === own.length &&
      (name === 'type' || Math.min(...counts.values()) >= LEAST_EACH)
    )
      guards.push({ path: ['event', name], values })
  }
  const names = new Set(all.flatMap(({ saw }) => Object.keys(saw.window['10m']?.by_type ?? {})))
  if (names.size <= MOST_NAMES) guards.push({ path: ['window', '10m', 'by_type'], names: [...names].sort() })
  return guards
}

export type LearnedReflex = {
  id: string
  /** Names what it decides. */
  decision: string
  /** The decisions that it takes, as refusals name them. */
  decisions: readonly string[]
  by: 'rules' | 'table'
  /** The acts of all of its decisions. */
  acts: DecisionClass['acts']
  code: string
  /** `taught`: indexes of its episodes. `exceptions`: others that its rules cover. */
  evidence: { episodes: number; taught: readonly number[]; exceptions: number; held_out: HeldOut }
}

type Base = { episodes: readonly Episode[]; prepared: PreparedEpisodes; own: number; decision: DecisionClass; held_out: HeldOut }

export function rulesReflex(base: Base, rules: readonly Rule[]): LearnedReflex | null {
  if (rules.length === 0) return null
  const positive = ownOf(base)
  const shown = rules.map(({ literals, covered, support, exceptions }): ShownRule => {
    return { literals, support, exceptions, examples: examplesOf(base.episodes, indexesOf(and(covered, positive))) }
  })
  const wrong = without(coveredBy(rules, base.episodes.length), positive)
  return reflexOf(base, 'rules', shown, count(wrong))
}

const ownOf = ({ prepared: { matrix, classes }, own }: Pick<Base, 'prepared' | 'own'>) =>
  bitsOf(matrix.size, (index) => classes.of[index] === own)

function reflexOf(base: Base, by: LearnedReflex['by'], rules: readonly ShownRule[], exceptions: number): LearnedReflex {
  const { episodes, decision, held_out } = base
  const indexes = indexesOf(ownOf(base))
  const taught = indexes.map((index) => episodes[index] as Episode)
  const code = codeOf({
    title: [...titleOf(base), `Its decision: ${quote(decision.key)}.`],
    guards: [...(decision.unheard ? (['unheard'] as const) : []), ...guardsOf(taught, episodes)],
    fields: fieldSpansOf(taught),
    spansIn: (path) => textSpansOf(taught, path),
    acts: decision.acts,
    rules,
  })
  const evidence = { episodes: taught.length, taught: indexes, exceptions, held_out }
  const { key, acts } = decision
  return { id: idOf(key), decision: key, decisions: [key], acts, by, code, evidence }
}

/** `held_out`, `leads`: by class. A class without a lead decides nothing. */
type TableBase = Pick<Base, 'episodes' | 'prepared'> & { held_out: readonly HeldOut[] }
type Leading = { scorer: TableScorer; leads: readonly (number | null)[] }

/** A reflex for all decisions, which takes the decision that leads by enough points. */
export function scorerReflex({ episodes, prepared, held_out }: TableBase, { scorer, leads }: Leading): LearnedReflex {
  const { classes, of } = prepared.classes
  const taken = classes.flatMap((decision, own) => (leads[own] == null ? [] : [{ decision, own, lead: leads[own] }]))
  const indexes = episodes.flatMap((_, index) => (leads[of[index] ?? -1] == null ? [] : [index]))
  const taught = indexes.map((index) => episodes[index] as Episode)
  const asked = looksAt(scorer, { saws: taught.map(({ saw }) => saw), names: classes.map(({ key }) => key) })
  const decisions = taken.map(({ decision, own, lead }): CodeDecision => {
    const mine = indexesOf(ownOf({ prepared, own }))
    const members = mine.map((index) => episodes[index] as Episode)
    return {
      own,
      lead,
      title: `${quote(decision.key)}: ${mine.length} decisions. For example:`,
      examples: examplesOf(episodes, mine),
      guards: [...(decision.unheard ? (['unheard'] as const) : []), typesOf(members)],
      acts: decision.acts,
      spans: asked.texts.flatMap((path) => textSpansOf(members, path) ?? []),
      fields: fieldSpansOf(members).filter(({ path }) => !asked.isNumber(path)),
    }
  })
  const total = sumOf(held_out)
  const { source, weights } = packed(scorer)
  const code = scorerCodeOf({
    title: [...titleOf({ episodes, held_out: total }, 'table'), ...asked.described],
    guards: guardsOf(taught, episodes),
    fields: fieldSpansOf(taught).filter(({ path }) => asked.isNumber(path)),
    decisions,
    classes: classes.length,
    source,
  })
  const acts = taken.flatMap(({ decision }) => decision.acts)
  const evidence = { episodes: taught.length, taught: indexes, exceptions: 0, held_out: total }
  const keys = taken.map(({ decision: { key } }) => key)
  return {
    id: TABLE_ID,
    decision: `table of ${keys.length}: ${keys.join(', ')}`,
    decisions: keys,
    acts,
    by: 'table',
    code: withWeights(code, weights),
    evidence,
  }
}

/** A scope has one table; a later one follows in the chain under a further id. */
const TABLE_ID = 'learned.table'

const sumOf = (all: readonly HeldOut[]): HeldOut => ({
  n: all.reduce((sum, { n }) => sum + n, 0),
  covered: all.reduce((sum, { covered }) => sum + covered, 0),
  agreed: all.reduce((sum, { agreed }) => sum + agreed, 0),
  hits: all.flatMap(({ hits }) => hits),
  misses: all.flatMap(({ misses }) => misses),
})

function titleOf(
  { episodes, held_out: { n, covered, agreed } }: Pick<Base, 'episodes' | 'held_out'>,
  by: LearnedReflex['by'] = 'rules',
): string[] {
  const teachers = new Set(episodes.map(({ teacher }) => `${teacher.by} ${teacher.model}`.trim()))
  return [
    `Learned from ${episodes.length} decisions of ${quote([...teachers].sort().join(', '))}.`,
    by === 'table'
      ? `Learned without a fifth of the episodes at a time, it agreed with ${agreed} of the ${covered} decisions`
      : `Learned from the older episodes alone, it agreed with ${agreed} of the ${covered} newer decisions`,
    `that it took, of ${n} such.`,
  ]
}

/** The first, the middle and the last. */
function examplesOf(episodes: readonly Episode[], indexes: readonly number[]): string[] {
  const places = new Set([0, Math.floor(indexes.length / 2), indexes.length - 1])
  return [...places].flatMap((place) => {
    const episode = episodes[indexes[place] ?? -1]
    return episode ? [exampleOf(episode)] : []
  })
}

const UNTOLD = new Set(['id', 'timestamp', 'scope', 'source', 'meta'])

const exampleOf = ({ saw: { event } }: Episode): string =>
  Object.entries(event)
    .filter(([name]) => !UNTOLD.has(name))
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')

/** The hash (FNV-1a) is of the whole decision, of which the words are a part. */
function idOf(key: string): string {
  let hash = 0x811c9dc5
  for (const character of key) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0
  const words = key
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 60)
  return `learned.${words}.${hash.toString(16).padStart(8, '0')}`
}
