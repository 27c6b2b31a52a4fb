import { fnv1a } from '../../../base/fnv1a.ts'
import { actName } from '../../../contract/act-name.ts'
import type { Episode } from '../episode.ts'
import { and, bitsOf, count, indexesOf, without } from './facts/bits.ts'
import type { DecisionClass, ActTemplate, OutputSlot, ActionTemplate } from './classes.ts'
import type { HeldOut, PreparedEpisodes } from './judge.ts'
import { fieldSpansOf, textSpansIn, type FieldSpan, type NumberRange, type TextSpans } from './facts/ranges.ts'
import { coveredBy, type Rule } from './rules.ts'
import { looksAt, packed, type TableScorer } from './scorer/fit.ts'
import { readingSources, SUM_PLACES } from './facts/readings.ts'
import { quote, LONGEST_TEXT, WORDS_SOURCE } from './facts/text.ts'
import {
  type Condition,
  conditionCode,
  DIFFERENCE_SOURCE,
  HAS_SOURCE,
  type Literal,
  pathCode,
  pathKey,
  REPEATS,
} from './facts/condition.ts'
import { counted } from '../../../base/amounts.ts'
import type { Steps } from '../../../base/steps.ts'
import { withWeights } from '../../../reflexes/weights.ts'
import { REPEATS_SOURCE } from './facts/repeats.ts'
import { NUMBERS_SOURCE } from '../../../evidence/numbers.ts'
import { type Extractor, type ReplySlot, ROUNDED_SOURCE, type Taken, takenOf, TIDIED_SOURCE } from './slots.ts'
import { fieldsCode, guardCode, guardsOf, HAS_OTHER_SOURCE, listCode, type RuleGuard, typesOf, valueCode } from './guards.ts'
import { titleFor } from './title.ts'

/** A rule as a person reads it: examples are events as JSON. */
type ShownRule = { literals: readonly Literal[]; support: number; exceptions: number; examples: readonly string[] }
type RuleProgram = {
  title: readonly string[]
  guards: readonly RuleGuard[]
  fields: readonly FieldSpan[]
  /** The numbers in the texts that the conditions ask about. */
  spansIn: (paths: Iterable<readonly string[]>) => Steps<TextSpans[]>
  acts: readonly ActTemplate[]
  taken: SlotsTaken
  leaves: boolean
  rules: readonly ShownRule[]
}

/** Slots without one take any value. */
type SlotsTaken = ReadonlyMap<ReplySlot, Taken>

function* slotsTaken(acts: readonly ActTemplate[], episodes: readonly Episode[]): Steps<SlotsTaken> {
  const found = new Map<ReplySlot, Taken>()
  const saws = episodes.map(({ saw }) => saw)
  for (const slot of slotsOf(acts)) {
    const taken = yield* takenOf(slot, saws)
    if (taken) found.set(slot, taken)
  }
  return found
}

const takenCode = (value: string, taken: Taken): string =>
  'words' in taken ? `${listCode(taken.words)}.includes(${value})` : `(${value} >= ${taken.range[0]} && ${value} <= ${taken.range[1]})`

const WIDTH = 110
const LONGEST_EXAMPLE = 140

/** JavaScript for the sandbox. All text from events is quoted, in comments too. */
function* codeOf({ title, guards, fields, spansIn, acts, taken, leaves, rules: taught }: RuleProgram): Steps<string> {
  const rules = taught.map((rule) => ({ ...rule, literals: needed(rule.literals, guards, fields) }))
  const conditions = rules.flatMap(({ literals }) => literals.map(({ condition }) => condition))
  const paths = new Map(
    conditions.flatMap((condition) =>
      condition.is === 'says' || condition.is === 'begins' ? [[pathKey(condition.path), condition.path] as const] : [],
    ),
  )
  const texts = new Map([...paths.keys()].sort().map((key, index) => [key, `text${index === 0 ? '' : index + 1}`]))
  const spans = yield* spansIn(paths.values())
  const isOfWindow = (condition: Condition): boolean => 'path' in condition && condition.path[0] === 'window'
  const body = [
    ...guards.filter((guard) => guard === 'unheard' || 'values' in guard || conditions.some(isOfWindow)).map(guardCode),
    ...fields.map(fieldCode),
    ...rulesCode(rules, texts, paths),
  ]
  const own = actCode({ acts, taken, leaves, spans, fields: [], guards: [] })
  return joined([
    title.map((line) => `// ${line}`).join('\n'),
    `function reflex(context) {\n${body.map((line) => `  ${line}`).join('\n')}\n}`,
    own,
    texts.size > 0 ? WORDS_SOURCE : '',
    ...helpersOf([{ acts, spans }]),
    conditions.some((condition) => 'path' in condition && condition.path[0] === REPEATS) ? REPEATS_SOURCE : '',
    conditions.some(({ is }) => is === 'contains') ? HAS_SOURCE : '',
    conditions.some((condition) => 'minus' in condition) ? DIFFERENCE_SOURCE : '',
  ])
}

function joined(parts: readonly string[]): string {
  const code = parts.filter((part) => part !== '').join('\n\n')
  const others = code.includes('hasOther(') ? [HAS_OTHER_SOURCE] : []
  return `${[code, ...others, ...readingSources(code)].join('\n\n')}\n`
}

/** Functions that acts call. */
const helpersOf = (all: readonly { acts: readonly ActTemplate[]; spans: readonly TextSpans[] }[]): string[] => [
  all.some(({ spans }) => spans.length > 0) ? `${UNSEEN_SOURCE}\n\n${NUMBERS_SOURCE}` : '',
  hasSlot(all, ({ pattern }) => pattern !== null) ? PART_SOURCE : '',
  hasSlot(all, ({ scaled, by }) => (scaled ?? by) !== undefined) ? ROUNDED_SOURCE : '',
  hasSlot(all, ({ tidy }) => tidy !== undefined) ? TIDIED_SOURCE : '',
]

const hasSlot = (all: readonly { acts: readonly ActTemplate[] }[], is: (extractor: Extractor) => boolean): boolean =>
  all.some(({ acts }) => slotsOf(acts).some(({ slot }) => slot.some(is)))

/** A decision of a table. `lead`: the points by which it must be ahead. */
type CodeDecision = Acting & { own: number; lead: number; title: string; examples: readonly string[] }
type Acting = Pick<DecisionClass, 'acts' | 'leaves'> & {
  spans: readonly TextSpans[]
  fields: readonly FieldSpan[]
  guards: readonly RuleGuard[]
  taken: SlotsTaken
}
type ScorerProgram = {
  title: readonly string[]
  guards: readonly RuleGuard[]
  fields: readonly FieldSpan[]
  decisions: readonly CodeDecision[]
  classes: number
  /** The function `tablePoints(context)`, and what it calls. */
  source: string
}

/** JavaScript that takes the decision with the most points, if it leads by enough. */
function scorerCodeOf({ title, guards, fields, decisions, classes, source }: ScorerProgram): string {
  const body = [
    ...guards.filter((guard) => guard !== 'unheard' && 'values' in guard).map(guardCode),
    ...fields.map(fieldCode),
    'const points = tablePoints(context)',
    'if (points === null) return null',
    'let best = 0',
    'for (let own = 1; own < points.length; own += 1) if (points[own] > points[best]) best = own',
    'const others = points.filter((_, own) => own !== best)',
    'const decision = DECISIONS[best]',
    'return decision && points[best] - Math.max(...others) >= decision.lead ? decision.act(context) : null',
  ]
  const listed = Array.from({ length: classes }, (_, own) => {
    const decision = decisions.find((one) => one.own === own)
    return decision ? `  { lead: ${decision.lead}, act: act${own} },` : '  null,'
  })
  return joined([
    title.map((line) => `// ${line}`).join('\n'),
    `function reflex(context) {\n${body.map((line) => `  ${line}`).join('\n')}\n}`,
    `// The decisions that have points; \`lead\`: how many more than all others. null: it is left to the slow path.\nconst DECISIONS = [\n${listed.join('\n')}\n]`,
    ...decisions.map((decision) => {
      const lines = [`// ${decision.title}`, ...exampleLines(decision.examples)]
      return `${lines.join('\n')}\n${actCode(decision, `act${decision.own}`)}`
    }),
    ...helpersOf(decisions),
    source,
  ])
}

export const PART_SOURCE = `// The value that the pattern finds; undefined if it finds nothing, or several values.
function part(text, pattern) {
  let only
  for (const [, found] of (typeof text === 'string' ? text.slice(0, ${LONGEST_TEXT}) : '').matchAll(pattern)) {
    if (only !== undefined && found !== only) return undefined
    only = found
  }
  return only
}`
const UNSEEN_SOURCE = `// True if the text has a number that was not seen: by the word before it, else as all others. null: any; undefined: none.
function hasUnseen(text, seen, others) {
  return numbersIn(text).some(({ place, value }) => {
    const span = Object.hasOwn(seen, place) ? seen[place] : others
    return span === undefined || (span !== null && (value < span[0] || value > span[1]))
  })
}`

/** The conditions that the guards before them leave open; one at least, as a rule has. */
function needed(literals: readonly Literal[], guards: readonly RuleGuard[], fields: readonly FieldSpan[]): readonly Literal[] {
  const open = literals.filter(
    (literal) => !guards.some((guard) => isGuarded(literal, guard)) && !fields.some((field) => isSpanned(literal, field)),
  )
  return open.length > 0 ? open : literals.slice(0, 1)
}

function isGuarded({ condition, holds }: Literal, guard: RuleGuard): boolean {
  if (guard === 'unheard' || !('values' in guard) || 'of' in guard || !('path' in condition)) return false
  if (pathKey(condition.path) !== pathKey(guard.path)) return false
  // All words of a text that is one value are known.
  if (condition.is === 'says' || condition.is === 'begins') return guard.values.length === 1
  if (condition.is !== 'equal') return false
  const isOne = guard.values.some((value) => value === condition.value)
  return holds ? isOne && guard.values.length === 1 : !isOne
}

function isSpanned({ condition, holds }: Literal, { path, span: [low, high] }: FieldSpan): boolean {
  if (condition.is !== 'at_least' || condition.minus || pathKey(condition.path) !== pathKey(path)) return false
  return holds ? condition.value <= low : condition.value > high
}

/** The guard of a number: a text that reads as one does not pass. */
const fieldCode = ({ path, span: [low, high] }: FieldSpan): string =>
  `if (!(typeof ${pathCode(path)} === 'number' && ${pathCode(path)} >= ${low} && ${pathCode(path)} <= ${high})) return null`

/** A number that was not taught leaves the event to others. */
function spansCode({ path, at, others }: TextSpans): string {
  const seen = fieldsCode(at.map(([place, accepted]) => [place, spanCode(accepted)]))
  return `if (hasUnseen(${pathCode(path)}, ${seen}, ${others === 'none' ? 'undefined' : spanCode(others)})) return null`
}

const spanCode = (span: NumberRange | 'any'): string => (span === 'any' ? 'null' : `[${span[0]}, ${span[1]}]`)

type Paths = ReadonlyMap<string, readonly string[]>

function rulesCode(rules: readonly ShownRule[], texts: ReadonlyMap<string, string>, paths: Paths): string[] {
  const follows = rules.some(({ literals }) => literals.some(({ condition }) => condition.is === 'follows'))
  return [
    ...[...texts].map(([key, name]) => `const ${name} = \` \${wordsOf(${pathCode(paths.get(key) ?? [])}).join(' ')} \``),
    ...(follows ? [TYPES_CODE] : []),
    ...rules.flatMap(({ literals, support, exceptions, examples }) => [
      `// ${support} decisions as here, ${exceptions} otherwise. For example:`,
      ...exampleLines(examples),
      ...ifCode(literals.map((literal) => conditionCode(literal, texts))),
    ]),
    'return null',
  ]
}

const TYPES_CODE = "const types = ` ^ ${context.recent_events.map((event) => event.type).join(' ')} `"

function ifCode(conditions: readonly string[]): string[] {
  const line = `if (${conditions.join(' && ')}) return act(context)`
  return line.length <= WIDTH
    ? [line]
    : [
        `if (`,
        ...conditions.map((condition, index) => `  ${condition}${index + 1 < conditions.length ? ' &&' : ''}`),
        ') return act(context)',
      ]
}

export const exampleLines = (examples: readonly string[]): string[] =>
  examples.map((example) => `//   ${quote(example.length > LONGEST_EXAMPLE ? `${example.slice(0, LONGEST_EXAMPLE)}…` : example)}`)

function actCode({ acts, taken, leaves, spans, fields, guards }: Acting, name = 'act'): string {
  const slots = slotsOf(acts)
  const names = new Map(slots.map((slot, index) => [slot, `value${index === 0 ? '' : index + 1}`]))
  const missing = [...names.values()].map((value) => `${value} === undefined`)
  return [
    `function ${name}(context) {`,
    ...[...guards.map(guardCode), ...fields.map(fieldCode), ...spans.map(spansCode)].map((line) => `  ${line}`),
    ...[...names].map(([{ slot }, value]) => `  const ${value} = ${slot.map(extractorCode).join(' ??\n    ')}`),
    ...(missing.length > 0 ? [`  if (${missing.join(' || ')}) return null`] : []),
    ...Array.from(taken, ([slot, one]) => `  if (!${takenCode(names.get(slot) ?? '', one)}) return null`),
    `  return ${decisionCode({ acts, leaves }, names)}`,
    '}',
  ].join('\n')
}

/** Parts of texts are text until they are used: `Number(undefined)` is a number. */
export function extractorCode({ path, pattern, as, plus, scaled, by, written, tidy }: Extractor): string {
  const field = tidy === undefined ? pathCode(path) : `tidied(${pathCode(path)}, ${quote(tidy)})`
  if (scaled) return `(typeof ${field} === 'number' ? roundedTo(${scaledCode(field, scaled)}, ${scaled.places}) : undefined)`
  if (by) return combinedCode(field, by)
  if (pattern !== null) return `part(${field}, /${pattern}/g)`
  if (written)
    return `(typeof ${field} === 'number' ? ${written === true ? `String(${field})` : `${field}.toFixed(${written})`} : undefined)`
  return `(typeof ${field} === '${as}' ? ${plus === undefined ? field : shiftedCode(field, plus)} : undefined)`
}

const scaledCode = (field: string, { times, over }: NonNullable<Extractor['scaled']>): string =>
  over === 1 ? `${field} * ${times}` : `${field} / ${over}`

function combinedCode(field: string, { path, does, places }: NonNullable<Extractor['by']>): string {
  const other = pathCode(path)
  const sign = { minus: '-', plus: '+', times: '*' }[does]
  return `(typeof ${field} === 'number' && typeof ${other} === 'number' ? roundedTo(${field} ${sign} ${other}, ${places}) : undefined)`
}

const shiftedCode = (field: string, plus: number): string =>
  `Number((${field} ${plus < 0 ? '-' : '+'} ${Math.abs(plus)}).toFixed(${SUM_PLACES}))`

type SlotNames = ReadonlyMap<ReplySlot, string>

function decisionCode({ acts, leaves }: Pick<Acting, 'acts' | 'leaves'>, names: SlotNames): string {
  const [first, ...others] = acts
  // An event leaves the context as it does after a turn: later turns would do its acts again.
  // A reply answers its event.
  const consume = leaves || acts.some(({ kind }) => kind === 'reply') ? ', consume: true' : ''
  if (!first) return `{ action_type: 'ignore', reason: 'such events were left alone'${consume} }`
  if (others.length === 0) return `{ ${actionCode(first, names)}${consume} }`
  const lines = acts.map((act) => `    { ${actionCode(act, names)} },`)
  return [`{ action_type: 'sequence', acts: [`, ...lines, `  ]${consume} }`].join('\n')
}

// oxlint-disable-next-line typescript/consistent-return -- the switch is exhaustive
function actionCode(act: ActTemplate, names: SlotNames): string {
  if (act.kind === 'reply') return replyCode(act.input, names)
  const input = templateCode(act.input, names)
  switch (act.kind) {
    case 'tool':
      return `action_type: 'call_tool', tool: ${quote(act.name)}, args: ${input}${usesCode('args', act.input)}`
    case 'skill':
      return `action_type: 'run_skill', skill_id: ${quote(act.name)}, inputs: ${input}${usesCode('inputs', act.input)}`
    case 'emit':
      return `action_type: 'emit_event', event: { ...${input}, type: ${quote(act.name)} }${usesCode('event', act.input)}`
    case 'note':
      return `action_type: 'set_scratch', key: ${quote(act.name)}, ...${input}${usesCode('', act.input)}`
  }
}

/** Words with outputs among them are parts, so that nothing in a text stands for an output. */
function replyCode(input: ActionTemplate, names: SlotNames): string {
  const content = 'fields' in input ? input.fields['content'] : undefined
  const parts = content && ('join' in content ? content.join : 'output' in content ? [content] : [])
  if (!parts?.some((part) => typeof part !== 'string' && 'output' in part)) return `action_type: 'reply', ...${templateCode(input, names)}`
  const texts: string[] = []
  const said: string[] = []
  const flush = () => {
    if (texts.length > 0) said.push(texts.splice(0).join(' + '))
  }
  for (const part of parts) {
    if (typeof part === 'string' || !('output' in part))
      texts.push(templateCode(typeof part === 'string' ? { constant: part } : part, names))
    else {
      flush()
      said.push(`{ ${outputCode(part)} }`)
    }
  }
  flush()
  return `action_type: 'reply', parts: [${said.join(', ')}]`
}

const pointer = (path: readonly string[]): string => path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
const outputCode = ({ output, path }: OutputSlot): string => `output: ${output}, path: ${quote(pointer(path))}`

/** The arguments that are outputs, by their places. */
function usesCode(root: string, input: ActionTemplate): string {
  const found: string[] = []
  const visit = (template: ActionTemplate, path: readonly string[]): void => {
    if ('output' in template) found.push(`{ at: ${quote(pointer(path))}, ${outputCode(template)} }`)
    else if ('fields' in template) for (const [name, inner] of Object.entries(template.fields)) visit(inner, [...path, name])
  }
  visit(input, root === '' ? [] : [root])
  return found.length === 0 ? '' : `, uses: [${found.join(', ')}]`
}

function templateCode(template: ActionTemplate, names: SlotNames): string {
  if ('constant' in template) return valueCode(template.constant)
  if ('slot' in template) {
    const name = names.get(template) ?? 'undefined'
    return template.slot.some(({ as }) => as === 'number') ? `Number(${name})` : name
  }
  // Its place is filled when the act is done.
  if ('output' in template) return 'null'
  if ('join' in template)
    return template.join.map((part) => templateCode(typeof part === 'string' ? { constant: part } : part, names)).join(' + ')
  return fieldsCode(Object.entries(template.fields).map(([name, inner]) => [name, templateCode(inner, names)]))
}

function slotsOf(acts: readonly ActTemplate[]): ReplySlot[] {
  const found: ReplySlot[] = []
  const visit = (template: ActionTemplate): void => {
    if ('slot' in template) found.push(template)
    else if ('join' in template)
      found.push(...template.join.filter((part): part is ReplySlot => typeof part !== 'string' && 'slot' in part))
    else if ('fields' in template) for (const inner of Object.values(template.fields)) visit(inner)
  }
  for (const { input } of acts) visit(input)
  return found
}

export type LearnedReflex = {
  id: string
  /** For people. */
  title: string
  /** Names what it decides. */
  decision: string
  /** The decisions that it takes, as refusals name them. */
  decisions: readonly string[]
  by: 'rules' | 'table'
  acts: DecisionClass['acts']
  /** The names of its decisions, as certificates prove them, whose foreseen comparisons count. */
  names: readonly string[]
  code: string
  /** `taught`: indexes of its episodes. `exceptions`: others that its rules cover. */
  evidence: { episodes: number; taught: readonly number[]; exceptions: number; held_out: HeldOut }
}

type Base = { episodes: readonly Episode[]; prepared: PreparedEpisodes; own: number; decision: DecisionClass; held_out: HeldOut }

export function* rulesReflex(base: Base, rules: readonly Rule[]): Steps<LearnedReflex | null> {
  if (rules.length === 0) return null
  const positive = ownOf(base)
  const shown = rules.map(({ literals, covered, support, exceptions }): ShownRule => {
    return { literals, support, exceptions, examples: examplesOf(base.episodes, indexesOf(and(covered, positive))) }
  })
  const wrong = without(coveredBy(rules, base.episodes.length), positive)
  return yield* reflexOf(base, 'rules', shown, count(wrong))
}

const ownOf = ({ prepared: { matrix, classes }, own }: Pick<Base, 'prepared' | 'own'>) =>
  bitsOf(matrix.size, (index) => classes.of[index] === own)

/** Tells the numbers that conditions of the rules ask about. */
function isAskedIn(rules: readonly ShownRule[]): (path: readonly string[]) => boolean {
  const paths = rules.flatMap(({ literals }) =>
    literals.flatMap(({ condition }) =>
      condition.is === 'at_least' ? [condition.path, ...(condition.minus ? [condition.minus] : [])] : [],
    ),
  )
  const asked = new Set(paths.map(pathKey))
  return (path) => asked.has(pathKey(path))
}

function* reflexOf(base: Base, by: LearnedReflex['by'], rules: readonly ShownRule[], exceptions: number): Steps<LearnedReflex> {
  const { episodes, decision, held_out } = base
  const indexes = indexesOf(ownOf(base))
  const taught = indexes.map((index) => episodes[index] as Episode)
  yield
  const code = yield* codeOf({
    title: [...titleOf(base), `Its decision: ${quote(decision.key)}.`],
    guards: [...(decision.unheard ? (['unheard'] as const) : []), ...guardsOf(taught, episodes)],
    fields: yield* fieldSpansOf(taught, isAskedIn(rules)),
    spansIn: (paths) => textSpansIn(taught, paths),
    acts: decision.acts,
    taken: yield* slotsTaken(decision.acts, taught),
    leaves: decision.leaves,
    rules,
  })
  const evidence = { episodes: taught.length, taught: indexes, exceptions, held_out }
  const { key, acts } = decision
  return { id: idOf(key), title: titleFor(acts, rules), decision: key, decisions: [key], acts, names: [actName(acts)], by, code, evidence }
}

/** `held_out`, `leads`: by class. A class without a lead decides nothing. */
type TableBase = Pick<Base, 'episodes' | 'prepared'> & { held_out: readonly HeldOut[] }
type Leading = { scorer: TableScorer; leads: readonly (number | null)[] }

/** A reflex for all decisions, which takes the decision that leads by enough points. */
export function* scorerReflex({ episodes, prepared, held_out }: TableBase, { scorer, leads }: Leading): Steps<LearnedReflex> {
  const { classes, of } = prepared.classes
  const taken = classes.flatMap((decision, own) => (leads[own] == null ? [] : [{ decision, own, lead: leads[own] }]))
  const indexes = episodes.flatMap((_, index) => (leads[of[index] ?? -1] == null ? [] : [index]))
  const taught = indexes.map((index) => episodes[index] as Episode)
  const asked = looksAt(scorer, { saws: taught.map(({ saw }) => saw), names: classes.map(({ key }) => key) })
  const decisions: CodeDecision[] = []
  for (const { decision, own, lead } of taken) {
    yield
    const mine = indexesOf(ownOf({ prepared, own }))
    const members = mine.map((index) => episodes[index] as Episode)
    decisions.push({
      own,
      lead,
      title: `${quote(decision.key)}: ${mine.length} decisions. For example:`,
      examples: examplesOf(episodes, mine),
      guards: [...(decision.unheard ? (['unheard'] as const) : []), typesOf(members)],
      acts: decision.acts,
      taken: yield* slotsTaken(decision.acts, members),
      leaves: decision.leaves,
      spans: yield* textSpansIn(members, asked.texts),
      fields: yield* fieldSpansOf(members, asked.isNumber, (path) => !asked.isNumber(path)),
    })
  }
  yield
  const total = sumOf(held_out)
  const { source, weights } = packed(scorer)
  const code = scorerCodeOf({
    title: [...titleOf({ episodes, held_out: total }, 'table'), ...asked.described],
    guards: guardsOf(taught, episodes),
    fields: yield* fieldSpansOf(taught, asked.isNumber, asked.isNumber),
    decisions,
    classes: classes.length,
    source,
  })
  const acts = taken.flatMap(({ decision }) => decision.acts)
  const evidence = { episodes: taught.length, taught: indexes, exceptions: 0, held_out: total }
  const keys = taken.map(({ decision: { key } }) => key)
  return {
    id: TABLE_ID,
    title:
      `One table for ${counted(keys.length, 'decision')}: ${taken.map(({ decision }) => titleFor(decision.acts, [])).join('; ')}`.slice(
        0,
        MOST_TITLE,
      ),
    decision: `table of ${keys.length}: ${keys.join(', ')}`,
    decisions: keys,
    acts,
    names: Array.from(new Set(taken.map(({ decision }) => actName(decision.acts)))),
    by: 'table',
    code: withWeights(code, weights),
    evidence,
  }
}

const MOST_TITLE = 160

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

/** A short name of a decision, which may be long. */
export const decisionId = (key: string): string => fnv1a(key).toString(16).padStart(8, '0')

/** The hash is of the whole decision, of which the words are a part. */
function idOf(key: string): string {
  const words = key
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 60)
  return `learned.${words}.${decisionId(key)}`
}
