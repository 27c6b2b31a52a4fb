import type { SQL } from 'drizzle-orm'
import {
  artifactKinds,
  stages,
  type Artifact,
  type ArtifactHead,
  type ArtifactKind,
  type NewArtifact,
  type Stage,
  type Owner,
} from '../contract/artifact.ts'
import type { Page } from '../contract/scope-api.ts'
import type { Refused } from '../base/result.ts'
import { findOwner, listArtifacts, listVersions, selectVersion, type ArtifactQuery, type VersionRow } from '../store/artifacts/artifacts.ts'
import { insertVersion, updateStage, type Forced, type StageChange, type Quota } from '../store/artifacts/change.ts'
import { findSkillTest } from '../store/artifacts/skill-tests.ts'
import { matchesScope } from '../contract/principal.ts'

export const MOST_VERSIONS = 1000

type VersionName = string | number
type Named<Word, Number> = { id: string; version: Number; state: Word }

/** The rules of one kind. `Head` is a version without its content. */
type RegistryKind<Word extends string, Number extends VersionName, Head extends Named<Word, Number>, Version> = {
  kind: ArtifactKind
  /** The contract's names for the stages of this kind. */
  words: readonly (readonly [Stage, Word])[]
  following: Record<Stage, readonly Stage[]>
  /** An id without a version means the newest active version, if there is one. */
  prefers_active: boolean
  quota: Quota | null
  /** A version becomes active only after it passed its tests, or if a person forces it. */
  tested: boolean
  head: (row: Omit<ArtifactHead, 'version' | 'state'> & { version: Number; state: Word }) => Head
  whole: (head: Head, row: Artifact) => Version
}

export type ArtifactDraft = Omit<NewArtifact, 'kind'> & Contributor
export type RegisterResult<Version> =
  | { ok: true; version: Version; created: boolean }
  | Refused<'not_owner' | 'other_content' | 'too_many_versions'>
export type Changed<Version> = { ok: true; version: Version } | Refused<'not_found' | 'not_allowed' | 'too_many_active' | 'not_tested'>
export type VersionStateChange<Word, Number> = {
  id: string
  version: Number
  /** Changes it only from this state: a concurrent change wins. */
  from?: Word
  state: Word
  reason: string | null
  forced?: Forced | null
  by_proof?: boolean
  unless?: StageChange['unless']
  now: number
  /** Set by tests. */
  quota?: Quota
}
type Query<Word> = Omit<ArtifactQuery, 'state'> & { state?: Word | undefined }
type Summary<Word, Number> = Omit<VersionRow, 'version' | 'state'> & { version: Number; state: Word }

/** The versions of one kind of artifact in D1, owned by the key that registered the first one. */
export class Registry<Word extends string, Number extends VersionName, Head extends Named<Word, Number>, Version> {
  readonly #rules: RegistryKind<Word, Number, Head, Version>

  constructor(rules: RegistryKind<Word, Number, Head, Version>) {
    this.#rules = rules
  }

  /**
   * Without a version: the newest, or the newest active one. `visible`: store/artifact-patterns.
   */
  async find(db: D1Database, id: string, version?: Number, visible?: SQL): Promise<Version | null> {
    const { kind, prefers_active } = this.#rules
    const found = await selectVersion(db, { kind, id, version: version?.toString() }, { prefers_active, visible }).get()
    return found ? this.present(found) : null
  }

  /** Newest first. */
  async versions(db: D1Database, id: string, visible?: SQL): Promise<Summary<Word, Number>[]> {
    return (await listVersions(db, { kind: this.#rules.kind, id }, visible)).map((row) => this.#named(row))
  }

  /** Lists by id, one version of each: the newest in `state`, or the one that `find` returns. */
  async list(db: D1Database, { state, ...query }: Query<Word>): Promise<Page<Head>> {
    const { items, next_cursor } = await listArtifacts(db, this.#rules, { ...query, state: state && this.#stageOf(state) })
    return { items: items.map((row) => this.#rules.head(this.#named(row))), next_cursor }
  }

  /** Adds a version. Registering the same one again returns `created: false`. */
  async register(db: D1Database, { may_take_over, ...draft }: ArtifactDraft): Promise<RegisterResult<Version>> {
    const { kind } = this.#rules
    const artifact = `${kind} ${draft.id}`
    const owner = (await findOwner(db, { kind, id: draft.id })) ?? draft
    const refusal = refusalOf(artifact, { ...draft, may_take_over }, owner)
    if (refusal !== null) return { ok: false, reason: 'not_owner', detail: refusal }
    const { inserted, found } = await insertVersion(db, { ...draft, kind }, { owner, most: MOST_VERSIONS })
    // Another call registered this id in the meantime. Owners never change: read once more.
    const now = found ?? (await findOwner(db, { kind, id: draft.id }))
    if (!now) throw new Error(`the ${artifact} is missing after it was written`)
    if (!isSameOwner(now, owner)) return this.register(db, { ...draft, may_take_over })
    if (found && (inserted || isSame(found, draft))) return { ok: true, version: this.present(found), created: inserted }
    if (!found || artifactKinds[kind].counted) {
      const detail = `The ${artifact} has ${MOST_VERSIONS} versions, which is the limit. Register it under another id.`
      return { ok: false, reason: 'too_many_versions', detail }
    }
    const detail = `${found.id}@${found.version} exists with other content, and versions never change. Register this content under a higher version.`
    return { ok: false, reason: 'other_content', detail }
  }

  /** Other versions keep their state. */
  async setState(db: D1Database, change: VersionStateChange<Word, Number>): Promise<Changed<Version>> {
    const { id, version, from, state, reason, now, quota, forced = null, by_proof = false, unless = null } = change
    const { kind, following, quota: standard, tested } = this.#rules
    const to = this.#stageOf(state)
    const before = from === undefined ? stages.filter((stage) => following[stage].includes(to)) : [this.#stageOf(from)]
    const room = quota ?? standard
    const changed = await updateStage(db, {
      kind,
      id,
      version: String(version),
      from: before,
      to,
      reason,
      by_proof,
      quota: room,
      tested,
      forced,
      unless,
      now,
    })
    const row = await selectVersion(db, { kind, id, version: String(version) }).get()
    if (!row) return { ok: false, reason: 'not_found', detail: `There is no ${kind} ${id}@${version}.` }
    if (changed || row.state === to || from !== undefined) return { ok: true, version: this.present(row) }
    if (tested && !forced && before.includes(row.state) && !(await passedTests(db, row))) return untested(kind, row)
    if (room && before.includes(row.state)) return { ok: false, reason: 'too_many_active', detail: noRoom(kind, row, room) }
    const allowed = following[row.state].map((stage) => this.#wordOf(stage)).join(' or ')
    return {
      ok: false,
      reason: 'not_allowed',
      detail: `${id}@${version} is ${this.#wordOf(row.state)}, and can only become ${allowed}, not ${state}.`,
    }
  }

  present(row: Artifact): Version {
    const { content: _content, ...head } = row
    return this.#rules.whole(this.#rules.head(this.#named(head)), row)
  }

  #named<Row extends { version: string; state: Stage }>(row: Row): Omit<Row, 'version' | 'state'> & { version: Number; state: Word } {
    const version = (artifactKinds[this.#rules.kind].counted ? Number(row.version) : row.version) as Number
    return { ...row, version, state: this.#wordOf(row.state) }
  }

  #wordOf(stage: Stage): Word {
    const word = this.#rules.words.find(([known]) => known === stage)?.[1]
    if (word === undefined) throw new RangeError(`a ${this.#rules.kind} is never in the stage ${stage}`)
    return word
  }

  #stageOf(word: Word): Stage {
    const stage = this.#rules.words.find(([, known]) => known === word)?.[0]
    if (stage === undefined) throw new RangeError(`a ${this.#rules.kind} is never ${word}`)
    return stage
  }
}

const isSame = (found: Artifact, { hash, description }: Pick<Artifact, 'hash' | 'description'>): boolean =>
  found.hash === hash && found.description === description

const passedTests = async (db: D1Database, { id, version, hash }: ArtifactHead): Promise<boolean> =>
  (await findSkillTest(db, { skill_id: id, version, hash }))?.passed ?? false

const untested = (kind: ArtifactKind, { id, version }: ArtifactHead): Refused<'not_tested'> => ({
  ok: false,
  reason: 'not_tested',
  detail: `${id}@${version} is not activated: it has not passed its tests. Run them by POST /v1/${kind}s/${id}@${version}/test.`,
})

const noRoom = (kind: ArtifactKind, { id, version, owner }: ArtifactHead, { versions, bytes }: Quota): string =>
  `${id}@${version} is not activated: ${owner} may have at most ${versions} active versions, ${bytes} bytes in all. ` +
  `Deprecate one that is no longer needed, by POST /v1/${kind}s/ID@VERSION/state {"state": "deprecated"}, then activate this one.`

/** `may_take_over`: an admin may add versions to another owner's artifact. */
type Contributor = Owner & { may_take_over?: boolean | undefined }

/**
 * The reason a contributor may not add a version. Even an admin must cover its scopes: of an owner
 * of other scopes a contributor learns neither name nor scopes.
 */
function refusalOf(what: string, { owner_id, scopes, may_take_over = false }: Contributor, owner: Owner): string | null {
  const isBeyond = owner.scopes.some((pattern) => !scopes.some((own) => matchesScope(own, pattern)))
  if (isBeyond) return `The ${what} may act in scopes that this key does not cover. Copy it, or use another id.`
  return owner.owner_id === owner_id || may_take_over ? null : `The ${what} belongs to ${nameOf(owner)}. Copy it, or use another id.`
}

/** Names of keys are not unique. */
const nameOf = ({ owner, owner_id }: Owner): string => (owner === owner_id ? owner : `another key, ${owner}`)

const isSameOwner = (one: Owner, other: Owner): boolean =>
  one.owner_id === other.owner_id && JSON.stringify(one.scopes) === JSON.stringify(other.scopes)
