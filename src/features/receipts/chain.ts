import { createHash, hkdfSync } from 'node:crypto'

/**
 * The hashes of a log that is a chain. A row's hash is over the hash of the row before it and the
 * root of a tree, whose leaves are the row's entries. A leaf is salted: it tells nothing of its
 * entry, so that a receipt of one trace can show the way to a signed head beside other entries.
 * docs/receipts.md has the format; `examples/verify/` checks it in Python.
 */
const CHILDREN = 8
const SALT_BYTES = 16
const HASH_BYTES = 32
/** The salts that HKDF gives at once. */
const MOST_SALTS = 510

const [LEAF, NODE, SPLIT] = [Buffer.of(0), Buffer.of(1), Buffer.of(2)]

type Bytes = Uint8Array
export const hex = (bytes: Bytes): string => Buffer.from(bytes).toString('hex')
export const bytesOf = (text: string): Buffer => Buffer.from(text, 'hex')

/** The hash before the first row. */
export const NOTHING = '0'.repeat(2 * HASH_BYTES)

/** An entry as its row keeps it. `split`: where its context begins, which has a salt of its own. */
type EntryText = { text: string; split: number | null }
type Salts = { salt: Bytes; context: Bytes }

/** The salts of a row's entries, of which one that is shown says nothing about the others. */
export function saltsOf(seed: Bytes, count: number): Salts[] {
  const blocks: Bytes[] = []
  for (let from = 0; from < 2 * count; from += MOST_SALTS) {
    const length = Math.min(MOST_SALTS, 2 * count - from)
    const bytes = new Uint8Array(hkdfSync('sha256', seed, '', String(from), length * SALT_BYTES))
    for (let at = 0; at < length; at += 1) blocks.push(bytes.subarray(at * SALT_BYTES, (at + 1) * SALT_BYTES))
  }
  return Array.from({ length: count }, (_, index) => ({
    salt: blocks[2 * index] ?? new Uint8Array(),
    context: blocks[2 * index + 1] ?? new Uint8Array(),
  }))
}

/** Holds the bytes of a leaf while they are hashed: one buffer serves all. */
const hashed = new Uint8Array(65_536)
const encoder = new TextEncoder()

/** The leaf of an entry, or of a part of it. */
export function leafOf(salt: Bytes, text: string): Buffer {
  const from = LEAF.length + salt.length
  // A code unit takes three bytes at most.
  if (from + 3 * text.length > hashed.length) return createHash('sha256').update(LEAF).update(salt).update(text).digest()
  hashed.set(LEAF)
  hashed.set(salt, LEAF.length)
  const { written } = encoder.encodeInto(text, hashed.subarray(from))
  return createHash('sha256')
    .update(hashed.subarray(0, from + written))
    .digest()
}

/** The leaf of an entry whose context may be left out. */
export const splitLeaf = (head: Bytes, context: Bytes): Buffer => createHash('sha256').update(SPLIT).update(head).update(context).digest()

export function leafOfEntry({ text, split }: EntryText, { salt, context }: Salts): Buffer {
  if (split === null) return leafOf(salt, text)
  return splitLeaf(leafOf(salt, text.slice(0, split)), leafOf(context, text.slice(split)))
}

const nodeOf = (children: readonly Bytes[]): Bytes =>
  children.length === 1 && children[0]
    ? children[0]
    : createHash('sha256')
        .update(Buffer.concat([NODE, ...children]))
        .digest()

const levelAbove = (level: readonly Bytes[]): Bytes[] =>
  Array.from({ length: Math.ceil(level.length / CHILDREN) }, (_, at) => nodeOf(level.slice(at * CHILDREN, (at + 1) * CHILDREN)))

export function rootOf(leaves: readonly Bytes[]): Bytes {
  let level = leaves
  while (level.length > 1) level = levelAbove(level)
  return level[0] ?? Buffer.alloc(HASH_BYTES)
}

/** The other children of each node on the way from a leaf to the root, lowest first. */
export function pathOf(leaves: readonly Bytes[], index: number): Bytes[][] {
  const path: Bytes[][] = []
  let at = index
  for (let level = leaves; level.length > 1; level = levelAbove(level)) {
    const first = at - (at % CHILDREN)
    path.push(level.slice(first, first + CHILDREN).filter((_, place) => first + place !== at))
    at = Math.floor(at / CHILDREN)
  }
  return path
}

/** The root above a leaf; null if the path does not fit a tree of so many leaves. */
export function rootAbove(
  leaf: Bytes,
  { index, count, path }: { index: number; count: number; path: readonly (readonly Bytes[])[] },
): Bytes | null {
  if (index < 0 || index >= count) return null
  let [node, at, width, step] = [leaf, index, count, 0]
  while (width > 1) {
    const place = at % CHILDREN
    const others = path[step]
    if (others?.length !== Math.min(CHILDREN, width - (at - place)) - 1) return null
    node = nodeOf([...others.slice(0, place), node, ...others.slice(place)])
    ;[at, width, step] = [Math.floor(at / CHILDREN), Math.ceil(width / CHILDREN), step + 1]
  }
  return step === path.length ? node : null
}

/** A row without its entries. `seq`: the first of them. */
type RowFacts = { seq: number; count: number; root: string }

export const rowHash = (before: string, { seq, count, root }: RowFacts): string =>
  createHash('sha256').update(`reflex-row/1\n${before}\n${root}\n${seq}\n${count}`).digest('hex')

/** The facts of a head: the log of a scope up to the entry `seq` has this hash. */
type HeadFacts = { scope: string; seq: number; hash: string; at: number }
export type SignedHead = Omit<HeadFacts, 'scope'> & { key: string; signature: string }

export const headText = ({ scope, seq, hash, at }: HeadFacts): string => `reflex-head/1\n${seq}\n${hash}\n${at}\n${scope}`

/** The column of a row: its hash, the root of its entries, and the seed of their salts. */
type StoredLink = { hash: string; root: string; seed: Bytes }

export const storedLink = ({ hash, root, seed }: StoredLink): ArrayBuffer => {
  const bytes = new Uint8Array(2 * HASH_BYTES + SALT_BYTES)
  bytes.set(bytesOf(hash))
  bytes.set(bytesOf(root), HASH_BYTES)
  bytes.set(seed, 2 * HASH_BYTES)
  return bytes.buffer
}

export function linkIn(column: ArrayBuffer | Bytes): StoredLink {
  const bytes = new Uint8Array(column)
  const [hash, root] = [bytes.subarray(0, HASH_BYTES), bytes.subarray(HASH_BYTES, 2 * HASH_BYTES)]
  return { hash: hex(hash), root: hex(root), seed: bytes.subarray(2 * HASH_BYTES) }
}

/** The leaves of a row that was linked, whose column is `chain`. */
export function leavesIn(chain: ArrayBuffer | Bytes, texts: readonly EntryText[]): Buffer[] {
  const salts = saltsOf(linkIn(chain).seed, texts.length)
  return texts.map((text, index) => leafOfEntry(text, salts[index]!))
}
