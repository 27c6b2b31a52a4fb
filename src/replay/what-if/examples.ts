import type { LogEntry } from '../../contract/log-entry.ts'
import type { Divergence, ReplayExample } from '../../contract/reports/replay.ts'

const MOST_EXAMPLES = 10
/** Bounds the memory: changes that differ in their paths are counted apart. */
const MOST_SHAPES = 500

type Effect = { change: 'appears' | 'vanishes'; span_id: string; act: string }
type Shape = { weight: number; example: ReplayExample; alike: number }

/** Collects the most telling changes of a range: one for each way in which decisions changed. */
export class Examples {
  readonly #shapes = new Map<string, Shape>()

  add(entries: readonly LogEntry[], divergences: readonly Divergence[], effects: readonly Effect[]): void {
    if (divergences.length === 0) return
    const by_span = new Map(entries.map((entry) => [entry.span_id, entry]))
    const acting = new Map(effects.map((effect) => [effect.span_id, effect]))
    const counted = new Set<string>()
    for (const divergence of divergences) {
      const { span_id, kind } = divergence
      const entry = by_span.get(span_id)
      // One decision may differ in several places, the outermost first.
      if (!entry || counted.has(`${span_id} ${kind}`)) continue
      counted.add(`${span_id} ${kind}`)
      const { weight, why } = meaningOf(divergence, acting.get(span_id))
      const key = `${why} ${divergence.path} ${wordOf(divergence.recorded)} ${wordOf(divergence.replayed)}`
      const known = this.#shapes.get(key)
      if (known) known.alike += 1
      else if (this.#shapes.size < MOST_SHAPES) {
        const { trace_id, at, event_ids } = entry
        this.#shapes.set(key, { weight, alike: 1, example: { ...divergence, trace_id, at, event_id: event_ids[0] ?? null, why, alike: 1 } })
      }
    }
  }

  best(): ReplayExample[] {
    const ranked = [...this.#shapes.values()].toSorted((one, other) => other.weight - one.weight || other.alike - one.alike)
    return ranked.slice(0, MOST_EXAMPLES).map(({ example, alike }) => ({ ...example, alike }))
  }
}

/** How much the world outside would notice, and why. */
function meaningOf({ kind, path, recorded, replayed }: Divergence, effect: Effect | undefined): { weight: number; why: string } {
  if (effect && (kind === 'effect' || effect.act !== 'reply'))
    return { weight: 100, why: effect.change === 'appears' ? `${effect.act} would appear` : `${effect.act} would not have been` }
  if (kind === 'gate') return { weight: 90, why: `the gate would decide ${wordOf(replayed)} instead of ${wordOf(recorded)}` }
  if (kind === 'turn' && path === '') return { weight: 80, why: 'the turn would not start' }
  if (effect) return { weight: 70, why: effect.change === 'appears' ? 'a reply would appear' : 'a reply would not have been' }
  if (kind === 'overlap') return { weight: 60, why: 'the event would meet another overlap policy' }
  if (kind === 'turn' || kind === 'plan') return { weight: 50, why: `the ${kind} would end otherwise` }
  if (kind === 'filter' || kind === 'event') return { weight: 40, why: 'the event would be perceived otherwise' }
  if (kind === 'reflex') return { weight: 30, why: 'a reflex would decide otherwise' }
  return { weight: 10, why: `the ${kind} would differ` }
}

/** Values that are not words differ from decision to decision, and make no kind of their own. */
const wordOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= 30 ? value : value === null ? 'nothing' : typeof value
