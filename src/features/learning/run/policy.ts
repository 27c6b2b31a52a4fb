import { canonicalJson, type JsonFields } from '../../../base/json.ts'
import type { Certificate } from '../../../contract/certificate.ts'
import type { Agreement } from '../../../contract/agreement.ts'
import { actsIn, comparisonsIn } from '../../../evidence/certificate.ts'
import { type CountsOfActs, lackingTogether } from '../../../evidence/strata.ts'
import type { Episode, EpisodeAct } from '../episode.ts'
import { wordsIn, type Replies } from '../../../contract/words.ts'
import { NOTHING, withoutWords } from '../reflexes/classes.ts'
import type { LearnedReflexes } from '../reflexes/learn.ts'
import { decisionId, type LearnedReflex } from '../reflexes/write.ts'

/** Decisions before the first learning; then a quarter more, or a step that no reflex took. */
export const FIRST = 200
const GROWTH = 1.25
export const STEP = 75
/** A first version is proved once it would take this share of decisions. */
export const WORTH = 0.85
/** From so many on, less and less has to be enough. */
const LONG = { from: 500, to: 1500, covers: 0.3 } as const
const LEAST_FORECAST = 0.15
/**
 * A version that would take this much more replaces one that is being proved, whose comparisons are
 * then lost. Less is enough for one with foreseen comparisons.
 */
const MUCH_BETTER = 0.25
const BETTER = 0.02
/**
 * A version replaces it, too, that lacks less than this share of the agreements that it lacks: one
 * that errs in one act is proved late. It must not take this much less.
 */
const MUCH_NEARER = 0.5
/** A version that lacks no more than these agreements is left to its proof. */
const FEW = 20
const LITTLE_WORSE = 0.1
/** Learning is not worth it while the slow path decides less. */
export const LEAST_SLOW = 0.02
/** If more is disputed, nothing was learned that could tell a mistake. */
const MOST_DISPUTED = 0.1
/** The number of times that a run asks again and learns again. */
export const SETTLINGS = 3

/** Decisions of one tool, reply, skill or event type, or to do nothing. */
export const stratumOf = (decision: string): string => decision.split(' ').slice(0, 2).join(' ')
export const stratumOfAct = (act: { kind: string; name: string } | null): string => (act === null ? NOTHING : `${act.kind} ${act.name}`)

/** Reflexes that were learned together, in one way, and use the same tools. */
export type Offer = {
  strata: readonly string[]
  reflexes: LearnedReflex[]
  /**
   * Share of such decisions that it would have taken, by the newer part of its history. Where a run
   * offers rules and a table, those that the other of the two takes are not left to it.
   */
  forecast: number
}

export function offersOf({ reflexes, judged }: Pick<LearnedReflexes, 'reflexes' | 'judged'>): Offer[] {
  const groups = Map.groupBy(reflexes, ({ by, decisions }) => JSON.stringify([by, [...new Set(decisions.map(stratumOf))].sort()]))
  return [...groups].map(([key, own]) => {
    const [by, strata] = JSON.parse(key) as [LearnedReflex['by'], string[]]
    const taken = new Set(reflexes.flatMap((other) => (other.by === by ? [] : other.decisions)))
    const left = judged.filter(({ decision }) => strata.includes(stratumOf(decision)) && !taken.has(decision))
    const decided = left.reduce((sum, { held_out }) => sum + held_out.n, 0)
    return { strata, reflexes: own, forecast: own.reduce((sum, { evidence }) => sum + evidence.held_out.agreed, 0) / decided }
  })
}

/** A version of an earlier run. `decisions`: as `decisionId` names them; missing in older ones. */
type Earlier = { id: string; strata: readonly string[]; decisions?: readonly string[] }

/**
 * Tells the offers of a run which earlier versions take some of their decisions. Rules and a table
 * of one run share strata and no decision. A version whose decisions no offer has any more, as
 * where their arguments changed, goes by its strata.
 */
export function versionsLike<Version extends Earlier>(versions: readonly Version[], offers: readonly Offer[]): (offer: Offer) => Version[] {
  const isBoth = new Set(offers.flatMap(({ reflexes }) => reflexes.map(({ by }) => by))).size > 1
  const decides = ({ id, decisions }: Version, { reflexes }: Offer): boolean =>
    reflexes.some((reflex) => isLater(id, reflex) || reflex.decisions.some((one) => decisions?.includes(decisionId(one))))
  const like = versions.map((version) => ({
    version,
    isByDecision: isBoth && version.decisions !== undefined && offers.some((offer) => decides(version, offer)),
  }))
  return (offer) =>
    like.flatMap(({ version, isByDecision }) => {
      const isLike = isByDecision ? decides(version, offer) : version.strata.some((one) => offer.strata.includes(one))
      return isLike ? [version] : []
    })
}

/** True if such a version is one of the reflex itself. */
export const isLater = (id: string, reflex: Pick<LearnedReflex, 'id'>): boolean => id.startsWith(`${reflex.id}.`)

/** The number of decisions at which it is worth it to learn again. */
export const nextAt = (decisions: number, has_taken_over: boolean): number =>
  has_taken_over ? decisions + STEP : Math.ceil(decisions * GROWTH)

/** The share of all newer decisions that what was learned would have taken rightly. */
export function coverageOf({ judged }: Pick<LearnedReflexes, 'judged'>): number {
  const taken = judged.reduce((sum, { held_out }) => sum + held_out.agreed, 0)
  return taken / judged.reduce((sum, { held_out }) => sum + held_out.n, 1)
}

/**
 * True if a first version is proved now, false to wait for a better one: once it acts, a second is
 * proved on what the first leaves over, which is little. `covers`: what was learned would take.
 */
export function isWorthProof(covers: number, episodes: number): boolean {
  const waited = Math.min(1, Math.max(0, (episodes - LONG.from) / (LONG.to - LONG.from)))
  return covers > WORTH - (WORTH - LONG.covers) * waited
}

/** Comparisons of what is being proved, and the share of decisions that it would take. */
export type InProof = { forecast: number; compared: CountsOfActs }

/**
 * The reason not to prove an offer. `known`: its versions that are being proved. `foreseen`: the
 * comparisons that it has already; null: none count.
 */
export function offerRefusal(
  { forecast }: Offer,
  { known, foreseen, agreement }: { known: readonly InProof[]; foreseen: CountsOfActs | null; agreement: Agreement },
): string | null {
  const share = `${Math.round(forecast * 100)} %`
  if (!(forecast >= LEAST_FORECAST)) return `it would take only ${share} of such decisions`
  const lacks = (compared: CountsOfActs): number => lackingTogether({ least: { agreement, support: 0 }, noise: 0 }, compared)
  const [own_lacks, known_lacks] = [lacks(foreseen ?? []), lacks(known.flatMap(({ compared }) => compared))]
  const isNearer = foreseen !== null && known_lacks > FEW && own_lacks < known_lacks * MUCH_NEARER
  // Else two offers might replace each other for ever: the nearer one, and the one that takes more.
  const isFarther = own_lacks > FEW && known_lacks < own_lacks * MUCH_NEARER
  const best = Math.max(...known.map((one) => one.forecast))
  // A forecast of 0 is of a version that has an act refuted.
  const less = Math.max(0, forecast - (foreseen && !isFarther ? BETTER : MUCH_BETTER))
  if (best <= less || (isNearer && forecast > best - LITTLE_WORSE)) return null
  return `it would take ${share} of such decisions; a version that would take ${Math.round(best * 100)} % is being proved`
}

/**
 * A version that is being proved, as a later offer is compared with it. One that has an act refuted
 * keeps no offer waiting: the refuted act acts in a later version only. `certificate`: undefined
 * before its scope has reported a comparison.
 */
export function inProof<Registered extends { forecast: number; foreseen?: CountsOfActs }>(
  version: Registered,
  certificate: Pick<Certificate, 'strata' | 'foreseen'> | undefined,
): Registered & InProof {
  const acts = certificate ? actsIn(certificate) : []
  const isRefuted = acts.some(({ state, person }) => state === 'refuted' && person === null)
  return {
    ...version,
    forecast: isRefuted ? 0 : version.forecast,
    compared: certificate ? comparisonsIn(certificate) : (version.foreseen ?? []),
  }
}

/** The disputed events that are worth asking about, each once. */
export function worthAsking(disputed: readonly string[], episodes: number, isSettled: (id: string) => boolean): string[] {
  return disputed.length > episodes * MOST_DISPUTED ? [] : disputed.filter((id) => !isSettled(id))
}

/** The decision that most answers of the slow path have; the first one if none has two. */
export function majority(answers: readonly [EpisodeAct[], ...EpisodeAct[][]]): EpisodeAct[] {
  return answers.find((one) => answers.filter((other) => same(one, other)).length >= 2) ?? answers[0]
}

/**
 * The decision of most answers, if it is another one than was taken; else null. Words that are no
 * part of a decision, or that may vary, differ from answer to answer.
 */
export function otherDecision(
  { acts, saw }: Pick<Episode, 'acts' | 'saw'>,
  answers: readonly EpisodeAct[][],
  replies: Replies,
): EpisodeAct[] | null {
  const words = wordsIn(replies, saw.event)
  const all = [acts, ...answers]
  const isExact = words === 'exact' && (replies !== 'heard' || all.some((one) => all.filter((other) => same(one, other)).length > 1))
  const decided = (one: readonly EpisodeAct[]) => [...(isExact ? one : withoutWords(one))]
  const before = decided(acts)
  const now = majority([before, ...answers.map(decided)])
  if (same(now, before)) return null
  // Any of the words will do.
  return words !== 'none' ? (answers.find((one) => same(decided(one), now)) ?? now) : now
}

/** Older decisions that were equal, from which on a decision is known by its arguments. */
const LEAST_EQUAL = 20

/**
 * Episodes that still teach after a drift at the place `since`: older ones that a drifted reflex
 * decides (`fired`), or that were decided like those, do not. If its wrong decisions since then
 * are equal to many older ones, only those are forgotten, and what is right instead of them.
 */
export function withoutForgotten(episodes: readonly Episode[], fired: readonly (readonly EpisodeAct[] | null)[], since: number): Episode[] {
  const keys = episodes.map(({ acts }) => keyOf(withoutWords(acts)))
  const own = fired.map((acts) => acts && keyOf(withoutWords(acts)))
  const isOld = (at: number): boolean => (episodes[at]?.log_seq ?? 0) < since
  const older = Map.groupBy(
    keys.filter((_, at) => isOld(at)),
    (key) => key,
  )
  const wrong = own.flatMap((key, at) => (key === null || isOld(at) || key === keys[at] ? [] : [[key, keys[at]] as const]))
  const areKnown = wrong.length > 0 && wrong.every(([key]) => (older.get(key)?.length ?? 0) >= LEAST_EQUAL)
  const forgotten = new Set<unknown>(areKnown ? wrong.flat() : own.filter((key) => key !== null))
  return episodes.filter((_, at) => !isOld(at) || !(forgotten.has(keys[at]) || forgotten.has(own[at])))
}

export const same = (one: readonly EpisodeAct[], other: readonly EpisodeAct[]): boolean => keyOf(one) === keyOf(other)
const keyOf = (acts: readonly EpisodeAct[]): string =>
  canonicalJson(acts.map(({ kind, name, input }): JsonFields => ({ kind, name, input })))
