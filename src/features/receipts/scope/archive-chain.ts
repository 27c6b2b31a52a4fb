import type { ArchiveLink } from '../../../base/archive-file.ts'
import { warn } from '../../../base/warn.ts'
import { CHAIN_FLOOR } from '../../../engine/log/expired-entries.ts'
import type { Database } from '../../../kernel/unit.ts'
import { bytesOf, headText, linkIn, NOTHING, type SignedHead } from '../chain.ts'
import { ARCHIVE_CHAIN } from '../contract/receipt.ts'
import { publicKeys, signerOf } from '../keys.ts'
import { sealed } from '../seal.ts'

type ChainParts = { scope: string; env: Parameters<typeof signerOf>[0]; database: Pick<Database, 'read'> }
type Archived = { files: Readonly<Record<string, string>>; at: number }

/**
 * The file beside archived rows of a log: their links, a signed head that covers them, and the
 * hashes of the files that have them. Without a key it has the links alone. A file that is written
 * again has the same bytes: the head has the time of its last entry.
 */
export async function archiveChain(
  { scope, env, database }: ChainParts,
  links: readonly ArchiveLink[],
  { files, at }: Archived,
): Promise<string> {
  const floor = database.read<string | null>(CHAIN_FLOOR, null)
  const before = floor === null || links[0]?.chain === null ? NOTHING : linkIn(bytesOf(floor)).hash
  const of = { archive: ARCHIVE_CHAIN, scope, before, files, links }
  const signer = signerOf(env)
  const last = links.at(-1)
  if (signer && typeof last?.chain === 'string')
    try {
      const covered = { seq: last.seq + last.count - 1, hash: linkIn(bytesOf(last.chain)).hash, at }
      const head: SignedHead = { ...covered, key: signer.key, signature: await signer.sign(headText({ scope, ...covered })) }
      return await sealed({ ...of, head, keys: publicKeys(env).keys }, signer)
    } catch (error) {
      warn({ message: 'a file of the archive has no signed head', scope, error })
    }
  return JSON.stringify({ ...of, head: null, keys: [] })
}
