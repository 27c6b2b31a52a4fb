import type { BareClient } from './bare-client.ts'
import type { ReflexClient } from './reflex-client.ts'
import type { Samples } from './samples.ts'

export type Bench = { reflex: ReflexClient; bare: BareClient; quick: boolean; runs: number; progress: (text: string) => void }

/** One line of design.md's figures. `bare` is what `ours` is compared with; where there is none, `ours` itself has the target. */
export type Figure = {
  name: string
  what: string
  unit: 'events/s' | 'ms'
  target: { at_least: number } | { at_most: number }
  measure: (bench: Bench) => Promise<Samples>
}
