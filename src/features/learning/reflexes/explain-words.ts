import { decisionWords } from '../contract/decision-words.ts'
import { type Action, actionsIn, parseAction, type SequenceAct, type SequenceBranch } from '../../../contract/action.ts'
import type { Points, ProgramWhy, Side } from '../contract/why.ts'
import { writeAt } from '../../../reflexes/sequence.ts'
import type { Saw } from '../episode.ts'
import { type Explained, type Explaining, unquoted } from './explain.ts'
import { valueAt } from './facts/condition.ts'
import { wordsOf } from '../../../base/words-of.ts'
import { unpackScorer } from './scorer/pack.ts'
import { namedPieces, type PieceName } from './scorer/pieces.ts'
import { earlierWords, nameOfPath } from './scorer/tree-words.ts'

const MOST_SPOKE = 8
const LONGEST = 300
const LONGEST_VALUE = 80

export function whyOf(program: Explaining, weights: string | null, found: Explained, saw: Saw): ProgramWhy {
  const parsed = found.action === null ? null : parseAction(found.action)
  const action = parsed?.ok === true ? parsed.action : null
  const points = found.table && weights !== null ? pointsOf(program, weights, found.table, saw) : null
  const would = action === null ? null : actionWords(action)
  return { would, reasons: reasonsOf(program, found, { points, saw, acts: action !== null }), points }
}

const actionWords = (action: Action): string => {
  if (action.action_type !== 'sequence' || !action.branches) return shortened(pathWords(action), LONGEST)
  const { acts, branches } = action
  const first = pathWords({ action_type: 'sequence', acts })
  const ways = branches.map((branch) => wayWords(acts, branch)).join('; ')
  return shortened(`${first}, then by what was returned: ${ways}`, LONGEST)
}

function wayWords(first: readonly SequenceAct[], { acts, when }: SequenceBranch): string {
  const own = acts.length === 0 ? 'nothing more' : pathWords({ action_type: 'sequence', acts: [...first, ...acts] }, first.length)
  const asked = when.map(({ output: _output, path, ...tests }) => `${path.slice(1).replaceAll('/', '.')} ${JSON.stringify(tests)}`)
  return asked.length === 0 ? own : `${own} if ${asked.join(' and ')}`
}

/** The acts of an action without branches, in words. */
function pathWords(action: Action, from = 0): string {
  const acts = actionsIn(action)
  const sequence = action.action_type === 'sequence' ? action.acts : []
  const words = acts.map((act, place) => {
    const own = sequence[place]
    const one = withUses(act, own && 'uses' in own ? (own.uses ?? []) : [], acts)
    if (one.action_type === 'call_tool') return `call ${one.tool} ${JSON.stringify(one.args)}`
    const { action_type, ...rest } = one
    return action_type === 'ignore' ? 'do nothing' : `${action_type.replaceAll('_', ' ')} ${JSON.stringify(rest)}`
  })
  return words.slice(from).join(', then ')
}

type Use = { at: string; output: number; path: string }

/** An act whose arguments from outputs say where they come from, in place of null. */
function withUses(act: Action, uses: readonly Use[], acts: readonly Action[]): Action {
  const copy = structuredClone(act)
  for (const { at, output, path } of uses) {
    const from = acts[output]
    const name = from?.action_type === 'call_tool' ? from.tool : `act ${output + 1}`
    writeAt(copy, at, `(${path.slice(1).replaceAll('/', '.')} of what ${name} returns)`)
  }
  return copy
}

type Read = { points: Points | null; saw: Saw; acts: boolean }

function reasonsOf(program: Explaining, found: Explained, { points, saw, acts }: Read): string[] {
  const lead = points === null ? [] : [leadWords(points)]
  if (found.left !== null) {
    const condition = program.marks[found.left] ?? ''
    if (condition === 'points === null') return outsideWords(program, found)
    return [...(isOfDecision(condition) ? lead : []), guardWords(condition, saw)]
  }
  if (found.taken !== null) return [`It is so taught: ${readable(program.marks[found.taken] ?? '')}.`]
  if (points !== null) return lead
  return acts ? [] : ['None of its rules holds.']
}

/** True for a guard of the best decision alone, which asks after the lead. */
const isOfDecision = (condition: string): boolean =>
  condition.startsWith('hasUnseen') || VALUE.test(condition) || WORD.test(condition) || condition.includes('=== undefined')

const nameOfDecision = (decision: string | null): string =>
  decision === null ? 'a decision that it leaves to the slow path' : decisionWords(decision)

export function leadWords({ best, second, lead, needed }: Points): string {
  const other = best.decision === null && second.decision === null ? 'another one' : nameOfDecision(second.decision)
  const ahead = `${nameOfDecision(best.decision)} has ${lead} points more than ${other}`
  if (needed === null) return `${ahead}; it is left to the slow path.`
  return lead >= needed ? `${ahead}, and needs ${needed}.` : `The lead is too small: ${ahead}, and needs ${needed}.`
}

function outsideWords({ columns }: Explaining, { outside }: Explained): string[] {
  if (outside.length === 0) return ['A number of the event is outside of what it was taught with.']
  return outside.map(([column, value]) => {
    const name = columns[column] ?? 'a part'
    return Array.isArray(value)
      ? `${name} is missing, which it was not taught with.`
      : `${name} is ${shown(value)}, which it was not taught with.`
  })
}

const PATH = String.raw`context(?:\??\.\w+|(?:\?\.)?\['[^']*'\])+`
const GIVEN = String.raw`(?:\(${PATH} \?\? null\) !== null && )?`
const [EXACT, LISTED, RANGED, NUMERIC, VALUE, WORD, UNSEEN, NAMED] = [
  new RegExp(String.raw`^(${PATH}) !== (.*)$`),
  new RegExp(String.raw`^!(\[.*\])\.includes\((${PATH})\)$`),
  new RegExp(String.raw`^${GIVEN}!\((?:typeof ${PATH} === 'number' && )?(${PATH}) >= (\S+) && ${PATH} <= (\S+)\)$`),
  new RegExp(String.raw`^${GIVEN}!\(typeof (${PATH}) === 'number'\)$`),
  /^!\(value\d* >= (\S+) && value\d* <= (\S+)\)$/,
  /^!(\[.*\])\.includes\(value\d*\)$/,
  new RegExp(String.raw`^hasUnseen\((${PATH}), `),
  new RegExp(String.raw`^wordsOf\((${PATH})\)\.some\(`),
]

/** A guard that left the event, with what the event has there. */
export function guardWords(condition: string, saw: Saw): string {
  const is = (code = ''): string => `${nameOfPath(pathIn(code))} is ${shown(valueAt(saw, pathIn(code)))}`
  const ranged = RANGED.exec(condition)
  if (ranged) return `${is(ranged[1])}; it was taught with ${ranged[2]} to ${ranged[3]}.`
  const numeric = NUMERIC.exec(condition)
  if (numeric) return `${is(numeric[1])}; it was taught with numbers.`
  const value = VALUE.exec(condition)
  if (value) return `A number that the decision is made with is not from ${value[1]} to ${value[2]}, as it was taught.`
  const word = WORD.exec(condition)
  if (word)
    return `A part of a text that the decision needs is none of those that it was taught with: ${readable(word[1]?.slice(1, -1) ?? '')}.`
  const listed = LISTED.exec(condition)
  if (listed) return `${is(listed[2])}; it was taught with ${readable(listed[1]?.slice(1, -1) ?? '')}.`
  const exact = EXACT.exec(condition)
  if (exact) return `${is(exact[1])}; it was taught with ${readable(exact[2] ?? '')}.`
  const unseen = UNSEEN.exec(condition)
  if (unseen) return `${nameOfPath(pathIn(unseen[1] ?? ''))} has a number that it was not taught with.`
  const named = NAMED.exec(condition)
  if (named) return `${is(named[1])}, with a word that it was not taught with.`
  if (condition === 'context.event.meta?.heard === true')
    return 'Somebody may hear the words of this decision, so that the slow path says them.'
  if (condition.includes('=== undefined')) return 'A part of the event that the decision needs was not found.'
  return `A guard leaves the event: ${readable(condition)}.`
}

/** The path in code that \`pathCode\` wrote. */
const pathIn = (code: string): string[] =>
  Array.from(code.slice('context'.length).matchAll(/\??\.(\w+)|\['([^']*)'\]/g), ([, name, quoted]) => name ?? unquoted(quoted ?? ''))

const QUOTED = String.raw`('[^']*'|-?[\d.e+-]+|true|false)`
const [ITEM, OF_ITEMS, NUMBER, SAYS] = [
  new RegExp(String.raw`(!?)\bhas\((${PATH}), ${QUOTED}(?:, '([^']*)')?\)`, 'g'),
  new RegExp(String.raw`\b(sum|most|least)Of\((${PATH}), '([^']*)'\)`, 'g'),
  new RegExp(String.raw`\((?:amountIn\()?((?:sum of |most of |least of )?${PATH})\)? \?\? 0\)`, 'g'),
  new RegExp(String.raw`(!?)(${PATH}) says '(?:(\^) )?([^']*)'`, 'g'),
]

const NAMES = String.raw`\[(?:'[^']*'(?:, )?)*\]`
const OPERAND = String.raw`(?:sum of |most of |least of )?${PATH}|(?:amountIn|dayOf)\(${PATH}\)|earlier\(context, ${NAMES}, ${NAMES}\)`
const [CHANGE, EARLIER, AMOUNT, DAY, WHERE] = [
  new RegExp(String.raw`difference\((${OPERAND}), (${OPERAND})\)`, 'g'),
  new RegExp(String.raw`earlier\(context, (${NAMES}), (${NAMES})\)`, 'g'),
  new RegExp(String.raw`amountIn\((${PATH})\)`, 'g'),
  new RegExp(String.raw`dayOf\((${PATH})\)`, 'g'),
  new RegExp(String.raw`'[^']*'|${PATH}`, 'g'),
]
const namesIn = (code: string): string[] => Array.from(code.matchAll(/'([^']*)'/g), ([, name = '']) => unquoted(name))

/** The functions of learned code in words. */
const saidOf = (code: string): string =>
  code
    .replaceAll(
      ITEM,
      (_, not: string, path: string, item: string, of?: string) =>
        `${path} has ${not ? 'no' : 'an'} item ${of === undefined ? '' : `whose ${of} is `}${item}`,
    )
    .replaceAll(OF_ITEMS, (_, of: string, path: string, name: string) => `${of} of ${path}.${name}`)
    .replaceAll(NUMBER, (_, read: string) => read)
    .replaceAll(
      SAYS,
      (_, not: string, path: string, first: string | undefined, words: string) =>
        `${path} ${not ? 'does not ' : ''}${first ? 'begin' : 'say'}${not ? '' : 's'}${first ? ' with' : ''} '${words}'`,
    )
    .replaceAll(CHANGE, '$1 minus $2')
    .replaceAll(AMOUNT, '$1')
    .replaceAll(DAY, 'the day of $1')
    .replaceAll(EARLIER, (_, key: string, path: string) => earlierWords({ key: namesIn(key), path: namesIn(path) }))
    .replaceAll('typeBefore(context)', 'the type of the last event of another type')

/** Code as people read it. */
function readable(code: string): string {
  const said = saidOf(code).replaceAll(WHERE, (part) => (part.startsWith("'") ? part : nameOfPath(pathIn(part))))
  const parts = said.split(/('[^']*')/)
  const words = parts.map((part) =>
    part.startsWith("'") ? JSON.stringify(unquoted(part.slice(1, -1))) : part.replaceAll(/context\.(?:event\.)?/g, ''),
  )
  return shortened(words.join(''), LONGEST)
}

const shown = (value: unknown): string => (value === undefined ? 'missing' : shortened(JSON.stringify(value) ?? 'missing', LONGEST_VALUE))
const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most)}…` : text)

function pointsOf(program: Explaining, weights: string, table: NonNullable<Explained['table']>, saw: Saw): Points | null {
  const scorer = unpackScorer(weights)
  if (scorer === null) return null
  const sums = new Map<string, Map<number, number>>()
  const add = (says: string, own: number, points: number): void => {
    const of = sums.get(says) ?? new Map<number, number>()
    sums.set(says, of.set(own, (of.get(own) ?? 0) + points))
  }
  for (const [piece, name] of namedPieces(saw)) {
    const weighed = scorer.pieces.get(piece)
    if (weighed) for (const [own, points] of weighed) add(pieceWords(name, saw), own, points)
  }
  for (const [own, column, points, value, low, high] of table.splits)
    add(splitWords(program.columns[column] ?? '', { value, low, high }), own, points)
  const side = (own: number, points: number): Side => ({
    decision: program.decisions.get(own) ?? null,
    points,
    spoke: [...sums]
      .flatMap(([says, of]) => ((of.get(own) ?? 0) === 0 ? [] : [{ says, points: of.get(own) ?? 0 }]))
      .sort((one, other) => Math.abs(other.points) - Math.abs(one.points))
      .slice(0, MOST_SPOKE),
  })
  const {
    best,
    second,
    points: [most, next],
    lead,
  } = table
  return { best: side(best, most), second: side(second, next), lead: most - next, needed: lead }
}

/** Letters count with the first word that has them. */
// oxlint-disable-next-line typescript/consistent-return -- the switch is exhaustive
function pieceWords(name: PieceName, saw: Saw): string {
  switch (name.is) {
    case 'present':
      return `${nameOfPath(name.path)} is there`
    case 'equal':
      return `${nameOfPath(name.path)} is ${shown(name.value)}`
    case 'contains':
      return `${nameOfPath(name.of === undefined ? name.path : [...name.path, name.of])} has ${shown(name.value)}`
    case 'says':
      return `${nameOfPath(name.path)} ${name.words.startsWith('^ ') ? 'begins with' : 'says'} ${shown(name.words.replace(/^\^ /, ''))}`
    case 'spells': {
      const value = valueAt(saw, name.path)
      const word = typeof value === 'string' ? wordsOf(value).find((one) => ` ${one} `.includes(name.letters)) : undefined
      return `${nameOfPath(name.path)} says ${shown(word ?? name.letters)}`
    }
    case 'follows':
      return `the events before are ${shown(name.types)}`
  }
}

function splitWords(name: string, { value, low, high }: { value: unknown; low: number | null; high: number | null }): string {
  if (Array.isArray(value)) return `${name} is missing`
  if (typeof value !== 'number') return `${name} = ${shown(value)}`
  const bounds = [...(low === null ? [] : [`>= ${low}`]), ...(high === null ? [] : [`< ${high}`])]
  return bounds.length === 0 ? `${name} is a number` : `${name} ${bounds.join(' and ')}`
}
