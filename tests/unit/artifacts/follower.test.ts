import { describe, expect, test, vi } from 'vitest'
import { ArtifactFollower } from '../../../src/engine/replication/artifact-copy.ts'
import type { ArtifactChanges } from '../../../src/contract/artifact.ts'

const page = (revision: number, more = false): ArtifactChanges => ({ changes: [], revision, more })

describe('a follower of the registry', () => {
  test('starts over for another subscription', async () => {
    const read = vi.fn<(since: number) => Promise<ArtifactChanges>>(async (since) => page(since + 5))
    const follower = new ArtifactFollower(() => {})
    await follower.catchUp(() => 'a', read)
    await follower.catchUp(() => 'a', read)
    await follower.catchUp(() => 'b', read)
    expect(read.mock.calls).toEqual([[0], [5], [0]])
  })

  test('ignores a response to a subscription that has since changed', async () => {
    const apply = vi.fn<() => void>()
    const follower = new ArtifactFollower(apply)
    let of = 'a'
    const changing = async () => {
      of = 'b'
      return page(5)
    }
    expect(await follower.catchUp(() => of, changing)).toBe(false)
    expect([apply.mock.calls.length, follower.revision]).toEqual([0, 0])
  })

  test('continues from a position that was stored', async () => {
    const read = vi.fn<(since: number) => Promise<ArtifactChanges>>(async () => page(9))
    const follower = new ArtifactFollower(() => {})
    follower.resume({ of: 'a', revision: 7 })
    expect(await follower.catchUp(() => 'a', read)).toBe(true)
    expect(read).toHaveBeenCalledExactlyOnceWith(7)
  })
})
