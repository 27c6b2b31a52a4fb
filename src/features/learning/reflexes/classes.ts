import type { Steps } from '../../../base/steps.ts'
import { canonicalJson, isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import { MOST_ACTS, type Sequence } from '../../../contract/action.ts'
import { isMask } from '../../../traces/redact.ts'
import { isMasked } from '../../../base/secrets.ts'
import { SEVERAL_WORDS, wordsIn, type Replies } from '../../../contract/words.ts'
import type { Words } from '../../../contract/reflex.ts'
import type { Episode, EpisodeAct, Saw, Seen } from '../episode.ts'
import { variantsOf } from './variants.ts'
import { composedFrom, extract, FOUND, type ReplySlot, slotOf, WRONG } from './slots.ts'
import type { ContextPath, Literal } from './facts/condition.ts'
import { actName, branchingName } from '../../../contract/act-name.ts'
import { frequentOf, GAP, likeliestOf, mostHeard, type Wording, wordingsOf } from './wordings.ts'
import { failureIn, jsonIn, partOf, wholeOf } from '../../../reflexes/sequence.ts'

/** The value at a path in the output of an earlier act of the decision. */
export type OutputSlot = { output: number; path: ContextPath }
/** A value with slots in it. `join`: a text of constant parts and slots. */
export type ActionTemplate =
  | { constant: Json }
  | ReplySlot
  | OutputSlot
  | { join: readonly (string | ReplySlot | OutputSlot)[] }
  | { fields: Record<string, ActionTemplate> }
export type ActTemplate = { kind: EpisodeAct['kind']; name: string; input: ActionTemplate }

/** A rule of a branch. `examples`: indexes of episodes. */
export type BranchRule = { literals: readonly Literal[]; support: number; exceptions: number; examples: readonly number[] }
/**
 * A decision that follows the first acts of another. `own`: indexes of its episodes, which are
 * `seen` after those acts.
 */
export type LearnedBranch = { decision: DecisionClass; rules: readonly BranchRule[]; own: readonly number[]; seen: readonly Episode[] }

/** Decisions that are alike up to slots. No acts: it does nothing. */
export type DecisionClass = {
  key: string
  acts: readonly ActTemplate[]
  /** The same decision without its words; null if it has none beside other acts. */
  beside: string | null
  /** Some of its decisions had words that nobody could hear, and that are no part of it. */
  unheard: boolean
  /** Words are all there is, and nobody could hear them. */
  unheardAlone: boolean
  /** Its events leave the context, as they did after each turn that decided so. */
  leaves: boolean
  /** The terms by which it agrees with other decisions. */
  terms: Pick<Sequence, 'any_order' | 'any_words'>
  /** The decisions that follow its acts, by what these returned. */
  branches?: readonly LearnedBranch[]
}

/** The name by which certificates prove a decision. */
export const nameOf = ({ acts, branches = [] }: Pick<DecisionClass, 'acts' | 'branches'>): string =>
  branches.length === 0
    ? actName(acts)
    : branchingName(
        actName(acts),
        branches.map(({ decision }) => actName(decision.acts)),
      )

/** All acts of a decision and of its branches. */
export const actsOfClass = ({ acts, branches = [] }: Pick<DecisionClass, 'acts' | 'branches'>): readonly ActTemplate[] => [
  ...acts,
  ...branches.flatMap(({ decision }) => decision.acts),
]

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
/** `flat`: the arguments of all acts, by the place of the act and the path. */
type Member = {
  left: boolean | undefined
  index: number
  source: string
  acts: readonly EpisodeAct[]
  saw: Saw
  flat: Flat
  words: Words
  unheard: boolean
}
type Into = Pick<Classes, 'of' | 'refused'> & { classes: DecisionClass[] }

/** Groups decisions by tools and arguments, and finds out where the arguments come from. */
export function* classesOf(episodes: readonly Episode[], replies: Replies = 'heard'): Steps<Classes> {
  const into: Into = { of: new Int32Array(episodes.length).fill(-1), classes: [], refused: [] }
  const members = yield* mapped(episodes, ({ acts, saw, left, source }, index) => {
    const read = wordsIn(replies, saw.event)
    // Words alone are the decision: others will not do.
    const words = read === 'said' && !saysBeside(acts) ? 'exact' : read
    return memberOf({ index, source, saw, left, words, unheard: false, acts: replies === 'ignore' ? withoutWords(acts) : acts })
  })
  const fixed = yield* fixedWords(members)
  for (const [decision, own] of yield* groups(yield* mapped(members, (member) => withoutVaryingWords(member, fixed)))) {
    yield
    const [first] = own
    if (own.length < LEAST_DECISIONS || !first)
      into.refused.push({ decision, episodes: own.length, reason: `it was taken fewer than ${LEAST_DECISIONS} times` })
    else if (decision === NOTHING) {
      for (const { index } of own) into.of[index] = into.classes.length
      into.classes.push({ key: NOTHING, acts: [], beside: null, unheard: false, unheardAlone: false, leaves: isLeft(own), terms: {} })
    } else if (first.acts.length > MOST_ACTS)
      into.refused.push({
        decision,
        episodes: own.length,
        reason: `it has ${first.acts.length} acts, and a reflex has at most ${MOST_ACTS}`,
      })
    else yield* split(decision, own, into)
  }
  return into
}

/** The acts beside words, unless words are all there is. */
export function withoutWords(acts: readonly EpisodeAct[]): readonly EpisodeAct[] {
  const others = acts.filter(({ kind }) => kind !== 'reply')
  return others.length === 0 ? acts : others
}

/** True if a decision has words beside other acts. */
export const saysBeside = (acts: readonly EpisodeAct[]): boolean => withoutWords(acts).length < acts.length

/**
 * Words that nobody heard are kept where they are always the same beside such acts: then a reflex
 * says them to those who do hear it. Elsewhere they are no part of the decision.
 */
function withoutVaryingWords(member: Member, fixed: ReadonlySet<string>): Member {
  if (!hasUnheardWords(member) || fixed.has(groupOf(member.acts))) return member
  return memberOf({ ...member, acts: withoutWords(member.acts), unheard: true })
}

/** The groups of decisions whose unheard words are always the same. */
function* fixedWords(members: readonly Member[]): Steps<Set<string>> {
  const fixed = new Set<string>()
  for (const [group, own] of yield* groups(members.filter(hasUnheardWords))) {
    yield
    const names = [...(own[0]?.flat.keys() ?? [])].filter((name) => isReplyAt(own[0], name))
    let isFixed = own.length >= LEAST_DECISIONS
    for (const name of names) isFixed &&= (yield* templateFor(own, name)) !== null
    if (isFixed) fixed.add(group)
  }
  return fixed
}

const hasUnheardWords = ({ acts, words }: Member): boolean => words === 'none' && saysBeside(acts)

export const NOTHING = 'nothing'

/** Decisions of one step. */
const STEP = 100

function* mapped<Item, Made>(items: readonly Item[], make: (item: Item, index: number) => Made): Steps<Made[]> {
  const made: Made[] = []
  for (const [index, item] of items.entries()) {
    if (index % STEP === 0) yield
    made.push(make(item, index))
  }
  return made
}

function* groups(members: readonly Member[]): Steps<[string, Member[]][]> {
  const names = yield* mapped(members, ({ acts }) => groupOf(acts))
  const found = Map.groupBy(members, (_, index) => names[index] ?? '')
  return [...found].sort(([one], [other]) => (one < other ? -1 : 1))
}

function groupOf(acts: readonly Pick<EpisodeAct, 'kind' | 'name' | 'input'>[]): string {
  if (acts.length === 0) return NOTHING
  return acts.map(({ kind, name, input }) => `${kind} ${name} ${[...flatten(input).keys()].sort().join(' ')}`.trim()).join(' + ')
}

function memberOf({ acts, ...own }: Omit<Member, 'flat'>): Member {
  const flat: Flat = new Map()
  acts.forEach(({ input }, place) => flatten(input, [String(place)], flat))
  return { ...own, acts, flat }
}

const isLeft = (members: readonly Member[]): boolean =>
  members.some(({ left }) => left === true) && members.every(({ left }) => left !== false)

const isReplyAt = (member: Member | undefined, name: string): boolean => member?.acts[placeOf(name)]?.kind === 'reply'
const placeOf = (name: string): number => Number((JSON.parse(name) as string[])[0])

function flatten(value: Json, path: ContextPath = [], found: Flat = new Map()): Flat {
  if (isJsonFields(value)) for (const [name, inner] of Object.entries(value)) flatten(inner, [...path, name], found)
  else found.set(JSON.stringify(path), { path, value })
  return found
}

type Templates = ReadonlyMap<string, ActionTemplate>
/** The ways in which arguments are made that others make in another one, by their names. */
type Made = Readonly<Record<string, string>>

/**
 * Arguments become slots where they can be found; others tell classes apart. Words come last: those
 * that nothing gives for all decisions are looked for in each kind of the other arguments, since
 * words repeat what tells decisions apart, such as the currency of a refund.
 */
function* split(decision: string, members: readonly Member[], into: Into, made: Made = {}): Steps<void> {
  const all = [...(members[0]?.flat.keys() ?? [])].sort()
  const isWords = (name: string): boolean => isReplyAt(members[0], name)
  const names = [...all.filter((name) => !isWords(name)), ...all.filter(isWords)]
  const templates = new Map<string, ActionTemplate>()
  for (const name of names) {
    const { template, reason } = yield* argumentOf(members, name)
    if (template) templates.set(name, template)
    if (reason === null) continue
    const variants = isWords(name) ? [] : yield* variantsOf(valuesAt(members, name), valueOf)
    if (variants.length > 0) {
      for (const { said, own } of variants) {
        const kind = own.flatMap((place) => members[place] ?? [])
        if (!isRare(decision, said, kind, into)) yield* split(decision, kind, into, { ...made, [keyName(members[0], name)]: said })
      }
      return
    }
    const kinds = isWords(name) ? yield* kindsBy(members, (other) => !isWords(other) && !templates.has(other)) : []
    const wordings = isWords(name) && kinds.length < 2 ? yield* wordingsAt(members, name) : []
    if (wordings.length > 1 || (wordings[0]?.own.length ?? members.length) < members.length) {
      for (const { own, said } of wordings)
        yield* split(decision, membersAt(members, own), into, { ...made, [keyName(members[0], name)]: said })
      const said = new Set(wordings.flatMap(({ own }) => own))
      if (said.size < members.length) into.refused.push({ decision, episodes: members.length - said.size, reason })
    } else if (kinds.length < 2) into.refused.push({ decision, episodes: members.length, reason })
    else for (const [key, own] of kinds) if (!isRare(decision, key, own, into)) yield* split(decision, own, into, made)
    return
  }
  yield* classify(decision, members, { templates, into, made })
}

/** Looks for an argument. One with neither a template nor a reason tells classes apart. */
function* argumentOf(members: readonly Member[], name: string): Steps<{ template: ActionTemplate | null; reason: string | null }> {
  const values = members.map(({ flat }) => flat.get(name)?.value ?? null)
  if (values.some(isMask)) return { template: null, reason: `its argument ${keyName(members[0], name)} is masked in the log` }
  const distinct = new Set(yield* mapped(values, canonicalJson))
  if (distinct.size === 1) return { template: null, reason: null }
  const isWords = isReplyAt(members[0], name)
  const isFree = isWords && members.some(({ words }) => words === 'said')
  const template = yield* (isFree ? likeliestWords : templateFor)(members, name)
  if (template) return { template, reason: null }
  if (isFree) return { template, reason: 'none of its words could be said again' }
  const isMany = distinct.size > MOST_VALUES && distinct.size > members.length / LEAST_DECISIONS
  if (!isMany) return { template, reason: null }
  return {
    template,
    reason: isWords
      ? `nothing that was seen gives its words${WORDS_COUNT}`
      : `nothing that was seen gives its argument ${keyName(members[0], name)}${areWorded(values) ? freeText(values) : ''}`,
  }
}

/** Texts of several words. */
const areWorded = (values: readonly Json[]): boolean =>
  values.filter((value) => typeof value === 'string' && SEVERAL_WORDS.test(value)).length >= values.length * MOSTLY
const MOSTLY = 0.9
/** Fewer wordings may each be decided often enough in time. */
const LEAST_WORDINGS = 8
const freeText = (values: readonly Json[]): string =>
  `, which is text in ${new Set(values).size} wordings: leave it out of the input of the tool, or let the model choose from a few values there`

const WORDS_COUNT = ', which vary: the setting learning.replies says if they are part of the decision'

const keyOf = (member: { acts: readonly unknown[]; flat: Flat }, isPart: (name: string) => boolean): string =>
  canonicalJson(
    Object.fromEntries([...member.flat].filter(([name]) => isPart(name)).map(([name, { value }]) => [keyName(member, name), value])),
  )

/** The members by their values of some arguments. */
function* kindsBy(members: readonly Member[], isPart: (name: string) => boolean): Steps<[string, Member[]][]> {
  const keys = yield* mapped(members, (member) => keyOf(member, isPart))
  const kinds = Map.groupBy(members, (_, index) => keys[index] ?? '')
  return [...kinds].sort(([one], [other]) => (one < other ? -1 : 1))
}

/** True if a kind has too few decisions, which are then refused. */
function isRare(decision: string, key: string, { length: episodes }: readonly Member[], { refused }: Into): boolean {
  if (episodes >= LEAST_DECISIONS) return false
  refused.push({ decision: `${decision} ${key}`, episodes, reason: `it was taken fewer than ${LEAST_DECISIONS} times` })
  return true
}

function* classify(
  decision: string,
  members: readonly Member[],
  { templates, into, made }: { templates: Templates; into: Into; made: Made },
): Steps<void> {
  const kinds = yield* kindsBy(members, (name) => !templates.has(name))
  const worded = kinds.flatMap(([, own]) => (own.length < LEAST_DECISIONS ? own : []))
  const free = reasonOfWords(worded, templates)
  if (free !== null) into.refused.push({ decision, episodes: worded.length, reason: free })
  for (const [values, own] of kinds) {
    const [first] = own
    const key = Object.keys(made).length === 0 ? values : canonicalJson({ ...made, ...(JSON.parse(values) as JsonFields) })
    if (free !== null && own.length < LEAST_DECISIONS) continue
    if (!first || isRare(decision, key, own, into)) continue
    const acts = first.acts.map(({ kind, name, input }, place) => ({ kind, name, input: fill(input, [String(place)], templates) }))
    const given = (yield* mapped(own, (member) => (isGiven(member, acts) ? [member] : []))).flat()
    for (const { index } of given) into.of[index] = into.classes.length
    const said = given.filter(({ words }) => words === 'said')
    const isExact = (yield* mapped(said, (member) => isGiven({ ...member, words: 'exact' }, acts))).every(Boolean)
    const beside = saysBeside(first.acts) ? `${decision} ${keyOf(first, (name) => !templates.has(name) && !isReplyAt(first, name))}` : null
    into.classes.push({
      key: `${decision} ${key}`,
      acts,
      beside,
      unheard: own.some(({ unheard }) => unheard),
      unheardAlone: first.acts.every(({ kind }) => kind === 'reply') && own.every(({ words }) => words === 'none'),
      leaves: isLeft(own),
      terms: isExact ? {} : { any_words: true },
    })
  }
}

/** The reason against decisions that are rare since words tell them apart, or null. */
function reasonOfWords(members: readonly Member[], templates: Templates): string | null {
  const [first] = members
  if (!first || members.length < LEAST_DECISIONS) return null
  const valuesOf = (name: string): Json[] => members.map(({ flat }) => flat.get(name)?.value ?? null)
  const name = [...first.flat.keys()]
    .sort()
    .find((one) => !templates.has(one) && areWorded(valuesOf(one)) && new Set(valuesOf(one)).size >= LEAST_WORDINGS)
  if (name === undefined) return null
  if (isReplyAt(first, name)) return `nothing that was seen gives its words${saysBeside(first.acts) ? WORDS_COUNT : ''}`
  return `nothing that was seen gives its argument ${keyName(first, name)}${freeText(valuesOf(name))}`
}

/** The name of an argument in the key of a class, with the place of its act if it has several. */
function keyName(member: { acts: readonly unknown[] } | undefined, name: string): string {
  const [place, ...path] = JSON.parse(name) as string[]
  return JSON.stringify(member?.acts.length === 1 ? path : [place, ...path])
}

/** The value of an argument that its decisions do not share. */
const OPEN: Json = []

const plainOf = (template: ActionTemplate): Json =>
  'fields' in template
    ? Object.fromEntries(Object.entries(template.fields).map(([name, inner]) => [name, plainOf(inner)]))
    : 'constant' in template
      ? template.constant
      : OPEN

/** The key of a decision by these acts, of which `ending` says how they continue. */
export function keyOfActs(templates: readonly ActTemplate[], ending: string): string {
  const acts = templates.map(({ input, ...act }) => ({ ...act, input: plainOf(input) as JsonFields }))
  const flat: Flat = new Map()
  acts.forEach(({ input }, place) => flatten(input, [String(place)], flat))
  return `${groupOf(acts)}${ending} ${keyOf({ acts, flat }, (name) => flat.get(name)?.value !== OPEN)}`
}

/** A decision whose arguments its class does not give is another decision. */
export const isGiven = ({ acts, saw, words }: Pick<Member, 'acts' | 'saw' | 'words'>, templates: readonly ActTemplate[]): boolean =>
  templates.every(({ kind, input }, place) => {
    if (kind === 'reply' && words === 'said') return true
    const given = valueOf(input, withOutputs(saw, acts, place))
    return given !== undefined && canonicalJson(given) === canonicalJson(acts[place]?.input ?? {})
  })

/** The context before an act, with the outputs of the acts before it. */
const withOutputs = (saw: Saw, acts: readonly EpisodeAct[], place: number): Seen => ({
  ...saw,
  outputs: acts.slice(0, place).map(({ output }) => output as Json | undefined),
})

/**
 * The episodes as they were seen after their first acts; null where an output is not known. What
 * the log masks in one of them is known in none: that it is a secret would tell them apart.
 */
export function allReturned(episodes: readonly Episode[], count: number): (Episode | null)[] {
  const all = episodes.map(({ acts }) => acts.slice(0, count).map(({ output }) => output as Json | undefined))
  const masked = new Set(all.flatMap((outputs) => outputs.flatMap((output, place) => maskedIn(output, String(place)))))
  return episodes.map((episode, index) => {
    const outputs = all[index]?.map((output, place) => unmasked(output, masked, String(place))) ?? []
    // A sequence continues only after a failure of its last act before the branches.
    const isKnown = (output: Json | undefined, place: number): boolean => place === count - 1 || failureIn(output) === undefined
    const returned = outputs.filter(isKnown).filter((output) => output !== undefined)
    return returned.length < count ? null : { ...episode, saw: { ...episode.saw, returned } }
  })
}

/** The names that lead to masks. All items of a list have one name. */
function maskedIn(value: Json | undefined, path: string): string[] {
  const whole = wholeOf(value)
  if (Array.isArray(whole)) return whole.flatMap((item) => maskedIn(item, `${path}/*`))
  if (isJsonFields(whole)) return Object.entries(whole).flatMap(([name, inner]) => maskedIn(inner, `${path}/${name}`))
  return isMasked(whole) ? [path] : []
}

/** A value without what is masked. */
function unmasked(value: Json | undefined, masked: ReadonlySet<string>, path: string): Json | undefined {
  if (masked.has(path)) return undefined
  const whole = wholeOf(value)
  if (Array.isArray(whole)) return whole.map((item) => unmasked(item, masked, `${path}/*`) ?? null)
  if (!isJsonFields(whole)) return whole
  return Object.fromEntries(
    Object.entries(whole).flatMap(([name, inner]) => {
      const own = unmasked(inner, masked, `${path}/${name}`)
      return own === undefined ? [] : [[name, own]]
    }),
  )
}

/** The value of a template in a context; undefined if a slot finds nothing. */
export function valueOf(template: ActionTemplate, seen: Seen): Json | undefined {
  if ('constant' in template) return template.constant
  if ('slot' in template) return extract(template, seen)
  if ('output' in template) return outputAt(template, seen)
  if ('join' in template) {
    const parts = template.join.map((part) =>
      typeof part === 'string' ? part : 'output' in part ? outputAt(part, seen) : extract(part, seen),
    )
    return parts.includes(undefined) ? undefined : parts.join('')
  }
  const fields: Record<string, Json> = {}
  for (const [name, inner] of Object.entries(template.fields)) {
    const value = valueOf(inner, seen)
    if (value === undefined) return undefined
    fields[name] = value
  }
  return fields
}

const outputAt = ({ output, path }: OutputSlot, { outputs }: Seen): string | number | undefined => {
  const value = partOf(outputs[output], path)
  return typeof value === 'string' || typeof value === 'number' ? value : undefined
}

function fill(value: Json, path: ContextPath, templates: ReadonlyMap<string, ActionTemplate>): ActionTemplate {
  if (isJsonFields(value)) {
    return { fields: Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fill(inner, [...path, name], templates)])) }
  }
  return templates.get(JSON.stringify(path)) ?? { constant: value }
}

type Example = { saw: Seen; value: string | number }

function valuesAt(members: readonly Member[], name: string): Example[] {
  const place = placeOf(name)
  return members.flatMap(({ saw, acts, flat }): Example[] => {
    const value = flat.get(name)?.value
    return typeof value === 'string' || typeof value === 'number' ? [{ saw: withOutputs(saw, acts, place), value }] : []
  })
}

/** The template that gives an argument; null if nothing gives it. */
function* templateFor(members: readonly Member[], name: string): Steps<ActionTemplate | null> {
  const examples = valuesAt(members, name)
  if (examples.length < members.length) return null
  if (examples.every(({ value }) => value === examples[0]?.value)) return { constant: examples[0]?.value ?? null }
  const isReply = isReplyAt(members[0], name)
  return (
    (yield* slotOf(examples)) ??
    (yield* outputSlotOf(examples, { asText: isReply })) ??
    (yield* joined(examples, { isReply, between: BETWEEN_WORDS })) ??
    (yield* composed(examples)) ??
    (yield* joined(examples, { isReply, between: BETWEEN_NAMES }))
  )
}

/** The words that most senders heard, of those that can be said again. */
function* likeliestWords(members: readonly Member[], name: string): Steps<ActionTemplate | null> {
  const texts = textsAt(members, name)
  const compare = mostHeard(members.map(({ source }) => source))
  const likeliest = yield* likeliestOf(texts, { least: LEAST_DECISIONS, saidBy: saidBy(members, name), compare })
  if (likeliest) return yield* templateFor(membersAt(members, likeliest.own), name)
  const same = [...Map.groupBy(texts.keys(), (place) => texts[place]).values()].filter(({ length }) => length >= LEAST_SAID)
  const [text] = textsAt(membersAt(members, same.sort(compare)[0] ?? []), name)
  return text === undefined ? null : { constant: text }
}
/** A text that was said so often is about no one event. */
const LEAST_SAID = 3

/**
 * The kinds of words beside other acts, which may depend on what these returned. Of words alone the
 * most frequent ones: some answers are always given in the same words, and others freely.
 */
function* wordingsAt(members: readonly Member[], name: string): Steps<Wording[]> {
  const wanted = { least: LEAST_DECISIONS, saidBy: saidBy(members, name) }
  const texts = textsAt(members, name)
  if (texts.some(isMask)) return []
  if (placeOf(name) > 0) return yield* wordingsOf(texts, wanted)
  return members[0]?.acts.length === 1 ? yield* frequentOf(texts, wanted) : []
}

const saidBy = (members: readonly Member[], name: string) =>
  function* (own: readonly number[]): Steps<string | null> {
    const template = yield* templateFor(membersAt(members, own), name)
    return template && nameOfWords(template)
  }

/** The words without what slots give. */
function nameOfWords(template: ActionTemplate): string {
  if ('constant' in template) return canonicalJson(template.constant)
  return 'join' in template ? template.join.map((part) => (typeof part === 'string' ? part : GAP)).join('') : GAP
}

const membersAt = (members: readonly Member[], places: readonly number[]): Member[] => places.flatMap((place) => members[place] ?? [])

const textsAt = (members: readonly Member[], name: string): string[] =>
  members.map(({ flat }) => {
    const said = flat.get(name)?.value
    return typeof said === 'string' ? said : ''
  })

const BETWEEN_WORDS = /([\s,.;:!?()]+)/
/** The event may say a part of a name: of `web-team`, in `acme/web`. */
const BETWEEN_NAMES = /([^\p{L}\p{N}]+)/u

/** A text whose parts are constant or slots. Only a reply may have outputs among them. */
function* joined(examples: readonly Example[], { isReply, between }: { isReply: boolean; between: RegExp }): Steps<ActionTemplate | null> {
  const texts = examples.flatMap(({ saw, value }) => (typeof value === 'string' ? [{ saw, parts: value.split(between) }] : []))
  const length = texts[0]?.parts.length ?? 0
  if (length < 2 || texts.length < examples.length || texts.some(({ parts }) => parts.length !== length)) return null
  const join: (string | ReplySlot | OutputSlot)[] = []
  for (let at = 0; at < length; at += 1) {
    yield
    const values = texts.map(({ saw, parts }) => ({ saw, value: parts[at] ?? '' }))
    const isConstant = values.every(({ value }) => value === values[0]?.value)
    const part = isConstant
      ? (values[0]?.value ?? '')
      : ((yield* slotOf(values)) ?? (isReply ? yield* outputSlotOf(values, { asText: true }) : null))
    if (part === null) return null
    join.push(part)
  }
  return { join }
}

/** A text of whole values of the event, with the same constant parts between them. */
function* composed(examples: readonly Example[]): Steps<ActionTemplate | null> {
  for (const join of composedFrom(examples)) {
    if (yield* isGivenBy(examples, { join })) return { join }
  }
  return null
}

/** True if a template gives almost all of the values, and few wrongly. */
function* isGivenBy(
  examples: readonly Example[],
  template: ActionTemplate,
  isSame = (value: string | number, got: Json): boolean => got === value,
): Steps<boolean> {
  const given = yield* mapped(examples, ({ saw, value }) => ({ value, got: valueOf(template, saw) }))
  const found = given.flatMap(({ value, got }) => (got === undefined ? [] : [isSame(value, got)]))
  const right = found.filter(Boolean).length
  return right >= examples.length * FOUND && found.length - right <= examples.length * WRONG
}

/** The place in an earlier output that gives these values. `asText`: a number may become a text. */
function* outputSlotOf(examples: readonly Example[], { asText }: { asText: boolean }): Steps<OutputSlot | null> {
  const found = new Map<string, OutputSlot>()
  const isSame = (value: string | number, got: Json) => got === value || (asText && typeof got === 'number' && String(got) === value)
  for (const { saw, value } of examples.slice(0, LEAST_DECISIONS))
    saw.outputs.forEach((output, place) => {
      for (const path of pathsIn(output, (leaf) => isSame(value, leaf))) found.set(JSON.stringify([place, path]), { output: place, path })
    })
  for (const slot of found.values()) {
    if (yield* isGivenBy(examples, slot, isSame)) return slot
  }
  return null
}

const MOST_DEPTH = 6

/** The paths to the leaves that fit. A mask says nothing about what it hides. */
function pathsIn(output: Json | undefined, fits: (leaf: Json) => boolean, path: ContextPath = []): ContextPath[] {
  if (typeof output === 'number' || (typeof output === 'string' && fits(output))) return fits(output) && !isMask(output) ? [path] : []
  if (typeof output === 'string') return pathsIn(jsonIn(output), fits, path)
  if (typeof output !== 'object' || output === null || path.length >= MOST_DEPTH) return []
  return Object.entries(output).flatMap(([name, inner]) => pathsIn(inner, fits, [...path, name]))
}
