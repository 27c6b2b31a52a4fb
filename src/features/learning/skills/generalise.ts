import { isJsonFields, type Json, type JsonFields } from '../../../base/json.ts'
import { placesIn, textOf } from '../../../base/template.ts'
import { slotName } from '../../../skills/manifest/names.ts'
import type { ValueType } from '../../../skills/manifest/manifest.ts'
import { isSecretName, sensitiveIn } from '../../../skills/gate/mask.ts'
import { fitsType } from '../../../skills/plan/blackboard.ts'
import { isConstant, keyOf, type ValueSource } from './sources.ts'

/** An argument that varies. `path`: the place on the blackboard that had the same values. */
export type PatternSlot = { name: string; type: ValueType; values: readonly Json[]; path: string | null; in_text: boolean; secret: boolean }

type Known = {
  blackboard: readonly ValueSource[]
  /** The user's text in each occurrence. */
  texts: readonly string[]
}

/** Thrown where an argument cannot be generalised; it never leaves `compile.ts`. */
export class NotGeneral extends Error {}

const MASKED = /^(?:\[redacted\]|\[secret\]|sha256:[\da-f]{64})$/
const MOST_ITEMS = 16
/** Shorter values occur in other texts by chance. */
const SHORTEST_PART = 3
const MOST_PARTS = 4
/** Sources that are tried for one part, so that a text full of values takes no longer. */
const MOST_TRIED = 8

/**
 * Anti-unification of a plan's arguments over its occurrences: what is constant stays, what an
 * earlier step gave is named, what varies becomes an input. Equal inputs are one.
 */
export class Generaliser {
  readonly slots: PatternSlot[] = []
  readonly #known: Known
  /** True if no input may be added. */
  readonly #is_closed: boolean

  constructor(known: Known, is_closed = false) {
    this.#known = known
    this.#is_closed = is_closed
  }

  /**
   * Returns what a call may use that only some of the turns made. It has no input of its own, since
   * the others have no value for one.
   */
  within(made: readonly unknown[], outputs: readonly ValueSource[]): { generaliser: Generaliser; outputs: ValueSource[] } {
    const own = <One extends { values: readonly Json[] }>(one: One): One => ({
      ...one,
      values: one.values.filter((_, index) => made[index] !== null),
    })
    const generaliser = new Generaliser({ blackboard: [], texts: [] }, true)
    generaliser.slots.push(...this.slots.map(own))
    return { generaliser, outputs: outputs.map(own) }
  }

  /** A template for the values that an argument had. `outputs`: what the steps before gave. */
  template(name: string, values: readonly Json[], outputs: readonly ValueSource[]): Json {
    const [first = null] = values
    const isSecret = values.some((value) => isMasked(value) || isSecretName(name, value))
    if (!isSecret && values.every(isJsonFields) && haveSameFields(values)) {
      const field = (one: string): Json =>
        this.template(
          one,
          values.map((value) => value[one] ?? null),
          outputs,
        )
      return Object.fromEntries(Object.keys(values[0] ?? {}).map((one): [string, Json] => [one, field(one)]))
    }
    if (!isSecret && values.every(Array.isArray) && haveSameSize(values)) {
      return (values[0] ?? []).map((_, index) =>
        this.template(
          name,
          values.map((value) => value[index] ?? null),
          outputs,
        ),
      )
    }
    if (isSecret || values.some((value) => sensitiveIn(value, { emails: false }) !== null)) return this.#input(name, values, true)
    if (isConstant(values) && placesIn(first).length === 0) return first
    // An output that merely repeats an input is not needed.
    const known = this.slots.find((slot) => !slot.secret && keyOf(slot.values) === keyOf(values))
    if (known) return `{{${known.name}}}`
    const output = outputs.find((source) => keyOf(source.values) === keyOf(values))
    if (output) return `{{${output.place}}}`
    return this.#text(values, outputs) ?? this.#input(name, values, false)
  }

  /** A text around outputs and inputs, or null. A single input is not worth a template. */
  #text(values: readonly Json[], outputs: readonly ValueSource[]): string | null {
    if (!values.every((value) => typeof value === 'string')) return null
    if (this.#onBlackboard(values) !== null) return null
    const inputs = this.slots.flatMap(({ name, values: own, secret }) => (secret ? [] : [{ place: name, values: own }]))
    return unify(values, [...outputs, ...inputs, ...this.#varying()], MOST_PARTS, (source) => this.#named(source))
  }

  #varying(): ValueSource[] {
    return this.#known.blackboard.filter(({ values }) => !isConstant(values) && values.every((value) => typeof value === 'string'))
  }

  /** A part of a text that is on the blackboard becomes an input bound to it. */
  #named({ place, values }: ValueSource): string {
    if (!this.#known.blackboard.some((source) => source.place === place)) return place
    return this.#input(place.split('.').at(-1) ?? place, values, false).slice(2, -2)
  }

  #onBlackboard(values: readonly Json[]): string | null {
    return this.#known.blackboard.find((source) => keyOf(source.values) === keyOf(values))?.place ?? null
  }

  #input(wanted: string, values: readonly Json[], secret: boolean): string {
    const same = this.slots.find(
      (slot) => slot.secret === secret && keyOf(slot.values) === keyOf(values) && (!secret || slot.name === wanted),
    )
    if (same) return `{{${same.name}}}`
    if (this.#is_closed) throw new NotGeneral(`the argument ${wanted} of a call that only some turns make comes from no earlier call`)
    const type = secret ? 'string' : typeOf(values)
    if (type === null) throw new NotGeneral(`the argument ${wanted} has values of several types`)
    const path = secret ? null : this.#onBlackboard(values)
    const { texts } = this.#known
    const in_text = !secret && path === null && values.every((value, index) => isSaid(value, texts[index] ?? ''))
    const name = this.#freeName(wanted)
    this.slots.push({ name, type, values, path, in_text, secret })
    return `{{${name}}}`
  }

  #freeName(wanted: string): string {
    const plain =
      wanted
        .replaceAll(/\W+/g, '_')
        .replace(/^(?=\d)/, '_')
        .slice(0, 56) || 'value'
    const base = slotName.safeParse(plain).success ? plain : `the_${plain}`
    const taken = new Set(this.slots.map(({ name }) => name))
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? base : `${base}_${number}`
      if (!taken.has(name)) return name
    }
  }
}

const isMasked = (value: Json): boolean => typeof value === 'string' && MASKED.test(value)

const haveSameFields = (values: readonly JsonFields[]): boolean => {
  const names = Object.keys(values[0] ?? {})
  return values.every((value) => Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name)))
}

const haveSameSize = (values: readonly Json[][]): boolean => {
  const size = values[0]?.length ?? 0
  return size <= MOST_ITEMS && values.every(({ length }) => length === size)
}

const isSaid = (value: Json, text: string): boolean =>
  (typeof value === 'string' || typeof value === 'number') && String(value).length > 1 && text.includes(String(value))

const TYPES = ['integer', 'number', 'boolean', 'url', 'string', 'list', 'object'] as const

/** The narrowest type that all values have, or null. */
export function typeOf(values: readonly Json[]): ValueType | null {
  const isUrl = values.every((value) => typeof value === 'string' && /^https?:\/\//.test(value))
  return TYPES.find((type) => (type !== 'url' || isUrl) && values.every((value) => fitsType(type, value))) ?? null
}

/**
 * The template of texts that differ only in the values of sources; null if they differ otherwise.
 * The longest source first, so that a whole value is not taken for its part.
 */
function unify(
  texts: readonly string[],
  sources: readonly ValueSource[],
  parts: number,
  name: (source: ValueSource) => string,
): string | null {
  const [first = ''] = texts
  if (isConstant(texts)) return placesIn(first).length === 0 ? first : null
  if (parts === 0) return null
  const within = sources
    .filter(({ values }) => values.every((value, index) => textOf(value).length >= SHORTEST_PART && texts[index]?.includes(textOf(value))))
    .sort((one, other) => lengthOf(other) - lengthOf(one))
    .slice(0, MOST_TRIED)
  for (const source of within) {
    const at = texts.map((text, index) => text.indexOf(textOf(source.values[index] ?? null)))
    const left = unify(
      texts.map((text, index) => text.slice(0, at[index])),
      sources,
      parts - 1,
      name,
    )
    if (left === null) continue
    const rest = texts.map((text, index) => text.slice((at[index] ?? 0) + textOf(source.values[index] ?? null).length))
    const right = unify(rest, sources, parts - 1, name)
    if (right !== null) return `${left}{{${name(source)}}}${right}`
  }
  return null
}

const lengthOf = ({ values }: ValueSource): number => values.reduce<number>((sum, value) => sum + textOf(value).length, 0)
