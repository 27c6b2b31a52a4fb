import { decisionWords } from '../contract/decision-words.ts'
import type { LearnedVersion } from '../contract/learner-api.ts'
import type { Evidence, EvidencePart, ReadPlace, Rejected, StoredCandidate } from '../contract/runs.ts'
import type { Agreement } from '../../../contract/agreement.ts'
import type { Foreseen } from '../../../contract/certificate.ts'
import type { CountsOfActs } from '../../../evidence/strata.ts'
import { wilsonLow } from '../../../evidence/binomial.ts'
import type { Episode, EpisodeAct } from '../episode.ts'
import type { LearnedReflexes, LearningRefusal } from '../reflexes/learn.ts'
import { decisionId, type LearnedReflex } from '../reflexes/write.ts'
import { type InProof, isLater, type Offer, offerRefusal, offersOf, versionsLike, WORTH } from './policy.ts'
import { LEARNED_BY } from '../../../contract/lists/reflexes.ts'

/** A finding of a run, as its scope registers it and as the run reports it. */
export type Find = {
  version: Omit<LearnedVersion, 'run_id'>
  candidate: Omit<StoredCandidate, 'id' | 'version' | 'mined'>
  strata: readonly string[]
  /** Its decisions, each named by `decisionId`. Finds of an earlier version have none. */
  decisions?: readonly string[]
  forecast: number
}
/** The decisions behind the numbers of a finding. */
export type Grounds = { decision: string } & Record<EvidencePart, ReadPlace[]>

/** An event that the slow path is asked about again, and its answers so far. */
export type Ask = { id: string; answers: EpisodeAct[][] }

/** A version that was registered, for later runs. */
export type RegisteredReflex = Pick<Find, 'strata' | 'decisions' | 'forecast'> & {
  id: string
  version: number
  run_id: string
  /** Its foreseen comparisons, which count until its scope has reported a certificate. */
  foreseen?: CountsOfActs
}

/**
 * The reflexes of a learning that are worth proving, those that act first, and why the others are
 * not. `proved`: versions in shadow mode that no decision refuted.
 */
export function findingsOf(
  learned: LearnedReflexes & { foreseenOf: (reflex: LearnedReflex) => Foreseen | null },
  { proved, worth, agreement }: { proved: readonly (RegisteredReflex & InProof)[]; worth: boolean; agreement: Agreement },
) {
  const rejected: Rejected[] = learned.refused.toSorted((one, other) => weightOf(other) - weightOf(one)).map(rejectedOf)
  const accepted: { offer: Offer; known: readonly RegisteredReflex[] }[] = []
  const offers = offersOf(learned)
  const likeOf = versionsLike(proved, offers)
  for (const offer of offers) {
    const known = likeOf(offer)
    const provable = new Set(known.flatMap(({ strata }) => strata))
    const isInProof = offer.strata.every((stratum) => provable.has(stratum))
    // A version that proves only a part of it does not keep the rest waiting.
    const compared_with = isInProof ? known : []
    // A later version for other decisions is judged on all of them.
    const isWorth = worth || offer.forecast >= WORTH
    const reason = isWorth
      ? offerRefusal(offer, { known: compared_with, foreseen: foreseenOfAll(offer.reflexes, learned.foreseenOf), agreement })
      : TOO_EARLY
    if (reason !== null) rejected.push(...offer.reflexes.map(({ decision }) => ({ what: decision, reason })))
    else accepted.push({ offer, known })
  }
  // A version of which a part is refused now stays for that part.
  const offered = new Set(accepted.flatMap(({ offer }) => offer.strata))
  const finds = accepted.flatMap(({ offer, known }) =>
    offer.reflexes.map((reflex, index) => {
      // The first of the new ones replaces all of the old ones.
      const replaced = known.filter(({ id, strata }) => strata.every((stratum) => offered.has(stratum)) || isLater(id, reflex))
      const replaces = index === 0 ? replaced.map(({ id, version }) => ({ id, version })) : []
      return findOf(learned, reflex, { replaces, offer })
    }),
  )
  const isNothing = ({ version }: Find): boolean => version.needs === null
  const ordered = [...finds.filter((one) => !isNothing(one)), ...finds.filter(isNothing)]
  rejected.push(...ordered.slice(MOST_FINDS).map(({ candidate }) => ({ what: candidate.decision, reason: TOO_MANY })))
  const found = ordered.slice(0, MOST_FINDS)
  const of = new Set(found.map(({ candidate }) => candidate.decision))
  const grounds = learned.reflexes.filter(({ decision }) => of.has(decision)).map((reflex) => groundsOf(learned, reflex))
  return { finds: found, grounds, rejected: rejected.slice(0, MOST_REJECTED).map(shortened) }
}

/** The foreseen comparisons of several reflexes; null if none count for one of them. */
function foreseenOfAll(reflexes: readonly LearnedReflex[], foreseenOf: (reflex: LearnedReflex) => Foreseen | null) {
  const all = reflexes.map(foreseenOf)
  return all.includes(null) ? null : all.flatMap((one) => one?.acts ?? [])
}

/** The answer of a run that finds nothing quotes the refusal of most decisions of one kind. */
const weightOf = ({ decision, episodes }: LearningRefusal): number => (decision === 'all' ? 0 : episodes)

function groundsOf({ episodes }: LearnedReflexes, { decision, evidence: { taught, held_out } }: LearnedReflex): Grounds {
  const places = (indexes: readonly number[]): ReadPlace[] => indexes.slice(-MOST_PLACES).flatMap((index) => placeAt(episodes, index))
  return { decision, train: places(taught), agreed: places(held_out.hits), differed: places(held_out.misses) }
}

/** The newest decisions behind a number: all of them are one row. */
const MOST_PLACES = 2000
/** A chain has room for a hundred reflexes. */
const MOST_FINDS = 60
export const MOST_REJECTED = 200
const MOST_TEXT = 400
const TOO_MANY = `a run registers at most ${MOST_FINDS} reflexes`

export const shortened = ({ what, reason }: Rejected): Rejected => ({ what: what.slice(0, MOST_TEXT), reason: reason.slice(0, MOST_TEXT) })

const TOO_EARLY = 'it could be proved, but what is learned would decide too little yet: a second version could not be proved on the rest'

export const rejectedOf = ({ decision, episodes, reason }: LearningRefusal): Rejected => ({
  what: decision,
  reason: `${reason} (${episodes} ${episodes === 1 ? 'decision' : 'decisions'})`,
})

function findOf(
  learned: Parameters<typeof findingsOf>[0],
  reflex: LearnedReflex,
  { replaces, offer }: { replaces: Find['version']['replaces']; offer: Offer },
): Find {
  const { id: name, title, decision, by, code } = reflex
  const evidence = evidenceOf(learned, reflex)
  const { n, covered, agreed } = evidence.held_out
  const { taught } = reflex.evidence
  const places = [0, Math.floor(taught.length / 2), taught.length - 1]
  const examples = [...new Set(places)].flatMap((at) => placeAt(learned.episodes, taught[at]))
  const description =
    `${title}${LEARNED_BY}${by === 'rules' ? 'rules' : 'a table'} from ${evidence.train.n} of ${evidence.train.of} decisions: ${decisionWords(decision)}. ` +
    (by === 'rules'
      ? `The older ones predict ${agreed} of ${covered} newer ones, of ${n} in all.`
      : `In five parts, tables of the other parts predict ${agreed} of ${covered}, of ${n} in all.`)
  return {
    version: {
      name,
      code,
      description: description.slice(0, 1000),
      needs: needsOf(learned, reflex),
      ...(reflex.branches && { branches: true }),
      replaces,
      foreseen: learned.foreseenOf(reflex),
    },
    candidate: { kind: 'reflex', decision, evidence, examples },
    strata: offer.strata,
    decisions: reflex.decisions.map(decisionId),
    forecast: offer.forecast,
  }
}

function needsOf({ episodes }: LearnedReflexes, { evidence: { taught }, acts }: LearnedReflex): LearnedVersion['needs'] {
  if (acts.length === 0 || !episodes[taught[0] ?? -1]) return null
  // A note needs no right, as a reply.
  const rights = acts.flatMap(({ kind, name }) =>
    kind === 'reply' || kind === 'note' ? [] : [{ kind: kind === 'emit' ? ('event' as const) : kind, name }],
  )
  return rights.length > 0 ? rights : [{ kind: 'reply', name: '' }]
}

function evidenceOf({ episodes }: LearnedReflexes, { evidence }: LearnedReflex): Evidence {
  const { taught, exceptions, held_out } = evidence
  const { hits, n, covered, agreed } = held_out
  const usages = hits.flatMap((index) => episodes[index]?.usage ?? [])
  const sum = (of: keyof Episode['usage']): number => usages.reduce((total, usage) => total + usage[of], 0)
  const [from = null] = placeAt(episodes, taught[0])
  const [to = null] = placeAt(episodes, taught.at(-1))
  return {
    train: { n: taught.length, of: episodes.length, exceptions, from, to },
    held_out: { n, covered, agreed, wilson_low: wilsonLow({ n: covered, k: agreed }) },
    saves: { model_calls: sum('model_calls'), tokens: sum('tokens'), cost_usd: sum('cost_usd'), latency_ms: sum('duration_ms') },
  }
}

export const placeOf = ({ log_seq, trace_id, id }: Episode): ReadPlace => ({ seq: log_seq, trace_id, event_id: id })

function placeAt(episodes: readonly Episode[], index: number | undefined): ReadPlace[] {
  const episode = episodes[index ?? -1]
  return episode ? [placeOf(episode)] : []
}
