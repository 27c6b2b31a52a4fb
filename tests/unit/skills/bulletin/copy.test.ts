import { describe, expect, test } from 'vitest'
import { ArtifactFollower } from '../../../../src/engine/replication/artifact-copy.ts'
import type { Artifact, ArtifactChange, ArtifactChanges } from '../../../../src/contract/artifact.ts'
import { placeOf } from '../../../../src/skills/manifest/compat.ts'
import { SkillCopy } from '../../../../src/engine/skills/skill-cache.ts'
import { deployManifest } from '../deploy-manifest.ts'

const anywhere = placeOf({})
const artifactOf = (manifest: unknown): Artifact => ({ content: JSON.stringify(manifest) }) as Artifact
const active = (id: string, version: string, compat: object = {}): ArtifactChange => ({
  id,
  version,
  artifact: artifactOf(deployManifest({ id, version, compat })),
})
const ended = (id: string, version: string): ArtifactChange => ({ id, version, artifact: null })

/** Reads a list of changes, whose revisions count from 1, in pages. */
const reader =
  (all: readonly ArtifactChange[], size = 100) =>
  async (since: number): Promise<ArtifactChanges> => ({
    changes: all.slice(since, since + size),
    revision: Math.min(all.length, since + size),
    more: all.length > since + size,
  })
class FollowingCopy extends SkillCopy {
  readonly #follower = new ArtifactFollower((page) => this.apply(page))

  get revision(): number {
    return this.#follower.revision
  }

  catchUp(read: (since: number) => Promise<ArtifactChanges>): Promise<boolean> {
    return this.#follower.catchUp(() => 'skills', read)
  }
}
const copyOf = async (...changes: ArtifactChange[]): Promise<FollowingCopy> => {
  const copy = new FollowingCopy()
  await copy.catchUp(reader(changes))
  return copy
}
const names = (copy: SkillCopy, place = anywhere) => copy.newestFor(place).map(({ id, version }) => `${id}@${version}`)

describe('a copy of the active skills', () => {
  test('catches up page by page, and says whether anything changed', async () => {
    const all = [active('b', '1.0.0'), active('a', '1.0.0'), active('c', '1.0.0')]
    const copy = new FollowingCopy()
    expect(await copy.catchUp(reader(all, 2))).toBe(true)
    expect([copy.revision, ...names(copy)]).toEqual([3, 'a@1.0.0', 'b@1.0.0', 'c@1.0.0'])
    expect(await copy.catchUp(reader(all, 2))).toBe(false)
    expect(await copy.catchUp(reader([...all, ended('a', '1.0.0')]))).toBe(true)
    expect(names(copy)).toEqual(['b@1.0.0', 'c@1.0.0'])
  })

  test('has the newest version of each, in whatever order they became active', async () => {
    expect(names(await copyOf(active('a', '1.10.0'), active('a', '1.9.0'), active('a', '1.10.0-rc.1')))).toEqual(['a@1.10.0'])
    expect(names(await copyOf(active('a', '1.9.0'), active('a', '1.10.0'), ended('a', '1.10.0')))).toEqual(['a@1.9.0'])
  })

  test('does not go back where an answer comes after a later one', async () => {
    const copy = new FollowingCopy()
    const slow = Promise.withResolvers<ArtifactChanges>()
    const late = copy.catchUp(() => slow.promise)
    await copy.catchUp(reader([active('a', '1.0.0'), ended('a', '1.0.0')]))
    slow.resolve({ changes: [active('a', '1.0.0')], revision: 1, more: false })
    await late
    expect([copy.revision, ...names(copy)]).toEqual([2])
  })

  test('starts over if the registry was restored to an older state', async () => {
    const copy = await copyOf(active('a', '1.0.0'), active('b', '1.0.0'))
    await copy.catchUp(async () => ({ changes: [active('a', '2.0.0')], revision: 1, more: false, restart: true }))
    expect([copy.revision, ...names(copy)]).toEqual([1, 'a@2.0.0'])
  })

  test('uses an older version where a newer one does not fit', async () => {
    const copy = await copyOf(active('a', '1.0.0', { env: ['prod'] }), active('a', '2.0.0', { env: ['staging'] }))
    expect(names(copy, placeOf({ env: 'prod' }))).toEqual(['a@1.0.0'])
    expect(names(copy, placeOf({ env: 'staging' }))).toEqual(['a@2.0.0'])
    expect(names(copy)).toEqual([])
  })

  test('finds the version that is named, else the newest that fits, else the newest', async () => {
    const copy = await copyOf(active('a', '1.0.0', { env: ['prod'] }), active('a', '2.0.0', { env: ['staging'] }))
    const found = (place: Parameters<SkillCopy['find']>[0], version?: string) => copy.find(place, 'a', version)?.version ?? null
    expect(found(placeOf({ env: 'prod' }))).toBe('1.0.0')
    expect(found(placeOf({ env: 'prod' }), '2.0.0')).toBe('2.0.0')
    expect(found(anywhere)).toBe('2.0.0')
    expect(found(anywhere, '3.0.0')).toBeNull()
    expect(copy.find(anywhere, 'b')).toBeNull()
  })

  test('leaves out what it cannot read, and says so', async () => {
    const strange = { ...active('a', '1.0.0'), artifact: artifactOf({ id: 'a', version: '1.0.0' }) }
    const copy = await copyOf(strange, active('b', '1.0.0'))
    expect([names(copy), copy.unreadable]).toEqual([['b@1.0.0'], ['a@1.0.0']])
    await copy.catchUp(async () => ({ changes: [ended('a', '1.0.0')], revision: 3, more: false }))
    expect(copy.unreadable).toEqual([])
  })
})

test.each([
  [{}, { env: [], toolset: null, repo: null, project: null }],
  [
    { env: 'staging', toolset: 'v6' },
    { env: ['staging'], toolset: 'v6', repo: null, project: null },
  ],
  [
    { env: ['a', 'b'], repo: 'r', project: 'p' },
    { env: ['a', 'b'], toolset: null, repo: 'r', project: 'p' },
  ],
])('the settings %j are the place %j', (settings, place) => {
  expect(placeOf(settings)).toEqual(place)
})
