import type { BareClient } from './bare-client.ts'
import type { ReflexClient } from './reflex-client.ts'
import type { Samples } from './samples.ts'
import type { SandboxClient } from './sandbox-client.ts'

/** The sandbox's own server is started by the first figure that asks for it. */
export type Bench = {
  reflex: ReflexClient
  bare: BareClient
  sandbox: () => Promise<SandboxClient>
  quick: boolean
  runs: number
  progress: (text: string) => void
}

/** One line of design.md's figures. `bare` is what `ours` is compared with; where there is none, `ours` itself has the target. */
export type Figure = {
  name: string
  what: string
  unit: 'events/s' | 'ms' | 'µs' | 'MB'
  target: { at_least: number } | { at_most: number }
  measure: (bench: Bench) => Promise<Samples>
}
