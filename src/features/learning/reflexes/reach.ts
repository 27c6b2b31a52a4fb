import { canonicalJson } from '../../../base/json.ts'
import type { Steps } from '../../../base/steps.ts'
import type { Agreement } from '../../../contract/agreement.ts'
import type { Risk } from '../../../contract/risk.ts'
import { barAt, boundsOf, neededAt } from '../../../evidence/e-process.ts'
import { NAMING } from '../../../evidence/novelty.ts'
import type { Reach } from '../contract/runs.ts'
import type { Episode } from '../episode.ts'
import { actsOfClass, type Classes, type DecisionClass, nameOf } from './classes.ts'
import type { HeldOut } from './judge.ts'

/** `errors`: for each class, the share of wrong decisions if all are taken; null: not judged. */
type Learned = { classes: Classes; byClass: readonly HeldOut[]; errors: readonly (number | null)[]; agreement: Agreement }
type ActOf = { act: string; risk: Risk; own: readonly number[] }

/** Pairs of equal events that a share needs. */
const LEAST_PAIRS = 20
const STEP = 100

/**
 * For each act, what can be reached at its bound. A teacher who contradicts itself in the share
 * `error` of its decisions leaves any method with (error − allowed) / (1 − allowed) of them that
 * must stay with it, if at most the share `allowed` of the others may be wrong.
 */
export function* reachOf(episodes: readonly Episode[], learned: Learned): Steps<Reach[]> {
  const { classes, byClass, agreement } = learned
  const acts = actsOf(classes.classes)
  const contradicted = yield* contradictionsOf(episodes, { of: classes.of, acts })
  const counts = acts.map(({ own }) => classes.of.reduce((sum, one) => sum + (own.includes(one) ? 1 : 0), 0))
  const taken = acts.map(({ own }) => shareTaken(own, byClass))
  return acts.map(({ act, risk, own }, place): Reach => {
    const { alone, together } = boundsOf(agreement, act)
    const bound = together ?? alone
    const error = contradicted[place] ?? meanOf(own, learned)
    const share = (at: number): number => ((counts[at] ?? 0) / Math.max(1, episodes.length)) * (taken[at] ?? 0)
    const alike = acts.flatMap((other, at) => (other.risk === risk && boundsOf(agreement, other.act).together !== null ? [at] : []))
    const decisions = (agreements: number, rate: number): number => (rate === 0 ? Infinity : Math.ceil(agreements / rate))
    const by_itself = decisions(agreementsFor(bound), share(place))
    const all =
      together === null
        ? 0
        : decisions(
            agreementsFor(together),
            alike.reduce((sum, at) => sum + share(at), 0),
          )
    const more = Math.min(by_itself, decisions(agreementsFor(alone), share(place)) + all)
    const usages = own.flatMap((one) => byClass[one]?.hits ?? []).flatMap((index) => episodes[index]?.usage.cost_usd ?? [])
    return {
      act,
      bound,
      decisions: counts[place] ?? 0,
      error,
      error_by: error === null ? null : contradicted[place] == null ? 'learned' : 'repeats',
      must_leave: error === null ? null : Math.max(0, (error - (1 - bound)) / bound),
      decides: taken[place] ?? 0,
      needs: Number.isFinite(more) ? more : null,
      saves_usd: usages.reduce((sum, cost) => sum + cost, 0),
    }
  })
}

const agreementsFor = (bound: number): number => neededAt(barAt(bound), { agreed: 0, disagreed: 0 })

/** The acts of the decisions, each with its classes. */
function actsOf(classes: readonly DecisionClass[]): ActOf[] {
  const named = classes.map((decision, own) => ({ own, act: nameOf(decision), risk: riskOf(actsOfClass(decision)) }))
  return Array.from(
    Map.groupBy(named, ({ act }) => act),
    ([act, all]) => ({
      act,
      risk: all[0]?.risk ?? 'inside',
      own: all.map(({ own }) => own),
    }),
  )
}

/** The tools that a call can be undone by, or repeated under a key, are not known here. */
const riskOf = (acts: DecisionClass['acts']): Risk => (acts.every(({ kind }) => kind === 'reply' || kind === 'note') ? 'inside' : 'outside')

/** The share of the decisions of an act that would be taken rightly. */
function shareTaken(own: readonly number[], byClass: readonly HeldOut[]): number {
  const n = own.reduce((sum, one) => sum + (byClass[one]?.n ?? 0), 0)
  const agreed = own.reduce((sum, one) => sum + (byClass[one]?.agreed ?? 0), 0)
  return n === 0 ? 0 : Math.min(1, agreed / n)
}

/** The mean over the classes of an act, by their numbers of decisions. */
function meanOf(own: readonly number[], { errors, byClass }: Learned): number | null {
  const known = own.flatMap((one) => {
    const error = errors[one]
    return error == null ? [] : [{ error, n: byClass[one]?.n ?? 0 }]
  })
  const n = known.reduce((sum, one) => sum + one.n, 0)
  return n === 0 ? null : known.reduce((sum, one) => sum + one.error * one.n, 0) / n
}

/**
 * For each act, the share of its decisions that differ from what the teacher decides mostly on
 * equal events, by pairs of them; null if few are equal.
 */
function* contradictionsOf(
  episodes: readonly Episode[],
  { of, acts }: Pick<Classes, 'of'> & { acts: readonly ActOf[] },
): Steps<(number | null)[]> {
  const keys: string[] = []
  for (const { saw } of episodes) {
    if (keys.length % STEP === 0) yield
    const fields = Object.entries(saw.event).filter(([name]) => !NAMING.has(name))
    keys.push(canonicalJson(Object.fromEntries(fields)))
  }
  const actAt = new Map(acts.flatMap(({ own }, place) => own.map((one) => [one, place] as const)))
  const pairs = acts.map(() => ({ all: 0, differ: 0 }))
  for (const [, same] of Map.groupBy(keys.keys(), (index) => keys[index] ?? '')) {
    if (same.length < 2) continue
    const counts = new Map<number, number>()
    for (const index of same) counts.set(of[index] ?? -1, (counts.get(of[index] ?? -1) ?? 0) + 1)
    for (const [own, count] of counts) {
      const pair = pairs[actAt.get(own) ?? -1]
      if (!pair) continue
      pair.all += count
      pair.differ += (count * (same.length - count)) / (same.length - 1)
    }
  }
  return pairs.map(({ all, differ }) => (all < LEAST_PAIRS ? null : minority(differ / all)))
}

/** The share of the rarer of two answers, from the share of pairs that differ. */
const minority = (differ: number): number => (1 - Math.sqrt(1 - 2 * Math.min(differ, 0.5))) / 2
