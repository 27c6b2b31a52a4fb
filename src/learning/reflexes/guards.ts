import type { Episode } from '../episode.ts'
import type { Guard } from './code.ts'
import { valueAt } from './facts/condition.ts'

const MOST_VALUES = 12
const LEAST_EACH = 3
const MOST_NAMES = 60

/** Keeps a reflex to the values of fields and the names of counts that it was taught with. */
export function guardsOf(own: readonly Episode[], all: readonly Episode[]): Guard[] {
  const guards: Guard[] = []
  const fields = new Set(all.flatMap(({ saw }) => Object.keys(saw.event)))
  for (const name of [
    'type',
    ...[...fields].sort().filter((field) => !['type', 'id', 'timestamp', 'scope', 'source', 'meta'].includes(field)),
  ]) {
    const counts = new Map<string | boolean | null, number>()
    for (const { saw } of own) {
      const value = valueAt(saw, ['event', name])
      if (typeof value === 'string' || typeof value === 'boolean' || value === null) counts.set(value, (counts.get(value) ?? 0) + 1)
      if (counts.size > MOST_VALUES) break
    }
    const values = [...counts.keys()].sort((one, other) => (String(one) < String(other) ? -1 : 1))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    if (
      values.length > 0 &&
      values.length <= MOST_VALUES &&
      total === own.length &&
      (name === 'type' || Math.min(...counts.values()) >= LEAST_EACH)
    )
      guards.push({ path: ['event', name], values })
  }
  const names = new Set(all.flatMap(({ saw }) => Object.keys(saw.window['10m']?.by_type ?? {})))
  if (names.size <= MOST_NAMES) guards.push({ path: ['window', '10m', 'by_type'], names: [...names].sort() })
  return guards
}
