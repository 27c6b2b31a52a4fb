import { parseManifest, type Manifest } from '../../skills/manifest/manifest.ts'
import type { Arrival, InFlight } from '../../contract/event-record.ts'
import type { EntryOf, ReflexEntry } from '../../contract/log-entry.ts'
import type { ReflexReference } from '../../contract/reflex.ts'
import type { ReactionDecision, ChainLink } from '../../reflexes/decide.ts'
import type { ReflexHistory } from '../../reflexes/history.ts'
import type { ReflexContext } from '../../reflexes/reflex-context.ts'
import { RecordedModel } from './recorded-model.ts'
import type { Basis, RecordedEvent, RecordedProgram } from './recording.ts'
import { Unrecorded, type Comparison } from './report.ts'
import type { ReplayHost, Source } from './source.ts'

/** An accepted event, and the entries of the reflexes that ran on it. */
export type GivenEvent = { accepted: EntryOf<'event-accepted'>; event: RecordedEvent; steps: readonly ReflexEntry[] }

/** The changes that earlier decisions, decided otherwise, make to the inputs of later ones. */
export type Departures = {
  /** Why the event would not exist; null if it would. */
  absent: (judged: GivenEvent) => string | null
  link: (reference: ReflexReference, steps: readonly ReflexEntry[]) => ChainLink
  context: (context: ReflexContext) => ReflexContext
  history: (who: string, recorded: ReflexHistory) => ReflexHistory
  carriedOut: (reflex_id: string, idempotence_key: string, steps: readonly ReflexEntry[]) => boolean
  /** Notes a decision. `recorded` is the filters' verdict, `before` gives recorded histories. */
  decided: (judged: GivenEvent, decision: ReactionDecision, recorded: { perceived: string; before: (who: string) => ReflexHistory }) => void
  /** The turn that an event would meet, or null. A text says why it is unknown. */
  met: (judged: GivenEvent, started: EntryOf<'turn-started'> | undefined) => InFlight | string | null
  /** Notes what the overlap policy did with an event that waits for a turn in both worlds. */
  arrived: (judged: GivenEvent, arrivals: { recorded: Arrival; replayed: Arrival }) => void
  /** Why a turn would have had another time, null if it would not. */
  moved: (started: EntryOf<'turn-started'>) => string | null
  /** The turn as it would have started, or null. */
  turn: (started: EntryOf<'turn-started'>) => EntryOf<'turn-started'> | null
}

/** All that a replay decides with. Another replay of the same recording may exchange a part. */
export type Given = {
  /** The agent, deployment and settings of the decision that an entry records. */
  basisOf: (entry: { basis?: string }) => Basis | undefined
  /** The code of a reflex, by its hash. */
  program: (hash: string | null) => RecordedProgram
  manifest: (hash: string) => Manifest
  model: (parts: ConstructorParameters<typeof RecordedModel>[0]) => RecordedModel
  /** Null if all is as recorded. */
  departures: Departures | null
}

/** The recording, what decides again, and the differences found. */
export type Around = { source: Source; host: ReplayHost; given: Given; comparison: Comparison }

/** Everything as it was recorded. */
export const asRecorded = ({ recording: { parts, programs, manifests } }: Source): Given => ({
  basisOf: ({ basis }) => (basis === undefined ? undefined : (parts[basis] as Basis | undefined)),
  program(hash) {
    const program = hash === null ? undefined : programs[hash]
    if (!program) throw new Unrecorded(`the code of the reflex with the hash ${hash ?? ''} is not in the recording`)
    return program
  },
  manifest(hash) {
    const parsed = parseManifest(manifests[hash])
    if (!parsed.ok) throw new Unrecorded(`the manifest with the hash ${hash} is not in the recording`)
    return parsed.manifest
  },
  model: (parts) => new RecordedModel(parts),
  departures: null,
})
