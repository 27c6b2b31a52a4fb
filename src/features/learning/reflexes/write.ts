import type { Episode } from '../episode.ts'
import { and, bitsOf, count, indexesOf, without } from './facts/bits.ts'
import type { DecisionClass } from './classes.ts'
import { codeOf, type ShownRule, type ShownTable, type RuleGuard } from './code.ts'
import type { HeldOut, PreparedEpisodes } from './judge.ts'
import { fieldSpansOf, textSpansOf } from './ranges.ts'
import { coveredBy, type Rule } from './rules.ts'
import type { Table } from './table.ts'
import { quote } from './facts/text.ts'
import { valueAt } from './facts/condition.ts'

const MOST_VALUES = 12
const LEAST_EACH = 3
const MOST_NAMES = 60

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
  /** The decision that it takes, as refusals name it. */
  decision: string
  by: 'rules' | 'table'
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
  return reflexOf(base, 'rules', { rules: shown }, rules)
}

export function tableReflex(base: Base, { bias, weights, threshold }: Table & { threshold: number }): LearnedReflex {
  const { features } = base.prepared.matrix
  const shown: ShownTable = {
    bias,
    threshold,
    weights: [...weights].flatMap(([feature, points]) => {
      const condition = features[feature]?.condition
      return condition ? [{ condition, points }] : []
    }),
    examples: examplesOf(base.episodes, indexesOf(ownOf(base))),
  }
  return reflexOf(base, 'table', { table: shown })
}

const ownOf = ({ prepared: { matrix, classes }, own }: Base) => bitsOf(matrix.size, (index) => classes.of[index] === own)

type Decides = Parameters<typeof codeOf>[0]['decides']

function reflexOf(base: Base, by: LearnedReflex['by'], decides: Decides, rules: readonly Rule[] = []): LearnedReflex {
  const { episodes, decision, held_out } = base
  const indexes = indexesOf(ownOf(base))
  const taught = indexes.map((index) => episodes[index] as Episode)
  const code = codeOf({
    title: titleOf(base),
    guards: [...(decision.unheard ? (['unheard'] as const) : []), ...guardsOf(taught, episodes)],
    fields: fieldSpansOf(taught),
    spansIn: (path) => textSpansOf(taught, path),
    acts: decision.acts,
    decides,
  })
  const wrong = without(coveredBy(rules, episodes.length), ownOf(base))
  const evidence = { episodes: taught.length, taught: indexes, exceptions: count(wrong), held_out }
  return { id: idOf(decision.key), decision: decision.key, acts: decision.acts, by, code, evidence }
}

function titleOf({ episodes, decision: { key }, held_out: { n, covered, agreed } }: Base): string[] {
  const teachers = new Set(episodes.map(({ teacher }) => `${teacher.by} ${teacher.model}`.trim()))
  return [
    `Learned from ${episodes.length} decisions of ${quote([...teachers].sort().join(', '))}.`,
    `Its decision: ${quote(key)}.`,
    `Learned from the older episodes alone, it agreed with ${agreed} of the ${covered} newer decisions`,
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
