import { isCompatible, type Place } from '../manifest/compat.ts'
import { canonicalJson } from '../../base/json.ts'
import { holdsKeyword } from '../manifest/names.ts'
import type { Compat, FoundSkill, Manifest } from '../manifest/manifest.ts'
import { wordsOf, type Cues } from './score.ts'

export type SkillQuery = { text: string; goal_labels: readonly string[]; entity_types: readonly string[]; compat: Place }

type Bucket = {
  compat: Compat
  goal_labels: Map<string, Manifest[]>
  entity_types: Map<string, Manifest[]>
  /** By a keyword's first word. */
  keywords: Map<string, { tokens: readonly string[]; manifest: Manifest }[]>
}

/**
 * The active skills by place and by cue, so that a decision among thousands looks at few. It finds
 * what a scan for compatible skills with at least one matching cue would find.
 */
export class SkillIndex {
  /** By repo, then by the whole compat; the skills that name no repo are under null. */
  readonly #buckets = new Map<string | null, Map<string, Bucket>>()
  readonly size: number

  constructor(skills: readonly FoundSkill[]) {
    const active = skills.filter(({ state }) => state === 'active')
    for (const { manifest } of active) this.#add(manifest)
    this.size = active.length
  }

  candidatesFor(cues: Cues, place: Place): Manifest[] {
    const repos = place.repo === null ? [null] : [place.repo, null]
    const buckets = repos.flatMap((repo) => [...(this.#buckets.get(repo)?.values() ?? [])])
    const found = new Set<Manifest>()
    for (const bucket of buckets) {
      if (isCompatible(bucket.compat, place)) collect(bucket, cues, found)
    }
    return [...found].sort(byName)
  }

  #add(manifest: Manifest): void {
    const bucket = this.#bucketFor(manifest.compat)
    const words = wordsOf(manifest)
    for (const { form } of words.goal_labels) listAt(bucket.goal_labels, form).push(manifest)
    for (const { form } of words.entity_types) listAt(bucket.entity_types, form).push(manifest)
    for (const { form: tokens } of words.keywords) listAt(bucket.keywords, tokens[0] ?? '').push({ tokens, manifest })
  }

  #bucketFor(compat: Compat): Bucket {
    const repo = compat.repo ?? null
    const ofRepo = this.#buckets.get(repo) ?? new Map<string, Bucket>()
    this.#buckets.set(repo, ofRepo)
    const key = canonicalJson(compat)
    const bucket = ofRepo.get(key) ?? { compat, goal_labels: new Map(), entity_types: new Map(), keywords: new Map() }
    ofRepo.set(key, bucket)
    return bucket
  }
}

function collect(bucket: Bucket, { text, goal_labels, entity_types }: Cues, found: Set<Manifest>): void {
  for (const label of goal_labels) for (const manifest of bucket.goal_labels.get(label) ?? []) found.add(manifest)
  for (const label of entity_types) for (const manifest of bucket.entity_types.get(label) ?? []) found.add(manifest)
  for (const token of text.places.keys()) {
    for (const { tokens, manifest } of bucket.keywords.get(token) ?? []) {
      if (!found.has(manifest) && holdsKeyword(text, tokens)) found.add(manifest)
    }
  }
}

function listAt<Item>(lists: Map<string, Item[]>, key: string): Item[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

/** By code units: the same on every machine. */
export function byName(left: Manifest, right: Manifest): number {
  if (left.id !== right.id) return left.id < right.id ? -1 : 1
  return left.version < right.version ? -1 : Number(left.version > right.version)
}
