import type { Manifest } from '../manifest/manifest.ts'

/**
 * The prior of each skill, by id: how often it followed the last skill in recent runs, and in the
 * traces that it was mined from, where the last step of that skill may have been called instead.
 */
export function transitionPrior(
  runs: ReadonlyMap<string, number>,
  { last, manifests }: { last: string | null; manifests: readonly Manifest[] },
): ReadonlyMap<string, number> {
  if (last === null) return runs
  const tool = manifests.find(({ id }) => id === last)?.plan.steps.at(-1)?.tool
  const prior = new Map(runs)
  for (const { id, provenance } of manifests) {
    const { after = {} } = provenance
    const mined = (after[`skill:${last}`] ?? 0) + (tool === undefined ? 0 : (after[tool] ?? 0))
    if (mined > 0) prior.set(id, (runs.get(id) ?? 0) + mined)
  }
  return prior
}
