import type { Computing } from '../../../base/computing.ts'
import type { Database } from '../../../kernel/unit.ts'
import { CHAIN_FLOOR } from '../../../engine/log/expired-entries.ts'
import { linesOf, textOf, type Log, type PackedText, type UnlinkedRow } from '../../../engine/log/log.ts'
import type { ChainEvidence, Head, Proven, Segment } from '../contract/receipt.ts'
import { bytesOf, hex, leafOf, leafOfEntry, linkIn, NOTHING, pathOf, saltsOf } from '../chain.ts'

type Row = { seq: number; at: number; entries: PackedText; chain: ArrayBuffer | null }
type RowOfChain = { seq: number; at: number; chain: ArrayBuffer | null; head: string | null }
type Texts = UnlinkedRow['texts']
type EvidenceParts = {
  database: Pick<Database, 'first' | 'each' | 'read'>
  log: Pick<Log, 'shown' | 'last'>
  /** A head of the newest row. */
  fresh: () => Promise<Head | null>
  computing: Computing
  /** True if the context of an entry may be in the file. */
  shows: (context: string) => boolean
}
/** Rows between an entry and a head. With a head a minute, there are fewer. */
const MOST_ROWS = 20_000

/** The places of entries in the chain, each with the way to a signed head. */
export async function evidenceOf(parts: EvidenceParts, seqs: readonly number[]): Promise<ChainEvidence> {
  const { database, computing } = parts
  const entries: Proven[] = []
  const rows: number[] = []
  const left = new Set(seqs)
  for (const seq of seqs) {
    if (!left.has(seq)) continue
    const row = database.first<Row>('SELECT seq, at, entries, chain FROM log WHERE seq <= ? ORDER BY seq DESC LIMIT 1', seq)
    if (!row) continue
    const packed = linesOf(row.entries)
    const texts = packed.lines.map((line) => textOf(line, packed))
    const wanted = texts.flatMap((_, index) => (left.delete(row.seq + index) ? [index] : []))
    if (wanted.length === 0) continue
    entries.push(
      ...(row.chain ? provenOf(parts, { ...row, chain: row.chain }, { texts, wanted }) : unsignedOf(parts, row, { texts, wanted })),
    )
    if (row.chain) rows.push(row.seq)
    await computing.rest()
  }
  return { begins: beginOf(parts), entries, segments: await segmentsOf(parts, rows) }
}

type Wanted = { texts: Texts; wanted: readonly number[] }

function provenOf({ log, shows }: EvidenceParts, { seq: row, chain }: Row & { chain: ArrayBuffer }, { texts, wanted }: Wanted): Proven[] {
  const salts = saltsOf(linkIn(chain).seed, texts.length)
  const leaves = texts.map((text, index) => leafOfEntry(text, salts[index]!))
  return wanted.map((index): Proven => {
    const { text, split } = texts[index]!
    const { salt, context } = salts[index]!
    const placed = { seq: row + index, row }
    const path = pathOf(leaves, index).map((others) => others.map(hex))
    const shown = log.shown(text)
    if (shown !== text) return { ...placed, shown, leaf: hex(leaves[index]!), path }
    if (split === null) return { ...placed, text, salt: hex(salt), path }
    const rest = text.slice(split)
    const part = shows(rest.slice(0, -1)) ? { text: rest, salt: hex(context) } : { leaf: hex(leafOf(context, rest)) }
    return { ...placed, text: text.slice(0, split), salt: hex(salt), context: part, path }
  })
}

const unsignedOf = ({ log }: EvidenceParts, { seq }: Row, { texts, wanted }: Wanted): Proven[] =>
  wanted.map((index) => ({ seq: seq + index, unsigned: log.shown(texts[index]!.text) }))

/** The first row of the chain, if rows before it are there. */
function beginOf({ database }: EvidenceParts): number | null {
  const oldest = database.first<{ chain: ArrayBuffer | null }>('SELECT chain FROM log ORDER BY seq LIMIT 1')
  if (!oldest || oldest.chain) return null
  for (const { seq, chain } of database.each<RowOfChain>('SELECT seq, at, chain, head FROM log ORDER BY seq')) if (chain) return seq
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

async function segmentFrom({ database, log, fresh }: EvidenceParts, from: number): Promise<Segment | null> {
  const newest = await fresh()
  const { last } = log
  const walked: (Segment['rows'][number] & { hash: string })[] = []
  for (const { seq, at, chain, head } of database.each<RowOfChain>(
    'SELECT seq, at, chain, head FROM log WHERE seq >= ? ORDER BY seq',
    from,
  )) {
    const before = walked.at(-1)
    if (before) before.count = seq - before.seq
    const stored = head === null ? null : (JSON.parse(head) as Head)
    if (stored && stored.seq >= from) return closed(database, walked, stored)
    if (!chain || walked.length === MOST_ROWS) return null
    const { hash, root } = linkIn(chain)
    walked.push({ seq, at, count: last - seq + 1, root, hash })
  }
  return newest && closed(database, walked, newest)
}

/** Null if the log does not have what the head signs: it was restored to an earlier time. */
function closed(
  database: EvidenceParts['database'],
  walked: readonly (Segment['rows'][number] & { hash: string })[],
  head: Head,
): Segment | null {
  const end = walked.findIndex(({ seq, count }) => seq + count - 1 === head.seq)
  const [first] = walked
  if (end < 0 || !first || walked[end]?.hash !== head.hash) return null
  const rows = walked.slice(0, end + 1).map(({ hash: _hash, ...row }) => row)
  return { before: hashBefore(database, first.seq), rows, head }
}

function hashBefore(database: EvidenceParts['database'], seq: number): string {
  const row = database.first<RowOfChain>('SELECT chain FROM log WHERE seq < ? ORDER BY seq DESC LIMIT 1', seq)
  const floor = row ? null : database.read<string | null>(CHAIN_FLOOR, null)
  const chain = row ? row.chain : floor && bytesOf(floor)
  return chain ? linkIn(chain).hash : NOTHING
}
