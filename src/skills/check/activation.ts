import type { ManifestError } from './check-manifest.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { maximumScore, tauOf } from '../bulletin/score.ts'

/** Whether its cues can ever reach its threshold. */
export function activationErrors(manifest: Manifest): ManifestError[] {
  const maximum = maximumScore(manifest)
  if (maximum === 0) {
    return [
      { path: 'activation.score_weights', message: 'no cue can score: give goal labels, keywords or entity types, and a weight to them' },
    ]
  }
  const tau = tauOf(manifest)
  return tau > maximum ? [{ path: 'activation.tau', message: `is ${tau}, but all cues together score ${maximum} at most` }] : []
}
