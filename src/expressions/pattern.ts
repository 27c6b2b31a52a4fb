import type { Refused } from '../base/result.ts'
import { messageOf } from '../base/error-text.ts'
import { spend } from './environment.ts'

/**
 * A regular expression whose work is at most its steps times the characters of the text: all of its
 * states advance together, and none goes back. JavaScript's own can take exponential time.
 */
type TextPattern = { steps: readonly Step[] }

type Test = (character: string) => boolean
type TextPlace = { at: number; text: readonly string[] }
/** `leads`: the steps that follow without a character. A pattern is found at a step of `found`. */
type Step = { test: Test } | { leads: number[] } | { holds: (place: TextPlace) => boolean } | { found: true }

type Node =
  | { kind: 'one'; step: Step }
  | { kind: 'all'; of: Node[] }
  | { kind: 'any'; of: Node[] }
  | { kind: 'repeat'; of: Node; least: number; most: number | null }

const MOST_STEPS = 500
const MOST_REPEATS = 100
const DEEPEST = 20
/** Units of work for each step and character. */
const STEP_WORK = 100

const one_of =
  (characters: string): Test =>
  (character) =>
    characters.includes(character)
const DIGITS = '0123456789'
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'
const WORD = `${DIGITS}${LETTERS}${LETTERS.toUpperCase()}_`
const CLASSES: Readonly<Record<string, Test>> = { d: one_of(DIGITS), w: one_of(WORD), s: one_of(' \t\n\f\r') }
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', f: '\f', v: '\v' }
const isWord = (character: string | undefined): boolean => character !== undefined && WORD.includes(character)
const atBorder = ({ at, text }: TextPlace): boolean => isWord(text[at - 1]) !== isWord(text[at])

export function patternOf(source: string): { ok: true; pattern: TextPattern } | Refused<'invalid'> {
  try {
    return { ok: true, pattern: { steps: stepsOf(new Reader(source).whole()) } }
  } catch (error) {
    return { ok: false, reason: 'invalid', detail: `the regular expression ${JSON.stringify(source)}: ${messageOf(error)}` }
  }
}

/** Reads a pattern as RE2 writes it, without what needs a way back. */
class Reader {
  readonly #left: string[]
  #ignores_case = false

  constructor(source: string) {
    this.#left = Array.from(source).toReversed()
  }

  whole(): Node {
    if (this.#takes('(?i)')) this.#ignores_case = true
    const node = this.#choice(0)
    if (this.#left.length > 0) throw new Error('a `)` closes nothing')
    return node
  }

  #takes(text: string): boolean {
    const characters = Array.from(text)
    if (!characters.every((character, index) => this.#left.at(-1 - index) === character)) return false
    this.#left.splice(this.#left.length - characters.length)
    return true
  }

  #next(): string {
    const next = this.#left.pop()
    if (next === undefined) throw new Error('it ends too early')
    return next
  }

  #choice(depth: number): Node {
    if (depth > DEEPEST) throw new Error(`its groups are nested deeper than ${DEEPEST}`)
    const of = [this.#sequence(depth)]
    while (this.#takes('|')) of.push(this.#sequence(depth))
    return { kind: 'any', of }
  }

  #sequence(depth: number): Node {
    const of: Node[] = []
    while (this.#left.length > 0 && this.#left.at(-1) !== '|' && this.#left.at(-1) !== ')') of.push(this.#repeated(this.#one(depth)))
    return { kind: 'all', of }
  }

  #repeated(of: Node): Node {
    const bounds = this.#bounds()
    if (!bounds) return of
    // A lazy repetition is found where a greedy one is.
    this.#takes('?')
    if ('*+?{'.includes(this.#left.at(-1) ?? ' ')) throw new Error('a repetition is repeated: put it into a group')
    return { kind: 'repeat', of, ...bounds }
  }

  #bounds(): { least: number; most: number | null } | null {
    if (this.#takes('*')) return { least: 0, most: null }
    if (this.#takes('+')) return { least: 1, most: null }
    if (this.#takes('?')) return { least: 0, most: 1 }
    if (!this.#takes('{')) return null
    let said = ''
    for (let next = this.#next(); next !== '}'; next = this.#next()) said += next
    const [, from, comma, to = ''] = /^(\d{1,3})(?:(,)(\d{0,3}))?$/.exec(said) ?? []
    const least = Number(from)
    const most = comma === undefined ? least : to === '' ? null : Number(to)
    if (from === undefined || least > MOST_REPEATS || (most !== null && (most > MOST_REPEATS || most < least)))
      throw new Error(`{${said}} is not a repetition of at most ${MOST_REPEATS}`)
    return { least, most }
  }

  #one(depth: number): Node {
    const next = this.#next()
    if (next === '(') {
      if (this.#takes('?') && !this.#takes(':')) throw new Error('of groups with `?` there is only `(?:`, and `(?i)` at the beginning')
      const group = this.#choice(depth + 1)
      if (!this.#takes(')')) throw new Error('a `(` is not closed')
      return group
    }
    if (next === '^') return one({ holds: ({ at }) => at === 0 })
    if (next === '$') return one({ holds: ({ at, text }) => at === text.length })
    if (next === '\\' && this.#takes('b')) return one({ holds: atBorder })
    if (next === '\\' && this.#takes('B')) return one({ holds: (place) => !atBorder(place) })
    if (next === '.') return one({ test: (character) => character !== '\n' })
    if (next === '[') return one({ test: this.#folded(this.#set()) })
    if ('*+?{'.includes(next)) throw new Error(`\`${next}\` repeats nothing`)
    return one({ test: this.#folded(next === '\\' ? this.#escaped() : is(next)) })
  }

  #folded(test: Test): Test {
    return this.#ignores_case ? (character) => test(character.toLowerCase()) || test(character.toUpperCase()) : test
  }

  #escaped(): Test {
    const next = this.#next()
    const named = CLASSES[next.toLowerCase()]
    if (named) return next === next.toLowerCase() ? named : (character) => !named(character)
    const control = CONTROLS[next]
    if (control === undefined && /^[\p{L}\p{N}]$/u.test(next)) throw new Error(`\\${next} is not available`)
    return is(control ?? next)
  }

  #set(): Test {
    const is_not = this.#takes('^')
    const tests: Test[] = []
    for (let next = this.#next(); next !== ']' || tests.length === 0; next = this.#next()) {
      if (next === '[' && this.#left.at(-1) === ':') throw new Error('classes such as [:alpha:] are not available')
      const isRange = this.#left.at(-1) === '-' && this.#left.at(-2) !== ']'
      if (!isRange) tests.push(next === '\\' ? this.#escaped() : is(next))
      else {
        this.#next()
        const last = this.#next()
        if (next === '\\' || last === '\\' || last < next) throw new Error(`${next}-${last} is no range`)
        tests.push((character) => next <= character && character <= last)
      }
    }
    return (character) => tests.some((test) => test(character)) !== is_not
  }
}

const one = (step: Step): Node => ({ kind: 'one', step })
const is =
  (wanted: string): Test =>
  (character) =>
    character === wanted

function stepsOf(node: Node): Step[] {
  const steps: Step[] = []
  const put = (step: Step): number => {
    if (steps.length >= MOST_STEPS) throw new Error(`it has more than ${MOST_STEPS} steps`)
    return steps.push(step) - 1
  }
  const emit = (part: Node): void => {
    if (part.kind === 'one') put(part.step)
    else if (part.kind === 'all') part.of.forEach(emit)
    else if (part.kind === 'any') {
      const fork: number[] = []
      put({ leads: fork })
      const ends = part.of.map((of) => {
        fork.push(steps.length)
        emit(of)
        const end: number[] = []
        put({ leads: end })
        return end
      })
      for (const end of ends) end.push(steps.length)
    } else {
      for (let count = 0; count < part.least; count += 1) emit(part.of)
      if (part.most === null) {
        const fork: number[] = []
        const from = put({ leads: fork })
        fork.push(steps.length)
        emit(part.of)
        put({ leads: [from] })
        fork.push(steps.length)
      } else {
        const forks = Array.from({ length: part.most - part.least }, () => {
          const fork: number[] = []
          put({ leads: fork })
          fork.push(steps.length)
          emit(part.of)
          return fork
        })
        for (const fork of forks) fork.push(steps.length)
      }
    }
  }
  emit(node)
  put({ found: true })
  return steps
}

/** True if the pattern stands anywhere in the text. Pays for it before it looks. */
export function isFound({ steps }: TextPattern, said: string): boolean {
  spend(STEP_WORK * steps.length * (said.length + 1))
  const text = Array.from(said)
  /** The place at which a step was reached last: it is added once for each place. */
  const reached = new Int32Array(steps.length).fill(-1)
  const open: number[] = []
  let now: number[] = []
  let next: number[] = []
  /** Adds a step and all that follow without a character. */
  const enter = (into: number[], first: number, at: number): void => {
    open.push(first)
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      const step = steps[index]
      if (!step || reached[index] === at) continue
      reached[index] = at
      if ('leads' in step) for (const other of step.leads) open.push(other)
      else if (!('holds' in step)) into.push(index)
      else if (step.holds({ at, text })) open.push(index + 1)
    }
  }
  for (let at = 0; at <= text.length; at += 1) {
    enter(now, 0, at)
    const character = text[at]
    for (const index of now) {
      const step = steps[index]
      if (step && 'found' in step) return true
      if (character !== undefined && step && 'test' in step && step.test(character)) enter(next, index + 1, at + 1)
    }
    ;[now, next] = [next, now]
    next.length = 0
  }
  return false
}
