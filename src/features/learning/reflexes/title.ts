import type { ActionTemplate, ActTemplate, DecisionClass } from './classes.ts'
import type { AtLeast, Condition, Literal } from './facts/condition.ts'
import { nameOfPath } from './scorer/tree-words.ts'

const MOST_TEXT = 40
const MOST_LITERALS = 2

const cut = (text: string): string => (text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text)
const quoted = (value: unknown): string => (typeof value === 'string' ? `"${cut(value)}"` : cut(JSON.stringify(value) ?? ''))
const words = (name: string): string => name.replaceAll(/[_\W]+/g, ' ').trim()
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/**
 * A title for people, such as `Block the address where line says "failed password"`. Equal
 * decisions and rules have equal titles.
 */
export function titleFor({ acts, branches = [] }: Titled, rules: readonly { literals: readonly Literal[] }[]): string {
  const ways = branches.map(({ decision }) => doneWords(decision.acts)).join(', or ')
  const done = `${doneWords(acts)}${ways === '' ? '' : `, then by what was returned ${ways}`}`
  const [first, ...others] = rules
  const shown = first?.literals.slice(0, MOST_LITERALS).map(literalWords) ?? []
  const when = shown.length > 0 ? ` where ${shown.join(' and ')}` : ''
  const more = others.length > 0 ? `, and in ${others.length} more ${others.length === 1 ? 'case' : 'cases'}` : ''
  return capital(`${done}${when}${more}`)
}

type Titled = Pick<DecisionClass, 'acts' | 'branches'>

const doneWords = (acts: readonly ActTemplate[]): string => (acts.length === 0 ? 'do nothing' : acts.map(actWords).join(', then '))

function actWords({ kind, name, input }: ActTemplate): string {
  if (kind === 'reply') return `reply ${textWords(input)}`
  if (kind === 'skill') return `run the skill ${name}`
  if (kind === 'emit') return `emit ${name}`
  if (kind === 'note') return `note ${name}`
  const verb = words(name.split('.').at(-1) ?? name)
  const values = 'fields' in input ? Object.entries(input.fields).map(([field, value]) => fieldWords(field, value)) : []
  return [verb, values.join(', ')].filter((part) => part !== '').join(' ')
}

const fieldWords = (name: string, value: ActionTemplate): string =>
  'constant' in value ? `${words(name)} ${quoted(value.constant)}` : `the ${words(name)}`

/** The constant text of a reply. Its slots are dots. */
function textWords(input: ActionTemplate): string {
  const [content = input] = 'fields' in input ? Object.values(input.fields) : []
  if ('constant' in content) return quoted(content.constant)
  return 'join' in content
    ? quoted(content.join.map((piece) => (typeof piece === 'string' ? piece : '…')).join(''))
    : 'with a part of the event'
}

/** A difference that is compared with 0 is said as two numbers. */
const numberWords = ({ path, minus, value }: AtLeast): string =>
  minus && value !== 0 ? `${nameOfPath(path)} minus ${nameOfPath(minus)} is` : `${nameOfPath(path)} is`
const boundWords = ({ minus, value }: AtLeast): string => (minus && value === 0 ? nameOfPath(minus) : String(value))

const literalWords = ({ condition, holds }: Literal): string => conditionWords(condition, holds ? '' : 'not ')

function conditionWords(condition: Condition, not: string): string {
  if (condition.is === 'follows') return `${not}after ${condition.types.trim()}`
  const name = nameOfPath(condition.is === 'contains' && condition.of !== undefined ? [...condition.path, condition.of] : condition.path)
  if (condition.is === 'equal') return `${name} is ${not}${quoted(condition.value)}`
  if (condition.is === 'one_of') return `${name} is ${not}${condition.values.map(quoted).join(' or ')}`
  if (condition.is === 'at_least') return `${numberWords(condition)} ${not === '' ? 'at least' : 'below'} ${boundWords(condition)}`
  if (condition.is === 'present') return `${name} is ${not}there`
  if (condition.is === 'contains') return `${name} has ${not}${quoted(condition.value)}`
  if (condition.is === 'begins') return `${name} has ${not}a word that begins with "${condition.letters}"`
  return `${name} says ${not}"${cut(condition.words)}"`
}
