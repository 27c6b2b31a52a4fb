import { isJsonFields, jsonValue, type JsonFields } from '../../../base/json.ts'
import type { Rejected } from './runs.ts'

/** Ends the acts in the key of a decision that continues by what these returned. */
export const BY_OUTPUT = ', then by what was returned'
const MOST_TEXT = 60
const ACT = /^(tool|reply|skill|emit|note)( [^[{]*)?(\[|$)/
/** A path as a key of decisions has it, such as `["customer","name"]`. */
const PATH = /\[(?:"(?:[^"\\]|\\.)*",?)+\]/g

/**
 * The words for a decision by its key, such as `tool mail with to, subject "Hello" + reply`. An
 * argument without a value differs from one such decision to the next.
 */
export function decisionWords(key: string): string {
  if (key === 'all') return 'all decisions'
  const end = key.search(/ \{|$/)
  const first = key.slice(0, end)
  if (first.endsWith(BY_OUTPUT)) return `${decisionWords(first.slice(0, -BY_OUTPUT.length) + key.slice(end))}${BY_OUTPUT}`
  const acts = first.split(' + ')
  if (!acts.every((act) => ACT.test(act))) return key
  const fixed = jsonValue(key.slice(end + 1))
  const words = (act: string, place: number): string =>
    actWords(act, acts.length === 1 ? [] : [String(place)], isJsonFields(fixed) ? fixed : {})
  return acts.map(words).join(' + ')
}

function actWords(act: string, place: readonly string[], values: JsonFields): string {
  const paths = (act.match(PATH) ?? []).map((text) => jsonValue(text) as string[])
  const name = act.slice(0, act.search(/ \[|$/)).trim()
  const told = paths.map((path) => {
    const value = values[JSON.stringify([...place, ...path])]
    return { name: path.join('.'), value: value === undefined ? '' : ` ${cut(JSON.stringify(value))}` }
  })
  if (name === 'reply') return `reply${told.map(({ value }) => value).join('')}`
  return told.length === 0 ? name : `${name} with ${told.map((one) => one.name + one.value).join(', ')}`
}

const cut = (text: string): string => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text)

/** A reason that names arguments by their paths, in words. */
const reasonWords = (reason: string): string => reason.replace(PATH, (text) => (jsonValue(text) as string[]).join('.'))

export const rejectedWords = ({ what, reason }: Rejected): Rejected => ({ what: decisionWords(what), reason: reasonWords(reason) })
