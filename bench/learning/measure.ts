import type { EpisodeAct } from '../../src/features/learning/episode.ts'
import type { Sandbox } from '../../src/reflexes/sandbox.ts'
import { drawOf, hashOf } from './draw.ts'
import type { Input, Item } from './inputs.ts'
import { sameActs as same, wordsOf } from './words.ts'
import { type Ask, LearningScope } from './scope.ts'

/** `decided`: without the teacher; `agreed`: of these, like the label; `calls`: its answers. */
export type Counts = { events: number; decided: number; agreed: number; calls: number }
export type Result = {
  input: string
  noise: number
  first_half: Counts
  second_half: Counts
  /** Caches of whole events and of events with numbers masked, in the second half. */
  exact_cache: Counts
  masked_cache: Counts
  /** Slowest learning, with the settling of disputes. */
  learn_ms: number
  /** Median time of a run in the sandbox. */
  run_us: number | null
  history: string[]
  refused: string[]
  code: string[]
}

const none = (): Counts => ({ events: 0, decided: 0, agreed: 0, calls: 0 })

/** Serves the events in time order: each is decided before it is learned from. */
export async function measure(
  sandbox: Sandbox,
  input: Input,
  { noise, audit, agreement, events }: { noise: number; audit: number; agreement: number; events?: number },
): Promise<Result> {
  const ask = teacherOf(input, noise)
  const scope = new LearningScope(sandbox, { audit, agreement, ask, trusted: input.trusted })
  const halves = [none(), none()] as const
  const caches = [exactKey, maskedKey].map((keyOf) => ({ known: new Map<string, EpisodeAct[]>(), keyOf, counts: none() }))
  for (const [index, item] of input.items.slice(0, events).entries()) {
    const isLate = index >= input.items.length / 2
    const before = scope.calls
    const { acts, by } = await scope.serve(item, index)
    count(halves[isLate ? 1 : 0], { acts: by === 'reflex' ? acts : null, label: item.label, calls: scope.calls - before })
    for (const cache of caches) {
      const key = cache.keyOf(item)
      const hit = cache.known.get(key) ?? null
      if (hit === null) cache.known.set(key, ask(item, 0))
      if (isLate) count(cache.counts, { acts: hit, label: item.label, calls: hit === null ? 1 : 0 })
    }
  }
  return {
    input: input.name,
    noise,
    first_half: halves[0],
    second_half: halves[1],
    exact_cache: caches[0]?.counts ?? none(),
    masked_cache: caches[1]?.counts ?? none(),
    learn_ms: Math.round(scope.learnMs),
    run_us: medianOf(scope.runs),
    history: scope.log,
    refused: (scope.learned?.refused ?? []).map(({ decision, episodes, reason }) => `${decision} (${episodes} episodes): ${reason}`),
    code: scope.active.map(({ code }) => code),
  }
}

function count(counts: Counts, { acts, label, calls }: { acts: EpisodeAct[] | null; label: EpisodeAct[]; calls: number }): void {
  counts.events += 1
  counts.calls += calls
  if (acts === null) return
  counts.decided += 1
  if (same(acts, label)) counts.agreed += 1
}

/** The label; a share of the answers belongs to another event, drawn for each attempt. */
function teacherOf(input: Input, noise: number): Ask {
  if (input.again) return input.again
  const ask = silentTeacherOf(input, noise)
  return input.speaks ? (item, attempt) => [...ask(item, attempt), wordsOf(item.id, attempt)] : ask
}

function silentTeacherOf({ items }: Input, noise: number): Ask {
  return ({ id, label }, attempt) => {
    if (drawOf(`noise ${id} ${attempt}`) >= noise) return label
    for (let step = 0; step < 50; step += 1) {
      const other = items[hashOf(`other ${id} ${attempt} ${step}`) % items.length]?.label ?? label
      if (!same(other, label)) return other
    }
    return label
  }
}

const UNTOLD = new Set(['id', 'timestamp', 'meta'])

/** A session's events are known by their types in the window. */
const exactKey = ({ saw: { event, window } }: Item): string => {
  const types = window['10m'].by_type
  return JSON.stringify([Object.entries(event).filter(([name]) => !UNTOLD.has(name)), Object.keys(types).length > 1 ? types : null])
}
const maskedKey = (item: Item): string =>
  exactKey(item)
    .replaceAll(/[\w.:-]*\d[\w.:-]*/g, '#')
    .toLowerCase()

const medianOf = (samples: readonly number[]): number | null => samples.toSorted((one, other) => one - other)[samples.length >> 1] ?? null
