import { cuesOf, scoreOf, tauOf } from '../score.ts'
import type { GateDecision, GateRequest, Need, StageOutcome } from './decision.ts'

export type ScoreOutcome = StageOutcome & { score: NonNullable<GateDecision['score']> }

export function scoreOutcome(request: GateRequest): ScoreOutcome {
  const { manifest, recent_success, default_tau_ratio } = request
  const { score, components } = scoreOf(manifest, cuesOf(request), recent_success)
  const tau = tauOf(manifest, default_tau_ratio)
  const passed = score >= tau
  const detail = `${score} of ${tau} points: ${components.map(({ name, weight, hit }) => `${name} ${hit ? weight : `0 of ${weight}`}`).join(', ')}`
  const cues = components.filter(({ hit, weight }) => !hit && weight > 0).map(({ name }) => name)
  const short_by = tau - score
  const message = `${short_by} points are missing; these cues would add some: ${cues.join(', ') || 'none'}`
  const needs: Need[] = passed ? [] : [{ need: 'score', short_by, cues, message }]
  return { checks: [{ check: 'score', passed, detail }], needs, score: { score, tau, components } }
}
