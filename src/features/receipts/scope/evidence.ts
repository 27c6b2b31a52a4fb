import type { Computing } from '../../../base/computing.ts'
import type { Database } from '../../../kernel/unit.ts'
import { CHAIN_FLOOR } from '../../../engine/log/expired-entries.ts'
import { linesOf, textOf, type Log, type PackedText, type UnlinkedRow } from '../../../engine/log/log.ts'
import type { LinkedFile } from '../../../engine/log/past.ts'
import type { ChainEvidence, Head, Proven, Segment } from '../contract/receipt.ts'
import { bytesOf, hex, leafOf, leavesIn, linkIn, NOTHING, pathOf, saltsOf } from '../chain.ts'

/** A row with its texts. `leaves`: hashes of entries whose text is not the one that was hashed. */
type Row = { seq: number; chain: Uint8Array | null; texts: UnlinkedRow['texts']; leaves: readonly (string | null)[] }
type RowOfChain = { seq: number; chain: ArrayBuffer | null; head: string | null }
/** A row on the way to a head. `count` is null for the newest row. */
type Step = Omit<RowOfChain, 'chain'> & { chain: Uint8Array | null; count: number | null }
type EvidenceParts = {
  database: Pick<Database, 'first' | 'each' | 'read'>
  log: Pick<Log, 'shown' | 'last'>
  history: { linked(seq: number): Promise<LinkedFile | null> }
  /** A head of the newest row. */
  fresh: () => Promise<Head | null>
  computing: Computing
  /** True if the context of an entry may be in the file. */
  shows: (context: string) => boolean
}
/** Rows between an entry and a head. With a head a minute, there are fewer. */
const MOST_ROWS = 20_000

/** The places of entries in the chain, each with the way to a signed head. */
export async function evidenceOf(given: EvidenceParts, seqs: readonly number[]): Promise<ChainEvidence> {
  const parts = { ...given, history: remembering(given.history) }
  const entries: Proven[] = []
  const rows: number[] = []
  const left = new Set(seqs)
  for (const seq of seqs) {
    const row = left.has(seq) ? await rowOf(parts, seq) : null
    if (!row) continue
    const wanted = row.texts.flatMap((_, index) => (left.delete(row.seq + index) ? [index] : []))
    entries.push(...(row.chain ? provenOf(parts, { ...row, chain: row.chain }, wanted) : unsignedOf(parts, row, wanted)))
    if (row.chain) rows.push(row.seq)
    await parts.computing.rest()
  }
  return { begins: beginOf(parts), entries, segments: await segmentsOf(parts, rows) }
}

/** Reads a file once, as long as entries of it are asked for. */
function remembering(history: EvidenceParts['history']): EvidenceParts['history'] {
  let known: LinkedFile | null = null
  return {
    async linked(seq) {
      if (known === null || seq < known.first_seq || seq > known.last_seq) known = await history.linked(seq)
      return known
    },
  }
}

/** The row that has an entry: of the scope, or of the archive. */
async function rowOf({ database, history }: EvidenceParts, seq: number): Promise<Row | null> {
  type Stored = { seq: number; entries: PackedText; chain: ArrayBuffer | null }
  const row = database.first<Stored>('SELECT seq, entries, chain FROM log WHERE seq <= ? ORDER BY seq DESC LIMIT 1', seq)
  if (row) {
    const packed = linesOf(row.entries)
    return {
      seq: row.seq,
      chain: row.chain && new Uint8Array(row.chain),
      texts: packed.lines.map((line) => textOf(line, packed)),
      leaves: [],
    }
  }
  const file = await history.linked(seq)
  const link = file?.links.findLast((one) => one.seq <= seq)
  if (!file || !link) return null
  const lines = file.lines.slice(link.seq - file.first_seq, link.seq - file.first_seq + link.count)
  const texts = lines.map((text, index) => ({ text, split: link.splits[index] ?? null }))
  return { seq: link.seq, chain: link.chain === null ? null : bytesOf(link.chain), texts, leaves: link.leaves }
}

function provenOf(
  { log, shows }: EvidenceParts,
  { seq: row, chain, texts, leaves: kept }: Row & { chain: Uint8Array },
  wanted: readonly number[],
) {
  const salts = saltsOf(linkIn(chain).seed, texts.length)
  const leaves = leavesIn(chain, texts).map((leaf, index) => (kept[index] == null ? leaf : bytesOf(kept[index])))
  return wanted.map((index): Proven => {
    const { text, split } = texts[index]!
    const { salt, context } = salts[index]!
    const placed = { seq: row + index, row }
    const path = pathOf(leaves, index).map((others) => others.map(hex))
    const shown = log.shown(text)
    if (shown !== text || kept[index] != null) return { ...placed, shown, leaf: hex(leaves[index]!), path }
    if (split === null) return { ...placed, text, salt: hex(salt), path }
    const rest = text.slice(split)
    const part = shows(rest.slice(0, -1)) ? { text: rest, salt: hex(context) } : { leaf: hex(leafOf(context, rest)) }
    return { ...placed, text: text.slice(0, split), salt: hex(salt), context: part, path }
  })
}

const unsignedOf = ({ log }: EvidenceParts, { seq, texts }: Row, wanted: readonly number[]): Proven[] =>
  wanted.map((index) => ({ seq: seq + index, unsigned: log.shown(texts[index]!.text) }))

/** The first row of the chain, if rows before it are there. */
function beginOf({ database }: EvidenceParts): number | null {
  const oldest = database.first<{ chain: ArrayBuffer | null }>('SELECT chain FROM log ORDER BY seq LIMIT 1')
  if (!oldest || oldest.chain) return null
  for (const { seq, chain } of database.each<RowOfChain>('SELECT seq, chain, head FROM log ORDER BY seq')) if (chain) return seq
  return null
}

/** Walks from each row that is not in a segment yet to the first head that covers it. */
async function segmentsOf(parts: EvidenceParts, rows: readonly number[]): Promise<Segment[]> {
  const segments: Segment[] = []
  for (const seq of rows) {
    if (seq <= (segments.at(-1)?.head.seq ?? 0)) continue
    const segment = await segmentFrom(parts, seq)
    if (segment) segments.push(segment)
  }
  return segments
}

type Walked = Segment['rows'][number] & { hash: string }

async function segmentFrom(parts: EvidenceParts, from: number): Promise<Segment | null> {
  const newest = await parts.fresh()
  const walked: Walked[] = []
  for await (const { seq, count, chain, head } of stepsFrom(parts, from)) {
    const before = walked.at(-1)
    if (before) before.count = seq - before.seq
    const stored = head === null ? null : (JSON.parse(head) as Head)
    if (stored && stored.seq >= from) return closed(parts, walked, stored)
    if (!chain || walked.length === MOST_ROWS) return null
    const { hash, root } = linkIn(chain)
    walked.push({ seq, count: count ?? parts.log.last - seq + 1, root, hash })
  }
  return newest && closed(parts, walked, newest)
}

/** The rows from one on: first those that the archive has. */
async function* stepsFrom({ database, history }: EvidenceParts, from: number): AsyncGenerator<Step> {
  let next = from
  for (let file = await history.linked(next); file; file = await history.linked(next)) {
    for (const { chain, ...link } of file.links) if (link.seq >= next) yield { ...link, chain: chain === null ? null : bytesOf(chain) }
    next = file.last_seq + 1
  }
  const sql = 'SELECT seq, chain, head FROM log WHERE seq >= ? ORDER BY seq LIMIT ?'
  // Other units may write while the caller waits, so that the rows are read at once.
  const rows = Array.from(database.each<RowOfChain>(sql, next, MOST_ROWS + 2))
  for (const { chain, ...row } of rows) yield { ...row, count: null, chain: chain && new Uint8Array(chain) }
}

/** Null if the log does not have what the head signs: it was restored to an earlier time. */
async function closed(parts: EvidenceParts, walked: readonly Walked[], head: Head): Promise<Segment | null> {
  const end = walked.findIndex(({ seq, count }) => seq + count - 1 === head.seq)
  const [first] = walked
  if (end < 0 || !first || walked[end]?.hash !== head.hash) return null
  const rows = walked.slice(0, end + 1).map(({ hash: _hash, ...row }) => row)
  return { before: await hashBefore(parts, first.seq), rows, head }
}

async function hashBefore({ database, history }: EvidenceParts, seq: number): Promise<string> {
  const row = database.first<RowOfChain>('SELECT chain FROM log WHERE seq < ? ORDER BY seq DESC LIMIT 1', seq)
  if (row) return row.chain ? linkIn(row.chain).hash : NOTHING
  const archived = (await history.linked(seq - 1))?.links.findLast((link) => link.seq < seq)
  const floor = archived ? archived.chain : database.read<string | null>(CHAIN_FLOOR, null)
  return floor === null ? NOTHING : linkIn(bytesOf(floor)).hash
}
