import { countSigns, signsOf } from '../../../evidence/branches.ts'
import { actNameOf } from '../../../contract/act-name.ts'
import type { Action } from '../../../contract/action.ts'
import { type Agreement, DEFAULT_AGREEMENT } from '../../../contract/agreement.ts'
import type { Teacher } from '../../../contract/certificate.ts'
import { wordsFor, type Replies } from '../../../contract/words.ts'
import { fnv1a } from '../../../base/fnv1a.ts'
import { isMasked } from '../../../base/secrets.ts'
import { canonicalJson, type Json } from '../../../base/json.ts'
import { actsOnPath, needsOutput, outputsAsked } from '../../../reflexes/sequence.ts'
import type { Steps } from '../../../base/steps.ts'
import { teacherChange } from '../../../evidence/certificate.ts'
import type { Foreseen, ForeseenAct } from '../../../contract/certificate.ts'
import { emptyTaught, teachShape } from '../../../evidence/drift.ts'
import { noValues, teachValues, traitsOf } from '../../../evidence/novelty.ts'
import { shapeOf } from '../../../evidence/shape.ts'
import { REST, speaksFor } from '../../../evidence/strata.ts'
import { actsOfAction } from '../episodes/decided.ts'
import type { Episode, EpisodeAct, Saw } from '../episode.ts'
import { withoutWords } from '../reflexes/classes.ts'
import { type LearnedReflexes, learnReflexesInSteps, type ReflexLearnOptions } from '../reflexes/learn.ts'
import type { LearnedReflex } from '../reflexes/write.ts'

/** Runs code on what was seen. `key` names the code. */
export type Fires = (program: { key: string; code: string }, saw: Saw) => Action | null

/** The decisions that teach what later ones are compared with: each time half as many more. */
const FIRST = 200
const GROWTH = 1.5

/** An earlier learning, and what it decided later. Null: nothing. */
type Lesson = { programs: { id: string; key: string; code: string }[]; fired: Map<string, { id: string; action: Action } | null> }
/** The earlier learnings of a scope, by the decisions that taught them: none is repeated. */
export type Lessons = Map<string, Lesson>

/** A decision that an earlier learning took. `reflex`: its id. */
export type Foresight = { index: number; reflex: string; action: Action; agreed: boolean }

/**
 * Compares each decision with what was learned from the ones before it alone. As in shadow mode, no
 * decision taught what it is compared with.
 */
export function* foreseeInSteps(
  episodes: readonly Episode[],
  options: ReflexLearnOptions,
  { fires, lessons }: { fires: Fires; lessons: Lessons },
): Steps<Foresight[]> {
  const found: Foresight[] = []
  const keys = yield* keysOf(
    episodes,
    fnv1a(
      canonicalJson({
        agreement: options.agreement ?? null,
        replies: options.replies ?? null,
        trusted: [...(options.trusted ?? [])].sort(),
      }),
    ),
  )
  const used = new Set<string>()
  for (let cut = FIRST; cut < episodes.length; cut = Math.ceil(cut * GROWTH)) {
    const key = `${cut} ${keys[cut - 1]}`
    used.add(key)
    const lesson = lessons.get(key) ?? lessonOf(key, yield* learnReflexesInSteps(episodes.slice(0, cut), options))
    lessons.set(key, lesson)
    const to = Math.min(episodes.length, Math.ceil(cut * GROWTH))
    for (let index = cut; index < to; index += 1) {
      const episode = episodes[index] as Episode
      const known = lesson.fired.get(episode.id)
      if (known === undefined) yield
      const fired = known === undefined ? fireIn(lesson, episode, fires) : known
      lesson.fired.set(episode.id, fired)
      const agreed = fired && agrees(fired.action, episode, options.replies ?? 'heard')
      if (fired !== null && agreed !== null) found.push({ index, reflex: fired.id, action: fired.action, agreed })
    }
  }
  for (const key of lessons.keys()) if (!used.has(key)) lessons.delete(key)
  return found
}

const lessonOf = (key: string, { reflexes }: { reflexes: readonly LearnedReflex[] }): Lesson => ({
  programs: reflexes.map(({ id, code }, at) => ({ id, code, key: `${key} ${at}` })),
  fired: new Map(),
})

function fireIn({ programs }: Lesson, { saw }: Episode, fires: Fires): { id: string; action: Action } | null {
  for (const program of programs) {
    const action = fires(program, saw)
    if (action !== null) return { id: program.id, action }
  }
  return null
}

/** Null if the outputs of the decision are for no branch of the sequence, or not known. */
function agrees(action: Action, { acts, saw }: Episode, replies: Replies): boolean | null {
  const words = wordsFor(action, replies, saw.event)
  const counted = (all: readonly EpisodeAct[]): readonly EpisodeAct[] => (words === 'exact' ? all : withoutWords(all))
  const decided = counted(acts)
  const outputs = decided.map(({ output }) => output as Json | undefined)
  const is_any = action.action_type === 'sequence' && action.any_order === true
  const of = (all: readonly EpisodeAct[]): string => {
    const keys = counted(all).map(({ kind, name, input }) => canonicalJson({ kind, name, input }))
    return (is_any ? keys.sort() : keys).join()
  }
  // The branch of what the log masks is not known.
  if (action.action_type === 'sequence' && isMasked(outputsAsked(action, outputs))) return null
  if (of(actsOfAction(action, outputs)) === of(decided)) return true
  if (action.action_type !== 'sequence') return false
  const { branches: _branches, ...first } = action
  const isBegun = of(actsOfAction(first, outputs)) === of(decided.slice(0, first.acts.length))
  const isKnown = outputs.every((output, place) => output !== undefined || !needsOutput(action, place))
  return isKnown && !(isBegun && actsOnPath(action, outputs) === null) ? false : null
}

const STEP = 100

/** For each episode, a hash of all decisions up to it. */
function* keysOf(episodes: readonly Episode[], start: number): Steps<string[]> {
  const keys: string[] = []
  let hash = start
  for (const { id, acts } of episodes) {
    if (keys.length % STEP === 0) yield
    hash = fnv1a(`${id} ${canonicalJson(acts.map(({ kind, name, input }) => ({ kind, name, input })))}`, hash)
    keys.push(hash.toString(16))
  }
  return keys
}

/** The events that are worth asking about again: what was learned, or foreseen, differs. */
export const disputedIn = (
  { episodes, disputed }: Pick<LearnedReflexes, 'episodes' | 'disputed'>,
  foresights: readonly Foresight[],
): string[] => Array.from(new Set([...disputed, ...foresights.flatMap(({ index, agreed }) => (agreed ? [] : (episodes[index]?.id ?? [])))]))

export type ForeseenGrounds = {
  episodes: readonly Episode[]
  foresights: readonly Foresight[]
  fair: (episode: Episode, act: { kind: string; name: string } | null) => boolean
  agreement?: Agreement | undefined
}

/**
 * The comparisons that count for a reflex: with what was learned earlier for its decisions, while
 * the same teacher decided. Null: nothing was compared, or it speaks against the reflex, as after a
 * change of policy that the earlier lessons did not know. Its test then begins with itself.
 */
export function foreseenFor(
  reflex: Pick<LearnedReflex, 'id' | 'by' | 'names'>,
  { episodes, foresights, fair, agreement = DEFAULT_AGREEMENT }: ForeseenGrounds,
): Foreseen | null {
  const teacher = episodes.findLast((episode) => episode.teacher.by !== 'person')?.teacher
  if (!teacher) return null
  const counted = foresights.flatMap((foresight) => {
    const episode = episodes[foresight.index]
    if (!episode || teacherChange(episode.teacher, teacher) !== null) return []
    const [first = null] = actsOfAction(foresight.action)
    const is_own = (foresight.reflex === reflex.id || reflex.by === 'table') && reflex.names.includes(actNameOf(foresight.action))
    return is_own && fair(episode, first) ? [{ ...foresight, episode }] : []
  })
  const all = { act: REST, n: counted.length, k: counted.filter(({ agreed }) => agreed).length }
  if (!speaksFor({ least: { agreement, support: 0 }, noise: 0 }, all)) return null
  const acts = new Map<string, ForeseenAct>()
  let shapes = emptyTaught()
  let values = noValues()
  for (const { episode, action, agreed } of counted) {
    const { event } = episode.saw
    const act = actNameOf(action)
    const place = { seq: episode.log_seq, at: episode.at }
    const key = JSON.stringify([event.type, act])
    const known = acts.get(key) ?? { event_type: event.type, act, n: 0, k: 0, from: place, to: place, signs: {} }
    const signs = countSigns(known.signs ?? {}, signsOf(event, action))
    acts.set(key, { ...known, n: known.n + 1, k: known.k + (agreed ? 1 : 0), to: place, signs })
    shapes = teachShape(shapes, shapeOf(event))
    if (agreed) values = teachValues(values, traitsOf(event))
  }
  return { teacher: teacher satisfies Teacher, acts: [...acts.values()], shapes: { ...shapes, values } }
}
