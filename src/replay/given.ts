import { parseManifest, type Manifest } from '../skills/manifest/manifest.ts'
import { RecordedModel } from './recorded-model.ts'
import type { Basis, RecordedProgram } from './recording.ts'
import { Unrecorded, type Comparison } from './report.ts'
import type { ReplayHost, Source } from './source.ts'

/** All that a replay decides with. Another replay of the same recording may exchange a part. */
export type Given = {
  /** The agent, deployment and settings of the decision that an entry records. */
  basisOf: (entry: { basis?: string }) => Basis | undefined
  /** The code of a reflex, by its hash. */
  program: (hash: string | null) => RecordedProgram
  /** A skill, by the hash of its manifest. */
  manifest: (hash: string) => Manifest
  model: (parts: ConstructorParameters<typeof RecordedModel>[0]) => RecordedModel
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
})
