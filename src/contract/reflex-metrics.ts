/** Samples counted in buckets that grow by an eighth of a doubling, so that a percentile is known to some 4 %. Buckets without a sample are absent. */
export type Histogram = { buckets: Record<string, number>; count: number; max: number }

/** What one version of a reflex has done in one scope, or in several. `runs`, `fired`, `passed`, `fuel` and `duration_us` count runs in shadow too. */
export type ReflexMetrics = {
  runs: number
  fired: number
  /** Runs that did not fire, by why. */
  passed: { null: number; error: number; limit: number; invalid_action: number }
  /** Fires that its cooldown or its rate held back. */
  held_back: number
  /** Actions that were carried out. */
  acted: number
  /** Actions whose effect failed. */
  failed: number
  /** Runs that acted on nothing, and how their fires compare with what was decided instead; `undecided` where they could not be compared. */
  shadow: { runs: number; fired: number; agreed: number; disagreed: number; undecided: number }
  /** Actions that a turn or a person undid afterwards. */
  overruled: number
  model_calls_saved: number
  tokens_saved: number
  cost_saved_usd: number
  fuel: Histogram
  duration_us: Histogram
}
