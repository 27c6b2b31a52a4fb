import { canonicalJson, isJsonFields, type Json } from '../../../base/json.ts'
import type { Episode, EpisodeAct, Saw } from '../episode.ts'
import { extract, type ReplySlot, slotOf } from './slots.ts'
import type { ContextPath } from './facts/condition.ts'

/** A value with slots in it. `join`: a text of constant parts and slots. */
export type ActionTemplate =
  | { constant: Json }
  | ReplySlot
  | { join: readonly (string | ReplySlot)[] }
  | { fields: Record<string, ActionTemplate> }
/** The act of a learned reflex; null if it does nothing. */
export type ActTemplate = { kind: EpisodeAct['kind']; name: string; input: ActionTemplate } | null

/** Decisions that are alike up to slots. */
export type DecisionClass = { key: string; act: ActTemplate }
export type Classes = {
  classes: readonly DecisionClass[]
  /** The class of each episode; -1 where its decision cannot be learned. */
  of: Int32Array
  refused: { decision: string; episodes: number; reason: string }[]
}

/** Fewer decisions of a kind are not learned from. */
export const LEAST_DECISIONS = 8
const MOST_VALUES = 64

type Flat = Map<string, { path: ContextPath; value: Json }>
type Member = { index: number; act: EpisodeAct; saw: Saw; flat: Flat }

/** Groups decisions by tool and arguments, and finds out where the arguments come from. */
export function classesOf(episodes: readonly Episode[]): Classes {
  const of = new Int32Array(episodes.length).fill(-1)
  const classes: DecisionClass[] = []
  const refused: Classes['refused'] = []
  for (const [decision, indexes] of groups(episodes)) {
    if (indexes.length < LEAST_DECISIONS)
      refused.push({ decision, episodes: indexes.length, reason: `it was taken fewer than ${LEAST_DECISIONS} times` })
    else if (decision === NOTHING) {
      for (const index of indexes) of[index] = classes.length
      classes.push({ key: NOTHING, act: null })
    } else if (decision.startsWith('['))
      refused.push({ decision, episodes: indexes.length, reason: 'it has several acts, and a reflex has one' })
    else
      split(
        decision,
        indexes.map((index) => memberOf(episodes, index)),
        { of, classes, refused },
      )
  }
  return { classes, of, refused }
}

export const NOTHING = 'nothing'

function groups(episodes: readonly Episode[]): [string, number[]][] {
  const found = new Map<string, number[]>()
  episodes.forEach(({ acts }, index) => {
    const key = groupOf(acts)
    const known = found.get(key)
    if (known) known.push(index)
    else found.set(key, [index])
  })
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1))
}

function groupOf(acts: readonly EpisodeAct[]): string {
  const [act, ...more] = acts
  if (!act) return NOTHING
  if (more.length > 0) return JSON.stringify(acts.map(({ kind, name }) => `${kind} ${name}`))
  return `${act.kind} ${act.name} ${[...flatten(act.input).keys()].sort().join(' ')}`.trim()
}

function memberOf(episodes: readonly Episode[], index: number): Member {
  const { acts, saw } = episodes[index] as Episode
  const act = acts[0] as EpisodeAct
  return { index, act, saw, flat: flatten(act.input) }
}

function flatten(value: Json, path: ContextPath = [], found: Flat = new Map()): Flat {
  if (isJsonFields(value)) for (const [name, inner] of Object.entries(value)) flatten(inner, [...path, name], found)
  else found.set(JSON.stringify(path), { path, value })
  return found
}

/** Arguments become slots where they can be found; others tell classes apart. */
function split(decision: string, members: readonly Member[], into: Pick<Classes, 'of' | 'refused'> & { classes: DecisionClass[] }): void {
  const names = [...(members[0]?.flat.keys() ?? [])].sort()
  const templates = new Map<string, ActionTemplate>()
  for (const name of names) {
    const values = members.map(({ flat, saw }) => ({ saw, value: flat.get(name)?.value ?? null }))
    const distinct = new Set(values.map(({ value }) => canonicalJson(value)))
    const template = distinct.size === 1 ? null : templateOf(values)
    if (template) templates.set(name, template)
    else if (distinct.size > MOST_VALUES && distinct.size > members.length / LEAST_DECISIONS) {
      into.refused.push({ decision, episodes: members.length, reason: `nothing that was seen gives its argument ${name}` })
      return
    }
  }
  const kinds = new Map<string, Member[]>()
  for (const member of members) {
    const key = canonicalJson(
      Object.fromEntries(names.filter((name) => !templates.has(name)).map((name) => [name, member.flat.get(name)?.value ?? null])),
    )
    const known = kinds.get(key)
    if (known) known.push(member)
    else kinds.set(key, [member])
  }
  for (const [key, own] of [...kinds].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const [first] = own
    if (!first) continue
    if (own.length < LEAST_DECISIONS) {
      into.refused.push({
        decision: `${decision} ${key}`,
        episodes: own.length,
        reason: `it was taken fewer than ${LEAST_DECISIONS} times`,
      })
      continue
    }
    const input = fill(first.act.input, [], templates)
    const template = { kind: first.act.kind, name: first.act.name, input }
    for (const member of own) if (sameJsonOrUnknown(member, template.input)) into.of[member.index] = into.classes.length
    into.classes.push({ key: `${decision} ${key}`, act: template })
  }
}

/** A decision whose arguments its class does not give is another decision. */
const sameJsonOrUnknown = ({ act, saw }: Member, input: ActionTemplate): boolean => {
  const given = valueOf(input, saw)
  return given !== undefined && canonicalJson(given) === canonicalJson(act.input)
}

/** The value of a template in a context; undefined if a slot finds nothing. */
export function valueOf(template: ActionTemplate, saw: Saw): Json | undefined {
  if ('constant' in template) return template.constant
  if ('slot' in template) return extract(template, saw)
  if ('join' in template) {
    const parts = template.join.map((part) => (typeof part === 'string' ? part : extract(part, saw)))
    return parts.includes(undefined) ? undefined : parts.join('')
  }
  const fields: Record<string, Json> = {}
  for (const [name, inner] of Object.entries(template.fields)) {
    const value = valueOf(inner, saw)
    if (value === undefined) return undefined
    fields[name] = value
  }
  return fields
}

function fill(value: Json, path: ContextPath, templates: ReadonlyMap<string, ActionTemplate>): ActionTemplate {
  if (isJsonFields(value)) {
    return { fields: Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fill(inner, [...path, name], templates)])) }
  }
  return templates.get(JSON.stringify(path)) ?? { constant: value }
}

function templateOf(values: readonly { saw: Saw; value: Json }[]): ActionTemplate | null {
  const examples = values.filter((example): example is { saw: Saw; value: string | number } =>
    ['string', 'number'].includes(typeof example.value),
  )
  if (examples.length < values.length) return null
  return slotOf(examples) ?? joined(examples)
}

/** A text whose words are constant or slots. */
function joined(examples: readonly { saw: Saw; value: string | number }[]): ActionTemplate | null {
  const texts = examples.flatMap(({ saw, value }) => (typeof value === 'string' ? [{ saw, parts: value.split(/([\s,.;:!?()]+)/) }] : []))
  const length = texts[0]?.parts.length ?? 0
  if (length < 2 || texts.length < examples.length || texts.some(({ parts }) => parts.length !== length)) return null
  const join: (string | ReplySlot)[] = []
  for (let at = 0; at < length; at += 1) {
    const values = texts.map(({ saw, parts }) => ({ saw, value: parts[at] ?? '' }))
    const isConstant = values.every(({ value }) => value === values[0]?.value)
    const part = isConstant ? (values[0]?.value ?? '') : slotOf(values)
    if (part === null) return null
    join.push(part)
  }
  return { join }
}
