import { NAMING } from '../../../../evidence/novelty.ts'
import type { Saw } from '../../episode.ts'
import { REPEATS } from './condition.ts'
import type { Leaf } from './facts.ts'

const LONGEST = 2000

/**
 * For each text of the event, the number of recent events of its type with the same text; if it has
 * an address, with the same address and the same words before it, numbers aside.
 */
export function repeatsOf({ event, recent_events }: Saw): Leaf[] {
  return Object.entries(event).flatMap(([name, value]) => {
    // The windows count types.
    if (typeof value !== 'string' || name === 'type' || NAMING.has(name)) return []
    const key = keyOf(value)
    const alike = recent_events.filter((other) => other.type === event.type && keyOf(other[name]) === key)
    return [{ path: [REPEATS, name], value: alike.length }]
  })
}

function keyOf(text: unknown): unknown {
  if (typeof text !== 'string' || text.length > LONGEST) return text
  const address = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/.exec(text)?.[0]
  return address === undefined
    ? text
    : `${address} ${text
        .replaceAll(/[\d.:]+/g, '#')
        .split(' ', 8)
        .join(' ')}`
}

/** The same in learned code. */
export const REPEATS_SOURCE = `// Recent events like this one: with the same text, or the same address after the same words.
function repeats(context, name) {
  if (typeof context.event[name] !== 'string') return 0
  const key = keyOf(context.event[name])
  return context.recent_events.filter((event) => event.type === context.event.type && keyOf(event[name]) === key).length
}

function keyOf(text) {
  if (typeof text !== 'string' || text.length > ${LONGEST}) return text
  const address = /(?<![\\d.])\\d{1,3}(?:\\.\\d{1,3}){3}(?![\\d.])/.exec(text)?.[0]
  return address === undefined ? text : \`\${address} \${text.replace(/[\\d.:]+/g, '#').split(' ', 8).join(' ')}\`
}`
