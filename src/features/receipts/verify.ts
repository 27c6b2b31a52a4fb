import { createPublicKey, verify as verifySignature } from 'node:crypto'
import type { z } from 'zod'
import { jsonHash, hexHash } from '../../base/hash.ts'
import { canonicalJson, isJsonFields, jsonValue } from '../../base/json.ts'
import { partHash } from '../../traces/ids.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { Recording } from '../replay/recording.ts'
import { bytesOf, headText, hex, leafOf, rootAbove, rowHash, splitLeaf } from './chain.ts'
import {
  type ExportChain,
  exportChain,
  type Head,
  type Proven,
  type PublicKeys,
  RECEIPT,
  receipt,
  type scopeReceipt,
  type Segment,
} from './contract/receipt.ts'
import { keyName } from './keys.ts'
import { sealOf } from './seal.ts'

/**
 * The proof that a file has of an entry. `signed`: all of it. `partly`: the file has its context as
 * a hash alone. `hash`: masks hide a part of it. `unsigned`: nothing.
 */
export type Standing = 'signed' | 'partly' | 'hash' | 'unsigned'
export type CheckedScope = {
  scope: string
  /** Without the first entry of the chain, if all entries of the log are in it. */
  begins: number | null
  heads: readonly Head[]
  /** The rows that lead to the heads: the first entry, the last one, and the hash. */
  rows: readonly { first: number; last: number; hash: string }[]
  standing: ReadonlyMap<number, Standing>
  recording: Recording
}
export type Checked = {
  trace_id: string
  made_at: string
  neighbours: boolean
  /** The keys that signed, by their names. */
  keys: readonly string[]
  scopes: readonly CheckedScope[]
}
type Keys = ReadonlyMap<string, string>
/** Sentences about all that does not fit. A file without any is as it was signed. */
type Flaws = string[]

/** Checks signatures, chain and hashes of a file. `trusted`: keys that came by another way. */
export function checkReceipt(text: string, trusted: PublicKeys | null = null): { flaws: Flaws; checked: Checked | null } {
  const flaws: Flaws = []
  const value = jsonValue(text)
  if (!isJsonFields(value)) return { flaws: ['The file is not a JSON object: it is cut off, or not a receipt.'], checked: null }
  if (typeof value['receipt'] === 'number' && value['receipt'] > RECEIPT)
    return { flaws: [`The file has version ${value['receipt']}; this program reads version ${RECEIPT}. Use a newer one.`], checked: null }
  const parsed = receipt.safeParse(value)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    return { flaws: [`The file is not a receipt: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.`], checked: null }
  }
  const { trace_id, made_at, neighbours } = parsed.data
  const keys = keysOf(parsed.data.keys, { trusted, flaws })
  const used = new Set<string>()
  const check = new Check({ keys, flaws, used })
  check.seal(text)
  // As it was written: a prompt that is made again quotes the fields of an event in their order.
  const written = value as z.infer<typeof receipt>
  const scopes = parsed.data.scopes.map((part, index) =>
    check.scope({ ...part, recording: written.scopes[index]?.recording ?? part.recording }, trace_id),
  )
  return { flaws, checked: { trace_id, made_at, neighbours, keys: [...used], scopes } }
}

/**
 * Checks the chain of an exported trace: each entry, up to a signed head. What is beside entries,
 * such as settings, nobody signs in an export: decisions are made again from a receipt alone.
 */
export function checkExport(text: string, trusted: PublicKeys | null = null): { flaws: Flaws; checked: Checked | null } {
  const flaws: Flaws = []
  const value = jsonValue(text) as { recordings?: Recording[] } & Recording
  const recordings = value.recordings ?? [value]
  const used = new Set<string>()
  const scopes = recordings.flatMap(({ chain, sha256: sum, ...recording }: Recording & { chain?: unknown }) => {
    const { scope, trace_id, entries } = recording
    const parsed = exportChain.safeParse(chain)
    if (!parsed.success) {
      flaws.push(`${scope}: the file has no chain that can be read: its deployment signed nothing when it was exported.`)
      return []
    }
    if (jsonHash({ ...recording, chain }) !== sum) flaws.push(`${scope}: the file does not have its sum.`)
    const { keys: own, begins, segments, entries: proofs } = parsed.data
    const check = new Check({ keys: keysOf(own, { trusted, flaws }), flaws, used })
    const texts = new Map(entries.map((entry) => [entry.seq, entry]))
    if (entries.length !== proofs.length) flaws.push(`${scope}: the chain has ${proofs.length} of ${entries.length} entries.`)
    const whole = proofs.flatMap((proof) => provenBeside(proof, texts.get(proof.seq)) ?? [])
    const part = { scope, begins, segments, entries: whole, recording } as unknown as z.infer<typeof scopeReceipt>
    return [check.scope(part, trace_id)]
  })
  const at = Math.max(0, ...scopes.flatMap(({ heads }) => heads.map((one) => one.at)))
  const checked = {
    trace_id: recordings[0]?.trace_id ?? '',
    made_at: new Date(at).toISOString(),
    neighbours: true,
    keys: [...used],
    scopes,
  }
  return { flaws, checked: scopes.length === 0 ? null : checked }
}

/** The proof with the text of its entry, which is the JSON that was hashed. */
function provenBeside(proof: ExportChain['entries'][number], entry: LogEntry | undefined): Proven | null {
  if ('text' in proof || 'shown' in proof || 'unsigned' in proof) return proof
  if (!entry) return null
  const text = JSON.stringify(entry)
  if (!('row' in proof)) return { seq: proof.seq, unsigned: text }
  if ('leaf' in proof) return { ...proof, shown: text }
  if (!('context' in proof)) return { ...proof, text }
  const head = `${JSON.stringify({ ...entry, context: undefined }).slice(0, -1)},"context":`
  return { ...proof, text: head, context: { ...proof.context, text: text.slice(head.length) } }
}

export function keysOf(own: PublicKeys['keys'], { trusted, flaws }: { trusted: PublicKeys | null; flaws: Flaws }): Keys {
  for (const { key, x } of [...own, ...(trusted?.keys ?? [])])
    if (keyName(x) !== key) flaws.push(`The key ${key} does not have the name that follows from its bytes.`)
  return new Map((trusted?.keys ?? own).map(({ key, x }) => [key, x]))
}

/**
 * Finds logs that contradict each other: two files have rows of one scope at the same place, with
 * other hashes. The scope was restored to an earlier time, or somebody wrote its log again.
 */
export function forksIn(files: readonly Checked[]): string[] {
  const forks = new Set<string>()
  for (const parts of Map.groupBy(
    files.flatMap(({ scopes }) => scopes),
    ({ scope }) => scope,
  ).values()) {
    const rows = parts.flatMap((part) => part.rows).toSorted((one, other) => one.first - other.first || one.last - other.last)
    for (const [index, row] of rows.entries()) {
      const before = rows[index - 1]
      if (!before || before.last < row.first || before.hash === row.hash) continue
      forks.add(`${parts[0]?.scope}: the files have two logs, which differ at the entry ${row.first}: it was restored or written again.`)
    }
  }
  return [...forks]
}

export class Check {
  readonly #keys: Keys
  readonly #flaws: Flaws
  readonly #used: Set<string>

  constructor({ keys, flaws, used }: { keys: Keys; flaws: Flaws; used: Set<string> }) {
    this.#keys = keys
    this.#flaws = flaws
    this.#used = used
  }

  seal(text: string): void {
    const seal = sealOf(text)
    if (!seal) this.#flaws.push('The file does not end with its seal: it was written again or changed.')
    else if (!this.#isSigned(seal.signed, seal))
      this.#flaws.push('The seal does not fit the bytes of the file: something in it was changed.')
  }

  scope({ scope, begins, entries, segments, recording }: z.infer<typeof scopeReceipt>, trace_id: string): CheckedScope {
    const rows = new Map<number, Segment['rows'][number]>()
    const hashed: { first: number; last: number; hash: string }[] = []
    for (const segment of segments) {
      if ((segment.rows[0]?.seq ?? 0) <= (hashed.at(-1)?.last ?? 0))
        this.#flaws.push(`${scope}: rows of the log are there twice, or in another order.`)
      hashed.push(...this.#segment(scope, segment))
      for (const row of segment.rows) rows.set(row.seq, row)
    }
    const standing = new Map<number, Standing>()
    const found: LogEntry[] = []
    for (const entry of entries) {
      if (standing.has(entry.seq)) this.#flaws.push(`${scope}: the entry ${entry.seq} is there twice.`)
      const read = this.#entry(scope, entry, rows)
      standing.set(entry.seq, read.standing)
      if (!isEntry(read.value) || read.value.seq !== entry.seq || read.value.trace_id !== trace_id)
        this.#flaws.push(`${scope}: the entry ${entry.seq} is not an entry of this trace at its place in the log.`)
      else found.push(read.value)
    }
    const whole = {
      ...recording,
      trace_id,
      scope,
      entries: found.toSorted((one, other) => one.seq - other.seq),
      sha256: '',
    } as unknown as Recording
    this.#content(whole)
    return { scope, begins, heads: segments.map(({ head }) => head), rows: hashed, standing, recording: whole }
  }

  /** Returns the rows of the segment with their hashes. */
  #segment(scope: string, { before, rows, head }: Segment): CheckedScope['rows'] {
    const hashed: { first: number; last: number; hash: string }[] = []
    let hash = before
    let next = rows[0]?.seq ?? 0
    for (const row of rows) {
      if (row.seq !== next) this.#flaws.push(`${scope}: the log has a gap before the entry ${row.seq}.`)
      hash = rowHash(hash, row)
      next = row.seq + row.count
      hashed.push({ first: row.seq, last: next - 1, hash })
    }
    if (head.hash !== hash || head.seq !== next - 1)
      this.#flaws.push(`${scope}: the chain does not lead to the signed head at ${head.seq}.`)
    this.head(scope, head)
    return hashed
  }

  head(scope: string, head: Head): void {
    if (!this.#isSigned(headText({ scope, ...head }), head)) this.#flaws.push(`${scope}: the head at ${head.seq} is not signed by its key.`)
  }

  #entry(scope: string, entry: Proven, rows: ReadonlyMap<number, Segment['rows'][number]>): { value: unknown; standing: Standing } {
    if ('unsigned' in entry) return { value: jsonValue(entry.unsigned), standing: 'unsigned' }
    const row = rows.get(entry.row)
    const { leaf, text, standing } = leafIn(entry)
    const root =
      row && rootAbove(leaf, { index: entry.seq - row.seq, count: row.count, path: entry.path.map((level) => level.map(bytesOf)) })
    if (!row) return { value: jsonValue(text), standing: 'unsigned' }
    if (!root || hex(root) !== row.root) this.#flaws.push(`${scope}: the entry ${entry.seq} is not the one that its row was signed with.`)
    return { value: jsonValue(text), standing }
  }

  /** Checks all that entries name by its hash. */
  #content({ scope, parts, programs, manifests }: Recording): void {
    for (const [hash, value] of Object.entries(parts))
      if (partHash(canonicalJson(value)) !== hash && !isLeftOut(value, hash))
        this.#flaws.push(`${scope}: the part ${hash} does not have its hash.`)
    for (const [hash, { id, code }] of Object.entries(programs))
      if (hexHash(code) !== hash) this.#flaws.push(`${scope}: the code of ${id} does not have its hash.`)
    for (const [hash, manifest] of Object.entries(manifests))
      if (jsonHash(manifest) !== hash) this.#flaws.push(`${scope}: a manifest does not have its hash ${hash}.`)
  }

  #isSigned(text: string, { key, signature }: { key: string; signature: string }): boolean {
    const x = this.#keys.get(key)
    if (x === undefined) {
      const flaw = `The key ${key} is not among the keys that are trusted.`
      if (!this.#flaws.includes(flaw)) this.#flaws.push(flaw)
      return true
    }
    this.#used.add(key)
    try {
      const public_key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
      return verifySignature(null, Buffer.from(text), public_key, bytesOf(signature))
    } catch {
      return false
    }
  }
}

const isEntry = (value: unknown): value is LogEntry =>
  isJsonFields(value) && typeof value['kind'] === 'string' && Array.isArray(value['event_ids']) && typeof value['span_id'] === 'string'
/** A part that was too long for a row has its hash in its place. */
const isLeftOut = (value: unknown, hash: string): boolean =>
  isJsonFields(value) && isJsonFields(value['not_logged']) && value['not_logged']['hash'] === hash

function leafIn(entry: Exclude<Proven, { unsigned: string }>): { leaf: Uint8Array; text: string; standing: Standing } {
  if ('leaf' in entry) return { leaf: bytesOf(entry.leaf), text: entry.shown, standing: 'hash' }
  const { text, salt } = entry
  const head = leafOf(bytesOf(salt), text)
  if (!('context' in entry)) return { leaf: head, text, standing: 'signed' }
  const { context } = entry
  if ('leaf' in context) return { leaf: splitLeaf(head, bytesOf(context.leaf)), text: `${text}null}`, standing: 'partly' }
  return { leaf: splitLeaf(head, leafOf(bytesOf(context.salt), context.text)), text: text + context.text, standing: 'signed' }
}
