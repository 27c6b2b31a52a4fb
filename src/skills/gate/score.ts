import type { Manifest } from '../manifest/manifest.ts'
import { cuesOf, scoreOf, tauOf, type ScoreName } from '../bulletin/score.ts'
import type { GateDecision, GateRequest, Need, StageOutcome } from './decision.ts'

type ScoreOutcome = StageOutcome & { score: NonNullable<GateDecision['score']> }

export function scoreOutcome(request: GateRequest): ScoreOutcome {
  const { manifest, recent_success, default_tau_ratio } = request
  const { score, components } = scoreOf(manifest, cuesOf(request), recent_success)
  const tau = tauOf(manifest, default_tau_ratio)
  const passed = score >= tau
  const detail = `${score} of ${tau} points: ${components.map(({ name, weight, hit }) => `${name} ${hit ? weight : `0 of ${weight}`}`).join(', ')}`
  const cues = components.filter(({ hit, weight }) => !hit && weight > 0).map(({ name }) => name)
  const short_by = tau - score
  const message = `Score ${score}, needs ${tau}. ${hintOf(manifest, cues)}`
  const needs: Need[] = passed ? [] : [{ need: 'score', short_by, cues, message }]
  return { checks: [{ check: 'score', passed, detail }], needs, score: { score, tau, components } }
}

const MOST_WORDS = 5

/** A hint for the proposer, in the manifest's own words. */
function hintOf({ activation: { keywords_any, goal_labels, entity_types } }: Manifest, cues: readonly ScoreName[]): string {
  const ways: Partial<Record<ScoreName, string>> = {
    ...(keywords_any.length > 0 && { keyword_hit: `use a keyword in \`why\` (${some(keywords_any)})` }),
    ...(goal_labels.length > 0 && { goal_label: `set goal_labels: ${JSON.stringify(goal_labels.slice(0, MOST_WORDS))}` }),
    ...(entity_types.length > 0 && { entity_type: `name an entity of the type ${some(entity_types)}` }),
    recent_success: 'run it with success, which counts for a while',
  }
  const hint = cues.flatMap((cue) => ways[cue] ?? []).join(' or ')
  return hint === '' ? 'No cue of this skill adds more: its tau is too high.' : `${hint[0]?.toUpperCase()}${hint.slice(1)}.`
}

const some = (words: readonly string[]): string => words.slice(0, MOST_WORDS).join(', ')
