import { isJsonFields, type Json } from '../../../base/json.ts'
import { type Condition, conditionCode, type Literal, pathCode, pathKey, REPEATS } from './facts/condition.ts'
import { REPEATS_SOURCE } from './facts/repeats.ts'
import { NUMBERS_SOURCE } from '../../../evidence/numbers.ts'
import type { ActTemplate, OutputSlot, ActionTemplate } from './classes.ts'
import type { FieldSpan, NumberRange, TextSpans } from './facts/ranges.ts'
import type { Extractor, ReplySlot } from './slots.ts'
import { LONGEST_TEXT, quote, WORDS_SOURCE } from './facts/text.ts'

/** A rule as a person reads it: examples are events as JSON. */
export type ShownRule = { literals: readonly Literal[]; support: number; exceptions: number; examples: readonly string[] }
export type RuleGuard =
  | { path: readonly string[]; values: readonly (string | boolean | null)[] }
  | { names: readonly string[]; path: readonly string[] }
  /** The slow path says words beside such acts, so it decides where somebody can hear them. */
  | 'unheard'
export type RuleProgram = {
  title: readonly string[]
  guards: readonly RuleGuard[]
  fields: readonly FieldSpan[]
  /** The numbers in a text that the conditions ask about. */
  spansIn: (path: readonly string[]) => TextSpans | null
  acts: readonly ActTemplate[]
  rules: readonly ShownRule[]
}

const WIDTH = 110
const LONGEST_EXAMPLE = 140

/** JavaScript for the sandbox. All text from events is quoted, in comments too. */
export function codeOf({ title, guards, fields, spansIn, acts, rules }: RuleProgram): string {
  const conditions = rules.flatMap(({ literals }) => literals.map(({ condition }) => condition))
  const paths = new Map(
    conditions.flatMap((condition) =>
      condition.is === 'says' || condition.is === 'begins' ? [[pathKey(condition.path), condition.path] as const] : [],
    ),
  )
  const texts = new Map([...paths.keys()].sort().map((key, index) => [key, `text${index === 0 ? '' : index + 1}`]))
  const spans = [...paths.values()].flatMap((path) => spansIn(path) ?? [])
  const isOfWindow = (condition: Condition): boolean => 'path' in condition && condition.path[0] === 'window'
  const body = [
    ...guards.filter((guard) => guard === 'unheard' || 'values' in guard || conditions.some(isOfWindow)).map(guardCode),
    ...fields.map(fieldCode),
    ...rulesCode(rules, texts, paths),
  ]
  const own = actCode({ acts, spans, fields: [], guards: [] })
  return joined([
    title.map((line) => `// ${line}`).join('\n'),
    `function reflex(context) {\n${body.map((line) => `  ${line}`).join('\n')}\n}`,
    own,
    texts.size > 0 ? WORDS_SOURCE : '',
    ...helpersOf([{ acts, spans }]),
    conditions.some((condition) => 'path' in condition && condition.path[0] === REPEATS) ? REPEATS_SOURCE : '',
    conditions.some(({ is }) => is === 'contains') ? HAS_SOURCE : '',
  ])
}

const joined = (parts: readonly string[]): string => `${parts.filter((part) => part !== '').join('\n\n')}\n`

/** Functions that acts call. */
const helpersOf = (all: readonly { acts: readonly ActTemplate[]; spans: readonly TextSpans[] }[]): string[] => [
  all.some(({ spans }) => spans.length > 0) ? `${UNSEEN_SOURCE}\n\n${NUMBERS_SOURCE}` : '',
  all.some(({ acts }) => slotsOf(acts).some(({ slot }) => slot.some(({ pattern }) => pattern !== null))) ? PART_SOURCE : '',
]

/** A decision of a table. `lead`: the points by which it must be ahead. */
export type CodeDecision = Acting & { own: number; lead: number; title: string; examples: readonly string[] }
type Acting = {
  acts: readonly ActTemplate[]
  spans: readonly TextSpans[]
  fields: readonly FieldSpan[]
  guards: readonly RuleGuard[]
}
export type ScorerProgram = {
  title: readonly string[]
  guards: readonly RuleGuard[]
  fields: readonly FieldSpan[]
  decisions: readonly CodeDecision[]
  classes: number
  /** The function `tablePoints(context)`, and what it calls. */
  source: string
}

/** JavaScript that takes the decision with the most points, if it leads by enough. */
export function scorerCodeOf({ title, guards, fields, decisions, classes, source }: ScorerProgram): string {
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

const HAS_SOURCE = 'const has = (list, item) => Array.isArray(list) && list.includes(item)'
const PART_SOURCE = `// The value that the pattern finds; undefined if it finds nothing, or several values.
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

function guardCode(guard: RuleGuard): string {
  if (guard === 'unheard') return 'if (context.event.meta?.heard === true) return null'
  if ('names' in guard)
    return `if (Object.keys(${pathCode(guard.path)} ?? {}).some((name) => !${listCode(guard.names)}.includes(name))) return null`
  const value = pathCode(guard.path)
  const [only] = guard.values
  return guard.values.length === 1
    ? `if (${value} !== ${valueCode(only ?? null)}) return null`
    : `if (!${listCode(guard.values)}.includes(${value})) return null`
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

const listCode = (values: readonly Json[]): string => `[${values.map(valueCode).join(', ')}]`

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

function actCode({ acts, spans, fields, guards }: Acting, name = 'act'): string {
  const slots = slotsOf(acts)
  const names = new Map(slots.map((slot, index) => [slot, `value${index === 0 ? '' : index + 1}`]))
  const missing = [...names.values()].map((value) => `${value} === undefined`)
  return [
    `function ${name}(context) {`,
    ...[...guards.map(guardCode), ...fields.map(fieldCode), ...spans.map(spansCode)].map((line) => `  ${line}`),
    ...[...names].map(([{ slot }, value]) => `  const ${value} = ${slot.map(extractorCode).join(' ??\n    ')}`),
    ...(missing.length > 0 ? [`  if (${missing.join(' || ')}) return null`] : []),
    `  return ${decisionCode(acts, names)}`,
    '}',
  ].join('\n')
}

/** Parts of texts are text until they are used: `Number(undefined)` is a number. */
const extractorCode = ({ path, pattern, as }: Extractor): string =>
  pattern === null ? `(typeof ${pathCode(path)} === '${as}' ? ${pathCode(path)} : undefined)` : `part(${pathCode(path)}, /${pattern}/g)`

type SlotNames = ReadonlyMap<ReplySlot, string>

function decisionCode(acts: readonly ActTemplate[], names: SlotNames): string {
  const [first, ...others] = acts
  if (!first) return `{ action_type: 'ignore', reason: 'such events were left alone' }`
  // A reply answers its event, which leaves the context as it does after a turn.
  const consume = acts.some(({ kind }) => kind === 'reply') ? ', consume: true' : ''
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

function valueCode(value: Json): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return listCode(value)
  return isJsonFields(value) ? fieldsCode(Object.entries(value).map(([name, inner]) => [name, valueCode(inner)])) : JSON.stringify(value)
}

/** Names are computed if a plain one would mean something else, as \`__proto__\` does. */
const fieldsCode = (fields: readonly (readonly [string, string])[]): string =>
  fields.length === 0
    ? '{}'
    : `{ ${fields.map(([name, code]) => `${name === '__proto__' ? "['__proto__']" : /^[A-Za-z]\w*$/.test(name) ? name : quote(name)}: ${code}`).join(', ')} }`

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
