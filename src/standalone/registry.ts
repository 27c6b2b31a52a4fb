import { compareVersions } from '../base/semantic-version.ts'
import { checkManifest } from '../skills/check.ts'
import { isCompatible } from '../skills/manifest/compat.ts'
import type { Place } from '../skills/manifest/compat.ts'
import { sameJson } from '../base/json.ts'
import type { SkillState } from '../contract/skill.ts'
import { parseManifest, type Manifest, type FoundSkill } from '../skills/manifest/manifest.ts'
import { secretPathsOf } from '../skills/session/context.ts'
import { SkillIndex } from '../skills/bulletin/skill-index.ts'
import type { Storage } from './storage.ts'

type Registered =
  | { ok: true; outcome: 'created' | 'unchanged'; skill: FoundSkill }
  | { ok: false; reason: 'invalid'; status: 400; errors: { path: string; message: string }[] }
  /** This version is there with another content; versions never change. */
  | { ok: false; reason: 'conflict'; status: 409; errors: { path: string; message: string }[] }

export class SkillRegistry {
  readonly #storage: Storage['skills']
  readonly #probes: readonly string[]
  readonly #place: Place
  readonly #skills = new Map<string, FoundSkill>()
  #index: SkillIndex | null = null

  constructor(storage: Storage['skills'], { probes, place }: { probes: readonly string[]; place: Place }) {
    this.#storage = storage
    this.#probes = probes
    this.#place = place
    for (const skill of storage.all()) this.#skills.set(nameOf(skill.manifest), skill)
  }

  /** Adds a manifest from JSON. A known version keeps its state. */
  register(input: unknown, { state = 'active' }: { state?: SkillState | undefined } = {}): Registered {
    const parsed = parseManifest(input)
    if (!parsed.ok) return { ok: false, reason: 'invalid', status: 400, errors: parsed.errors }
    const { manifest } = parsed
    const checked = checkManifest(manifest, { tools: null, probes: this.#probes })
    if (!checked.ok) return { ok: false, reason: 'invalid', status: 400, errors: checked.errors }
    const known = this.#skills.get(nameOf(manifest))
    if (!known) return { ok: true, outcome: 'created', skill: this.#put({ manifest, state }) }
    if (sameJson(known.manifest, manifest)) return { ok: true, outcome: 'unchanged', skill: known }
    const message = `${nameOf(manifest)} is there with another content: versions never change, so register the next one`
    return { ok: false, reason: 'conflict', status: 409, errors: [{ path: 'version', message }] }
  }

  /** Without a version: the newest active one that fits, else active, else candidate, else any. */
  find(id: string, version?: string): FoundSkill | null {
    if (version !== undefined) return this.#skills.get(`${id}@${version}`) ?? null
    const [best] = this.list()
      .filter(({ manifest }) => manifest.id === id)
      .toSorted((left, right) => this.#rank(left) - this.#rank(right) || compareVersions(right.manifest.version, left.manifest.version))
    return best ?? null
  }

  list(): FoundSkill[] {
    return [...this.#skills.values()]
  }

  /** Returns null if the version does not exist. */
  setState(id: string, version: string, state: SkillState): FoundSkill | null {
    const known = this.#skills.get(`${id}@${version}`)
    return known ? this.#put({ ...known, state }) : null
  }

  index(): SkillIndex {
    this.#index ??= new SkillIndex(this.#newest())
    return this.#index
  }

  /** A proposal names an id, so only the newest version that fits is shown. */
  #newest(): FoundSkill[] {
    const fitting = Map.groupBy(this.#skills.values(), ({ manifest }) => manifest.id)
    return [...fitting.keys()].flatMap((id) => this.find(id) ?? []).filter((skill) => this.#rank(skill) === FITS)
  }

  secretPaths(): string[] {
    return this.list().flatMap(({ manifest }) => secretPathsOf(manifest))
  }

  #rank({ state, manifest }: FoundSkill): number {
    if (state !== 'active') return state === 'candidate' ? 2 : 3
    return isCompatible(manifest.compat, this.#place) ? FITS : 1
  }

  #put(skill: FoundSkill): FoundSkill {
    this.#storage.put(skill)
    this.#skills.set(nameOf(skill.manifest), skill)
    this.#index = null
    return skill
  }
}

const nameOf = ({ id, version }: Manifest): string => `${id}@${version}`

/** The rank of an active version that fits here. */
const FITS = 0
