import { createHash } from 'node:crypto'
import { canonicalJson } from '../../base/json.ts'
import { oncePer } from '../../base/once-per.ts'
import type { EntryHead, SkillEntryKind } from '../../contract/log-entry.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import type { SessionEntry } from '../../skills/session/ports.ts'
import { sessionHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import type { Lanes } from '../effects/wiring.ts'

type SessionLogParts = Pick<Lanes, 'log_parts' | 'basis'> & {
  shown: () => readonly Manifest[]
  goodsOf: (manifest: Manifest) => { sealed: boolean }
}

/** The entries of one session, and the manifests and settings that a replay needs with them. */
export class SessionLog {
  readonly #parts: SessionLogParts
  readonly #head: EntryHead
  /** The manifests that the session has looked up. */
  readonly #found = new Map<string, Manifest>()

  constructor(parts: SessionLogParts, head: EntryHead) {
    this.#parts = parts
    this.#head = head
  }

  found<Found extends { manifest: Manifest } | null>(skill: Found): Found {
    if (skill) this.#found.set(nameOf(skill.manifest), skill.manifest)
    return skill
  }

  readonly append = (unit: Unit, { kind: name, trace_id: _trace, ...fields }: SessionEntry): void => {
    const kind = name as SkillEntryKind
    unit.log({ ...sessionHead(this.#head, kind, fields), ...fields, ...this.#beside(unit, kind, fields), kind })
  }

  #beside(unit: Unit, kind: SkillEntryKind, fields: Record<string, unknown>): object {
    if (kind === 'blackboard-seeded') return { basis: this.#parts.basis(unit) }
    if (kind === 'bulletin-built') {
      const cards = new Set(
        (fields['cards'] as { skill_id: string; version: string }[]).map((card) => nameOf({ id: card.skill_id, ...card })),
      )
      const manifests = this.#parts.shown().filter((manifest) => cards.has(nameOf(manifest)))
      return { manifests: manifests.map((manifest) => this.#keep(unit, manifest)) }
    }
    const decided = kind === 'skill-decided' ? this.#found.get(`${String(fields['skill_id'])}@${String(fields['version'])}`) : undefined
    if (decided) this.#keep(unit, decided)
    return {}
  }

  #keep(unit: Unit, manifest: Manifest): string {
    const named = hashOf(manifest)
    // Every reader of the log would read it.
    return this.#parts.goodsOf(manifest).sealed ? named : this.#parts.log_parts.put(unit, manifest, { named })
  }
}

const nameOf = ({ id, version }: Pick<Manifest, 'id' | 'version'>): string => `${id}@${version}`

/** As `hashManifest`, which is asynchronous. */
const hashOf = oncePer((manifest: Manifest): string => createHash('sha256').update(canonicalJson(manifest)).digest('hex'))
