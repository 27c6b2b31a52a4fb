import type { Steps } from '../../../base/steps.ts'
import type { Json } from '../../../base/json.ts'
import type { Seen } from '../episode.ts'
import { nameOfPath } from './scorer/tree-words.ts'
import { candidatesOf, composedFrom, computedFields, type Extractor, type ReplySlot } from './slots.ts'

type Value = string | number
type Example = { saw: Seen; value: Value }
type Template = { constant: Value } | ReplySlot | { join: readonly (string | ReplySlot)[] }
/** The value of a template in a context. */
type ValueOf = (template: Template, saw: Seen) => Json | undefined
/** `own`: the places of its examples. `said`: the template in words. */
export type Variant = { template: Template; said: string; own: number[] }

const MOST_VARIANTS = 4
/** Examples of a variant, at least, and the share of all that the variants have together. */
const LEAST_OF_VARIANT = 8
const LEAST_SHARE = 0.05
const TOGETHER = 0.9
const TAUGHT_BY = 40
const TRIED_ON = 400
const TRIED_OF_STEP = 5

/**
 * The ways in which an argument is made where one does not give all values, as where some refunds
 * are of the whole amount and others of a part. None if they do not give almost all values.
 */
export function* variantsOf(examples: readonly Example[], valueOf: ValueOf): Steps<Variant[]> {
  const tried = drawn(examples, TRIED_ON)
  const least = Math.max(LEAST_OF_VARIANT, tried.length * LEAST_SHARE)
  const results: { template: Template; right: number[]; length: number }[] = []
  for (const [index, template] of [...candidates(drawn(examples, TAUGHT_BY)).values()].entries()) {
    if (index % TRIED_OF_STEP === 0) yield
    const right = tried.flatMap(({ saw, value }, place) => (valueOf(template, saw) === value ? [place] : []))
    if (right.length >= least) results.push({ template, right, length: JSON.stringify(template).length })
  }
  const chosen: Template[] = []
  const open = new Set(tried.keys())
  while (chosen.length < MOST_VARIANTS && open.size >= least) {
    yield
    const [best] = results
      .map((result) => ({ ...result, fresh: result.right.filter((place) => open.has(place)).length }))
      .sort((one, other) => other.fresh - one.fresh || one.length - other.length)
    if (!best || best.fresh < least) break
    chosen.push(best.template)
    for (const place of best.right) open.delete(place)
  }
  return chosen.length < 2 || open.size > tried.length * (1 - TOGETHER) ? [] : dividedBy(chosen, examples, valueOf)
}

/** A part of the golden ratio: ways that alternate are not all at places of one kind. */
const GOLDEN = 0.618

/** Examples of all parts of the history, at uneven distances. */
const drawn = (examples: readonly Example[], most: number): Example[] =>
  examples.length <= most
    ? [...examples]
    : Array.from({ length: most }, (_, at) => examples[Math.floor(((at + ((at * GOLDEN) % 1)) * examples.length) / most)] as Example)

function dividedBy(chosen: readonly Template[], examples: readonly Example[], valueOf: ValueOf): Variant[] {
  const variants = chosen.map((template): Variant => ({ template, said: said(template), own: [] }))
  // Their words name decisions.
  if (new Set(variants.map((variant) => variant.said)).size < variants.length) return []
  for (const [place, { saw, value }] of examples.entries())
    variants.find(({ template }) => valueOf(template, saw) === value)?.own.push(place)
  return variants
}

function candidates(taught: readonly Example[]): Map<string, Template> {
  const found = new Map<string, Template>()
  const add = (template: Template): void => void found.set(JSON.stringify(template), template)
  for (const { value } of taught) add({ constant: value })
  for (const example of taught) for (const extractor of candidatesOf(example)) add({ slot: [extractor] })
  for (const extractor of computedFields(taught, 1)) add({ slot: [extractor] })
  for (const join of composedFrom(taught, taught.length)) add({ join })
  return found
}

function said(template: Template): string {
  if ('constant' in template) return String(template.constant)
  if ('slot' in template) return template.slot.map(extractorWords).join(' or ')
  return template.join.map((part) => (typeof part === 'string' ? part : `{${part.slot.map(extractorWords).join(' or ')}}`)).join('')
}

const SIGNS = { minus: '-', plus: '+', times: '*' } as const

function extractorWords({ path, pattern, plus, less, scaled, by, written, tidy }: Extractor): string {
  const name = `${path[0] === 'amount' ? 'number in ' : ''}${nameOfPath(path)}`
  if (plus !== undefined) return less ? `${plus} - ${name}` : `${name} + ${plus}`
  if (scaled) return scaled.times === 1 ? `${name} / ${scaled.over}` : `${name} * ${scaled.times}`
  if (by) return `${name} ${SIGNS[by.does]} ${nameOfPath(by.path)}`
  const as = [tidy, typeof written === 'number' ? `${written} places` : undefined].filter((one) => one !== undefined)
  return `${pattern === null ? '' : `part ${pattern} of `}${name}${as.map((one) => ` (${one})`).join('')}`
}
