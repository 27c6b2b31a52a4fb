import { oncePer } from '../../base/once-per.ts'
import { fold, holdsKeyword, tokenText, tokensOf, type TokenText } from '../manifest/names.ts'
import type { Manifest } from '../manifest/manifest.ts'

export type ScoreName = 'goal_label' | 'keyword_hit' | 'entity_type' | 'recent_success'
/** A cue, which adds its weight if it matches. `matched`: the manifest's words that matched. */
export type ScoreComponent = { name: ScoreName; weight: number; hit: boolean; matched: string[] }
type Score = { score: number; components: ScoreComponent[] }

export type Cues = { text: TokenText; goal_labels: ReadonlySet<string>; entity_types: ReadonlySet<string> }

const DEFAULT_TAU_RATIO = 0.85

export const cuesOf = (said: { text: string; goal_labels: readonly string[]; entity_types: readonly string[] }): Cues => ({
  text: tokenText(said.text),
  goal_labels: new Set(said.goal_labels.map(fold)),
  entity_types: new Set(said.entity_types.map(fold)),
})

/** The sum of the weights of all cues that hit. Weights are not negative. */
export function scoreOf(manifest: Manifest, cues: Cues, recent_success: boolean): Score {
  const { score_weights: weights } = manifest.activation
  const words = wordsOf(manifest)
  const goals = matching(words.goal_labels, (label) => cues.goal_labels.has(label))
  const entities = matching(words.entity_types, (label) => cues.entity_types.has(label))
  const keywords = matching(words.keywords, (tokens) => holdsKeyword(cues.text, tokens))
  const components: ScoreComponent[] = [
    { name: 'goal_label', weight: weights.goal_label, hit: goals.length > 0, matched: goals },
    { name: 'keyword_hit', weight: weights.keyword_hit, hit: keywords.length > 0, matched: keywords },
    { name: 'entity_type', weight: weights.entity_type, hit: entities.length > 0, matched: entities },
    { name: 'recent_success', weight: weights.recent_success, hit: recent_success, matched: [] },
  ]
  return { score: components.reduce((sum, { weight, hit }) => sum + (hit ? weight : 0), 0), components }
}

export function maximumScore({ activation }: Manifest): number {
  const { score_weights: weights, goal_labels, keywords_any, entity_types } = activation
  const possible = [
    goal_labels.length > 0 ? weights.goal_label : 0,
    keywords_any.length > 0 ? weights.keyword_hit : 0,
    entity_types.length > 0 ? weights.entity_type : 0,
    weights.recent_success,
  ]
  // In the order in which a score is summed up: the sums of fractions depend on it.
  return possible.reduce((sum, weight) => sum + weight, 0)
}

/** The threshold: the manifest's own, or the setting's share of its highest score. */
export function tauOf(manifest: Manifest, default_ratio: number = DEFAULT_TAU_RATIO): number {
  return manifest.activation.tau ?? default_ratio * maximumScore(manifest)
}

type CueWords = { goal_labels: Word<string>[]; entity_types: Word<string>[]; keywords: Word<readonly string[]>[] }
type Word<Form> = { written: string; form: Form }

/** Manifests never change, so their cues are prepared once. */
export const wordsOf = oncePer((manifest: Manifest): CueWords => {
  const { goal_labels, entity_types, keywords_any } = manifest.activation
  return {
    goal_labels: goal_labels.map((written) => ({ written, form: fold(written) })),
    entity_types: entity_types.map((written) => ({ written, form: fold(written) })),
    keywords: keywords_any.map((written) => ({ written, form: tokensOf(written) })),
  }
})

const matching = <Form>(words: readonly Word<Form>[], hits: (form: Form) => boolean): string[] =>
  words.filter(({ form }) => hits(form)).map(({ written }) => written)
