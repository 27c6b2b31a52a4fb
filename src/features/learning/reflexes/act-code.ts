import type { Steps } from '../../../base/steps.ts'
import type { Episode } from '../episode.ts'
import { type BranchTests, pointerCode } from './branch-tests.ts'
import type { ActionTemplate, ActTemplate, DecisionClass, OutputSlot } from './classes.ts'
import { pathCode } from './facts/condition.ts'
import type { FieldSpan, NumberRange, TextSpans } from './facts/ranges.ts'
import { sourceOf, SUM_PLACES } from './facts/readings.ts'
import { quote } from './facts/text.ts'
import { fieldsCode, guardCode, listCode, type RuleGuard, valueCode } from './guards.ts'
import { type Extractor, type ReplySlot, type Taken, takenOf } from './slots.ts'

const LONGEST_EXAMPLE = 140

/** Slots without one take any value. */
type SlotsTaken = ReadonlyMap<ReplySlot, Taken>

export function* slotsTaken(acts: readonly ActTemplate[], episodes: readonly Episode[]): Steps<SlotsTaken> {
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

/** The acts of a decision, and the events that a program leaves to others. */
export type Acting = Pick<DecisionClass, 'acts' | 'leaves' | 'terms'> & {
  spans: readonly TextSpans[]
  fields: readonly FieldSpan[]
  guards: readonly RuleGuard[]
  taken: SlotsTaken
  branches: readonly CodeBranch[]
}

export type CodeBranch = Pick<Acting, 'acts' | 'taken'> & {
  title: string
  rules: readonly (BranchTests & { support: number; exceptions: number; examples: readonly string[] })[]
}

/** The guard of a number: a text that reads as one does not pass. */
export function fieldCode({ path, span, optional }: FieldSpan): string {
  const [value, [low, high]] = [pathCode(path), span]
  const given = pathCode(sourceOf(path))
  const range = Number.isFinite(low) ? ` && ${value} >= ${low} && ${value} <= ${high}` : ''
  return `if (${optional ? `(${given} ?? null) !== null && ` : ''}!(typeof ${value} === 'number'${range})) return null`
}

/** A number that was not taught leaves the event to others. */
function spansCode({ path, at, others }: TextSpans): string {
  const seen = fieldsCode(at.map(([place, accepted]) => [place, spanCode(accepted)]))
  return `if (hasUnseen(${pathCode(path)}, ${seen}, ${others === 'none' ? 'undefined' : spanCode(others)})) return null`
}

const spanCode = (span: NumberRange | 'any'): string => (span === 'any' ? 'null' : `[${span[0]}, ${span[1]}]`)

export const exampleLines = (examples: readonly string[]): string[] =>
  examples.map((example) => `//   ${quote(example.length > LONGEST_EXAMPLE ? `${example.slice(0, LONGEST_EXAMPLE)}…` : example)}`)

export function actCode({ acts, taken, leaves, terms, spans, fields, guards, branches }: Acting, name = 'act'): string {
  const { names, lines } = slotsCode({ acts, taken }, 'null')
  const named = branches.map((branch, place) => ({ branch, called: `${name}Branch${place + 1}` }))
  const called = named.map(({ called }) => `...${called}(context)`).join(', ')
  const own = [
    `function ${name}(context) {`,
    ...[...guards.map(guardCode), ...fields.map(fieldCode), ...spans.map(spansCode)].map((line) => `  ${line}`),
    ...lines,
    ...(named.length > 0 ? [`  const branches = [${called}]`, '  if (branches.length === 0) return null'] : []),
    `  return ${decisionCode({ acts, leaves, terms, branches }, names)}`,
    '}',
  ].join('\n')
  return [own, ...named.map(({ branch, called }) => branchCode(branch, called))].join('\n\n')
}

/** The values of the slots of acts, without which nothing is done. */
function slotsCode({ acts, taken }: Pick<Acting, 'acts' | 'taken'>, otherwise: 'null' | '[]') {
  const names: SlotNames = new Map(slotsOf(acts).map((slot, index) => [slot, `value${index === 0 ? '' : index + 1}`]))
  const missing = [...names.values()].map((value) => `${value} === undefined`)
  const lines = [
    ...[...names].map(([{ slot }, value]) => `  const ${value} = ${slot.map(extractorCode).join(' ??\n    ')}`),
    ...(missing.length > 0 ? [`  if (${missing.join(' || ')}) return ${otherwise}`] : []),
    ...Array.from(taken, ([slot, one]) => `  if (!${takenCode(names.get(slot) ?? '', one)}) return ${otherwise}`),
  ]
  return { names, lines }
}

/** The branches of one way to continue, as far as the event allows them. */
function branchCode({ title, acts, taken, rules }: CodeBranch, name: string): string {
  const { names, lines } = slotsCode({ acts, taken }, '[]')
  const pushed = rules.flatMap(({ support, exceptions, examples, given, when }) => {
    const push = `branches.push({ when: [${when.join(', ')}], acts })`
    return [
      `  // ${support} decisions as here, ${exceptions} otherwise. For example:`,
      ...exampleLines(examples).map((line) => `  ${line}`),
      given.length === 0 ? `  ${push}` : `  if (${given.join(' && ')})\n    ${push}`,
    ]
  })
  return [
    `// ${title}`,
    `function ${name}(context) {`,
    ...lines,
    '  const acts = [',
    ...acts.map((act) => `    { ${actionCode(act, names)} },`),
    '  ]',
    '  const branches = []',
    ...pushed,
    '  return branches',
    '}',
  ].join('\n')
}

/** Parts of texts are text until they are used: `Number(undefined)` is a number. */
export function extractorCode({ path, pattern, as, plus, less, scaled, by, written, tidy }: Extractor): string {
  const field = tidy === undefined ? pathCode(path) : `tidied(${pathCode(path)}, ${quote(tidy)})`
  if (scaled) return `(typeof ${field} === 'number' ? roundedTo(${scaledCode(field, scaled)}, ${scaled.places}) : undefined)`
  if (by) return combinedCode(field, by)
  if (pattern !== null) return `part(${field}, /${pattern}/g)`
  if (written)
    return `(typeof ${field} === 'number' ? ${written === true ? `String(${field})` : `${field}.toFixed(${written})`} : undefined)`
  return `(typeof ${field} === '${as}' ? ${plus === undefined ? field : shiftedCode(field, plus, less)} : undefined)`
}

const scaledCode = (field: string, { times, over }: NonNullable<Extractor['scaled']>): string =>
  over === 1 ? `${field} * ${times}` : `${field} / ${over}`

function combinedCode(field: string, { path, does, places }: NonNullable<Extractor['by']>): string {
  const other = pathCode(path)
  const sign = { minus: '-', plus: '+', times: '*' }[does]
  return `(typeof ${field} === 'number' && typeof ${other} === 'number' ? roundedTo(${field} ${sign} ${other}, ${places}) : undefined)`
}

const shiftedCode = (field: string, plus: number, less = false): string =>
  `Number((${less ? `${plus} - ${field}` : `${field} ${plus < 0 ? '-' : '+'} ${Math.abs(plus)}`}).toFixed(${SUM_PLACES}))`

type SlotNames = ReadonlyMap<ReplySlot, string>

function decisionCode({ acts, leaves, terms, branches }: Pick<Acting, 'acts' | 'leaves' | 'terms' | 'branches'>, names: SlotNames): string {
  const [first, ...others] = acts
  // An event leaves the context as it does after a turn: later turns would do its acts again.
  // A reply answers its event.
  const all = [acts, ...branches.map((branch) => branch.acts)].flat()
  const consume = leaves || all.some(({ kind }) => kind === 'reply') ? ', consume: true' : ''
  if (!first) return `{ action_type: 'ignore', reason: 'such events were left alone'${consume} }`
  if (others.length === 0 && branches.length === 0) return `{ ${actionCode(first, names)}${consume} }`
  const lines = acts.map((act) => `    { ${actionCode(act, names)} },`)
  const agrees = Object.keys(terms).map((term) => `, ${term}: true`)
  return [
    `{ action_type: 'sequence', acts: [`,
    ...lines,
    `  ]${branches.length > 0 ? ', branches' : ''}${agrees.join('')}${consume} }`,
  ].join('\n')
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

const outputCode = ({ output, path }: OutputSlot): string => `output: ${output}, path: ${pointerCode(path)}`

/** The arguments that are outputs, by their places. */
function usesCode(root: string, input: ActionTemplate): string {
  const found: string[] = []
  const visit = (template: ActionTemplate, path: readonly string[]): void => {
    if ('output' in template) found.push(`{ at: ${pointerCode(path)}, ${outputCode(template)} }`)
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

export function slotsOf(acts: readonly ActTemplate[]): ReplySlot[] {
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
