import { fnv1a } from '../../../base/fnv1a.ts'
import type { Episode } from '../episode.ts'
import { and, bitsOf, count, indexesOf, without } from './facts/bits.ts'
import { actsOfClass, type DecisionClass, type ActTemplate, type LearnedBranch, nameOf } from './classes.ts'
import { type Acting, actCode, type CodeBranch, exampleLines, fieldCode, slotsOf, slotsTaken } from './act-code.ts'
import { branchTests, failureSeen } from './branch-tests.ts'
import type { HeldOut, PreparedEpisodes } from './judge.ts'
import { fieldSpansOf, textSpansIn, type FieldSpan, type TextSpans } from './facts/ranges.ts'
import { coveredBy, needsNames, type Rule } from './rules.ts'
import { looksAt, packed, type TableScorer } from './scorer/fit.ts'
import { readingSources } from './facts/readings.ts'
import { LONGEST_TEXT } from '../../../base/words-of.ts'
import { quote, WORDS_SOURCE } from './facts/text.ts'
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
import { type Extractor, ROUNDED_SOURCE, TIDIED_SOURCE } from './slots.ts'
import { guardCode, guardsOf, HAS_OTHER_SOURCE, LEAST_EACH, nameGuardsOf, type RuleGuard, typesOf } from './guards.ts'
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
  taken: Acting['taken']
  leaves: boolean
  terms: Acting['terms']
  branches: readonly CodeBranch[]
  rules: readonly ShownRule[]
}

const WIDTH = 110

/** JavaScript for the sandbox. All text from events is quoted, in comments too. */
function* codeOf({ title, guards, fields, spansIn, acts, taken, leaves, terms, branches, rules: taught }: RuleProgram): Steps<string> {
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
  const isOfNames = taught.some(({ literals }) => needsNames(literals))
  const isAsked = (guard: RuleGuard): boolean =>
    guard === 'unheard' || 'values' in guard || ('words' in guard ? isOfNames : conditions.some(isOfWindow))
  const body = [...guards.filter(isAsked).map(guardCode), ...fields.map(fieldCode), ...rulesCode(rules, texts, paths)]
  const own = actCode({ acts, taken, leaves, terms, branches, spans, fields: [], guards: [] })
  return joined([
    title.map((line) => `// ${line}`).join('\n'),
    `function reflex(context) {\n${body.map((line) => `  ${line}`).join('\n')}\n}`,
    own,
    body.some((line) => line.includes('wordsOf(')) ? WORDS_SOURCE : '',
    ...helpersOf([{ acts, spans, branches }]),
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
const helpersOf = (programs: readonly Pick<Acting, 'acts' | 'spans' | 'branches'>[]): string[] => {
  const all = programs.flatMap(({ acts, branches }) => [acts, ...branches.map((branch) => branch.acts)])
  return [
    programs.some(({ spans }) => spans.length > 0) ? `${UNSEEN_SOURCE}\n\n${NUMBERS_SOURCE}` : '',
    hasSlot(all, ({ pattern }) => pattern !== null) ? PART_SOURCE : '',
    hasSlot(all, ({ scaled, by }) => (scaled ?? by) !== undefined) ? ROUNDED_SOURCE : '',
    hasSlot(all, ({ tidy }) => tidy !== undefined) ? TIDIED_SOURCE : '',
  ]
}

const hasSlot = (all: readonly (readonly ActTemplate[])[], is: (extractor: Extractor) => boolean): boolean =>
  all.some((acts) => slotsOf(acts).some(({ slot }) => slot.some(is)))

/** A decision of a table. `lead`: the points by which it must be ahead. */
type CodeDecision = Acting & { own: number; lead: number; title: string; examples: readonly string[] }
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
  if (condition.is === 'one_of') return guard.values.every((value) => typeof value === 'string' && condition.values.includes(value))
  if (condition.is !== 'equal') return false
  const isOne = guard.values.some((value) => value === condition.value)
  return holds ? isOne && guard.values.length === 1 : !isOne
}

function isSpanned({ condition, holds }: Literal, { path, span: [low, high], optional }: FieldSpan): boolean {
  if (optional || condition.is !== 'at_least' || condition.minus || pathKey(condition.path) !== pathKey(path)) return false
  return holds ? condition.value <= low : condition.value > high
}

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

export type LearnedReflex = {
  id: string
  /** For people. */
  title: string
  /** Names what it decides. */
  decision: string
  /** The decisions that it takes, as refusals name them. */
  decisions: readonly string[]
  by: 'rules' | 'table'
  /** All of them, in any branch. */
  acts: DecisionClass['acts']
  /** Rules of a decision that has branches. */
  branches?: true
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
  const guards = guardsOf(taught, episodes)
  const names = nameGuardsOf(base.prepared.matrix.names, guards)
  const code = yield* codeOf({
    title: [...titleOf(base), `Its decision: ${quote(decision.key)}.`],
    guards: [...(decision.unheard ? (['unheard'] as const) : []), ...guards, ...names],
    fields: yield* fieldSpansOf(taught, isAskedIn(rules)),
    spansIn: (paths) => textSpansIn(taught, paths),
    acts: decision.acts,
    taken: yield* slotsTaken(decision.acts, taught),
    leaves: decision.leaves,
    terms: decision.terms,
    branches: yield* codeBranchesOf(decision, episodes),
    rules,
  })
  const evidence = { episodes: taught.length, taught: indexes, exceptions, held_out }
  const { key } = decision
  const acts = actsOfClass(decision)
  return {
    id: idOf(key),
    title: titleFor(decision, rules),
    decision: key,
    decisions: [key],
    acts,
    names: [nameOf(decision)],
    ...(decision.branches && { branches: true }),
    by,
    code,
    evidence,
  }
}

function* codeBranchesOf({ branches = [] }: DecisionClass, episodes: readonly Episode[]): Steps<CodeBranch[]> {
  const found: CodeBranch[] = []
  for (const { decision, rules, own, seen } of branches) {
    yield
    const members = own.map((index) => episodes[index] as Episode)
    found.push({
      title: `${quote(decision.key)}: ${own.length} decisions.`,
      acts: decision.acts,
      taken: yield* slotsTaken(decision.acts, members),
      rules: rules.flatMap((rule) => branchRules(rule, { own, seen }, episodes)),
    })
  }
  return found
}

/** A rule in code: apart for calls that failed. */
function branchRules(
  { literals, support, exceptions, examples }: LearnedBranch['rules'][number],
  { own, seen }: Pick<LearnedBranch, 'own' | 'seen'>,
  episodes: readonly Episode[],
): CodeBranch['rules'][number][] {
  const isFailed = seen.map((one) => failureSeen(one) !== undefined)
  const parts = [false, true].map((failed) => ({
    all: seen.filter((_, place) => isFailed[place] === failed),
    of: examples.filter((index) => isFailed[own.indexOf(index)] === failed),
  }))
  return parts.flatMap(({ all, of }) =>
    of.length < Math.min(LEAST_EACH, examples.length)
      ? []
      : [{ ...branchTests(literals, all), support, exceptions, examples: examplesOf(episodes, of) }],
  )
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
      terms: decision.terms,
      branches: yield* codeBranchesOf(decision, episodes),
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
  const acts = taken.flatMap(({ decision }) => actsOfClass(decision))
  const evidence = { episodes: taught.length, taught: indexes, exceptions: 0, held_out: total }
  const keys = taken.map(({ decision: { key } }) => key)
  return {
    id: TABLE_ID,
    title: `One table for ${counted(keys.length, 'decision')}: ${taken.map(({ decision }) => titleFor(decision, [])).join('; ')}`.slice(
      0,
      MOST_TITLE,
    ),
    decision: `table of ${keys.length}: ${keys.join(', ')}`,
    decisions: keys,
    acts,
    names: Array.from(new Set(taken.map(({ decision }) => nameOf(decision)))),
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
