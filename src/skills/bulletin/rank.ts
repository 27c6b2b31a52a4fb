import type { Manifest } from '../manifest/manifest.ts'

export type Goal = {
  /** What is still to be reached, in the words of manifests' effects: `updated:appservice_image`, `work.endpoint`. */
  unmet_postconditions: readonly string[]
  /** How often each skill, by id, came next in the past. Advice only: it breaks ties. */
  transition_prior?: ReadonlyMap<string, number>
}

/** Skills that the gate allows, best first: what reaches most of the goal, then what usually comes next, then by id and version. */
export function rank<Candidate extends { manifest: Manifest }>(
  candidates: readonly Candidate[],
  { unmet_postconditions, transition_prior }: Goal,
): Candidate[] {
  const unmet = new Set(unmet_postconditions)
  const reaches = ({ manifest: { effects } }: Candidate) =>
    new Set([...effects.writes, ...effects.external].filter((effect) => unmet.has(effect))).size
  const prior = ({ manifest }: Candidate) => transition_prior?.get(manifest.id) ?? 0
  return candidates
    .map((candidate) => ({ candidate, reached: reaches(candidate), prior: prior(candidate), name: nameOf(candidate.manifest) }))
    .toSorted((left, right) => right.reached - left.reached || right.prior - left.prior || compareText(left.name, right.name))
    .map(({ candidate }) => candidate)
}

const nameOf = ({ id, version }: Manifest): string => `${id}@${version}`

const compareText = (left: string, right: string): number => (left < right ? -1 : Number(left > right))
