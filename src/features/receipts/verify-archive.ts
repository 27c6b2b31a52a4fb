import { hexHash } from '../../base/hash.ts'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { jsonValue } from '../../base/json.ts'
import { messageOf } from '../../base/error-text.ts'
import { bytesOf, hex, leafOfEntry, linkIn, NOTHING, rootOf, rowHash, saltsOf } from './chain.ts'
import { ARCHIVE_CHAIN, head, publicKeys, type PublicKeys } from './contract/receipt.ts'
import { Check, keysOf } from './verify.ts'

const hash = z.string().regex(/^[\da-f]{64}$/)
const link = z.object({
  seq: z.int(),
  count: z.int().min(1),
  chain: z
    .string()
    .regex(/^[\da-f]{160}$/)
    .nullable(),
  head: z.string().nullable(),
  splits: z.array(z.int().nullable()),
  leaves: z.array(hash.nullable()),
})
const chainFile = z.object({
  archive: z.literal(ARCHIVE_CHAIN),
  scope: z.string(),
  before: hash,
  files: z.object({ jsonl: hash, parquet: hash }),
  links: z.array(link).min(1),
  head: head.nullable(),
  keys: publicKeys.shape.keys,
})

/** The files of one number in the archive. Parquet may be absent. */
export type ArchiveFiles = { name: string; jsonl: Uint8Array; parquet: Uint8Array | null; chain: string | null }
type CheckedArchive = {
  name: string
  scope: string
  first: number
  last: number
  before: string
  hash: string
  /** Entries whose row the head covers, and entries of rows that are older than the chain. */
  signed: number
  unsigned: number
  keys: readonly string[]
}

/** Checks archived entries of a log up to the signed head beside them. */
export function checkArchive(
  { name, jsonl, parquet, chain }: ArchiveFiles,
  trusted: PublicKeys | null = null,
): { flaws: string[]; checked: CheckedArchive | null } {
  const none = (flaw: string) => ({ flaws: [flaw], checked: null })
  if (chain === null) return none('There is no .chain.json beside it: nothing says that it is as it was written.')
  const parsed = chainFile.safeParse(jsonValue(chain))
  if (!parsed.success) return none('Its .chain.json is of another version, or was changed: it has no signed head that can be read.')
  const { scope, before, files, links, head: covering, keys: own } = parsed.data
  if (!covering) return none('Its .chain.json has no signed head: the deployment had no key.')
  const flaws: string[] = []
  const used = new Set<string>()
  const check = new Check({ keys: keysOf(own, { trusted, flaws }), flaws, used })
  check.seal(chain)
  if (hexHash(jsonl) !== files.jsonl) flaws.push('It does not have the hash that was signed.')
  if (parquet && hexHash(parquet) !== files.parquet) flaws.push('Its .parquet does not have the hash that was signed.')
  const lines = linesIn(jsonl, flaws)
  const first = links[0]?.seq ?? 0
  const counted = links.reduce((sum, { count }) => sum + count, 0)
  // First: a hostile count takes no memory.
  if (counted !== lines.length) return { flaws: [...flaws, `It has ${lines.length} entries, and the chain has ${counted}.`], checked: null }
  const walked = walk({ before, links, lines }, flaws)
  if (covering.hash !== walked.hash || covering.seq !== walked.next - 1) flaws.push('The chain does not lead to the signed head.')
  check.head(scope, covering)
  for (const kept of links.flatMap((one) => head.safeParse(one.head === null ? null : jsonValue(one.head)).data ?? []))
    check.head(scope, kept)
  const { unsigned, hash: end } = walked
  const counts = { signed: lines.length - unsigned, unsigned }
  return { flaws, checked: { name, scope, first, last: covering.seq, before, hash: end, ...counts, keys: [...used] } }
}

type Walk = { before: string; links: readonly z.infer<typeof link>[]; lines: readonly string[] }

/** The hash of the last row, as it follows from the entries. */
function walk({ before, links, lines }: Walk, flaws: string[]): { hash: string; next: number; unsigned: number } {
  const first = links[0]?.seq ?? 0
  const walked = { hash: before, next: first, unsigned: 0 }
  for (const { seq, count, chain, splits, leaves } of links) {
    if (seq !== walked.next) flaws.push(`The log has a gap before the entry ${seq}.`)
    walked.next = seq + count
    if (chain === null) {
      walked.hash = NOTHING
      walked.unsigned += count
      continue
    }
    const link = linkIn(bytesOf(chain))
    const salts = saltsOf(link.seed, count)
    const found = Array.from({ length: count }, (_, index) => {
      const text = lines[seq - first + index] ?? ''
      if ((jsonValue(text) as { seq?: unknown } | undefined)?.seq !== seq + index)
        flaws.push(`The entry ${seq + index} is not at its place.`)
      const leaf = leaves[index]
      return typeof leaf === 'string' ? bytesOf(leaf) : leafOfEntry({ text, split: splits[index] ?? null }, salts[index]!)
    })
    const follows = rowHash(walked.hash, { seq, count, root: hex(rootOf(found)) })
    // A wrong row is one flaw: the rows after it are compared with what it should be.
    walked.hash = link.hash
    if (follows !== link.hash) flaws.push(`The row of the entry ${seq} is not the one that was signed.`)
  }
  return walked
}

/** Sentences about files of one log that do not follow each other. */
export function gapsIn(files: readonly CheckedArchive[]): string[] {
  return Array.from(Map.groupBy(files, ({ scope }) => scope)).flatMap(([scope, some]) => {
    const sorted = some.toSorted((one, other) => one.first - other.first)
    return sorted.flatMap((file, index) => {
      const earlier = sorted[index - 1]
      if (!earlier) return []
      if (file.first <= earlier.last) return [`${scope}: ${file.name} begins with the entry ${file.first}, which ${earlier.name} has, too.`]
      if (file.first !== earlier.last + 1) return [`${scope}: the entries ${earlier.last + 1} to ${file.first - 1} are missing.`]
      return file.before === earlier.hash ? [] : [`${scope}: ${file.name} does not continue the chain of ${earlier.name}.`]
    })
  })
}

/** A deployment writes files of a few MB. Workers unpack no more than 128 MiB. */
const MOST_BYTES = 100_000_000

function linesIn(jsonl: Uint8Array, flaws: string[]): string[] {
  try {
    return gunzipSync(jsonl, { maxOutputLength: MOST_BYTES }).toString().trimEnd().split('\n')
  } catch (error) {
    flaws.push(`It cannot be read: ${messageOf(error)}.`)
    return []
  }
}
