import { z } from 'zod'
import type { TraceRecording } from '../../../contract/scope-api.ts'

/** The version of the file's form. */
export const RECEIPT = 1
/** The version of the form of the chain beside archived entries. */
export const ARCHIVE_CHAIN = 1

export const publicKeys = z
  .object({
    keys: z.array(
      z.object({
        key: z.string().describe('Its name: the first 16 hex digits of the SHA-256 of its 32 bytes.'),
        algorithm: z.literal('Ed25519'),
        x: z.string().describe('The key, as base64url.'),
        from: z.iso.datetime(),
        until: z.iso.datetime().nullable().describe('Null for the key that signs now.'),
      }),
    ),
  })
  .meta({ id: 'ReceiptKeys', description: 'The public keys, newest first. A deployment without a key has none.' })
export type PublicKeys = z.infer<typeof publicKeys>

const hash = z.string().regex(/^[\da-f]{64}$/)
const salt = z.string().regex(/^[\da-f]{32}$/)
const path = z.array(z.array(hash))
const place = z.object({ seq: z.int(), row: z.int().describe('The first entry of its row.') })

export const head = z.object({
  seq: z.int().describe('The last entry that it covers.'),
  hash,
  at: z.int().describe('When it was signed, in ms.'),
  key: z.string(),
  signature: z.string().regex(/^[\da-f]{128}$/),
})
export type Head = z.infer<typeof head>

/** Rows of the log that follow each other, of which the last one is what the head signs. */
const segment = z.object({
  before: hash.describe('The hash of the row before; zeros before the first.'),
  rows: z.array(z.object({ seq: z.int(), count: z.int().min(1), root: hash })).min(1),
  head,
})
export type Segment = z.infer<typeof segment>

const proven = z.union([
  z.strictObject({ ...place.shape, text: z.string(), salt, path }),
  /** `text` ends where the context begins, which is there, or is only its leaf. */
  z.strictObject({
    ...place.shape,
    text: z.string(),
    salt,
    context: z.union([z.strictObject({ text: z.string(), salt }), z.strictObject({ leaf: hash })]),
    path,
  }),
  /** Masks that are newer than the entry hide a part of it: `shown` is not what was hashed. */
  z.strictObject({ ...place.shape, shown: z.string(), leaf: hash, path }),
  /** The row is older than the chain. */
  z.strictObject({ seq: z.int(), unsigned: z.string() }),
])
export type Proven = z.infer<typeof proven>

/** The proof of an entry whose text stands beside it, in an exported trace. */
const besideText = z.union([
  z.strictObject({ ...place.shape, salt, path }),
  z.strictObject({ ...place.shape, salt, context: z.strictObject({ salt }), path }),
  z.strictObject({ ...place.shape, leaf: hash, path }),
  z.strictObject({ seq: z.int() }),
])
export type BesideText = z.infer<typeof besideText>

/** The way from the entries of an exported trace to signed heads. */
export const exportChain = z.object({
  keys: publicKeys.shape.keys,
  begins: z.int().nullable(),
  entries: z.array(z.union([proven, besideText])),
  segments: z.array(segment),
})
export type ExportChain = z.infer<typeof exportChain>

export const scopeReceipt = z.looseObject({
  scope: z.string(),
  begins: z.int().nullable().describe('The first entry of the chain, if older entries of the log are not in it.'),
  entries: z.array(proven),
  segments: z.array(segment),
  recording: z
    .looseObject({
      agent: z.object({ name: z.string(), version: z.string().nullable() }),
      settings: z.looseObject({}),
      complete: z.boolean(),
      events: z.array(z.object({ seq: z.int(), event: z.looseObject({ id: z.string(), type: z.string() }) })),
      parts: z.record(z.string(), z.unknown()),
      programs: z.record(z.string(), z.looseObject({ id: z.string(), code: z.string() })),
      manifests: z.record(z.string(), z.unknown()),
    })
    .describe('What the decisions were made from, as in an exported trace. Entries name code, manifests and parts by their hashes.'),
})

export const receipt = z
  .looseObject({
    receipt: z.int(),
    trace_id: z.string(),
    made_at: z.iso.datetime(),
    neighbours: z.boolean().describe('Whether events of other traces are in it.'),
    keys: publicKeys.shape.keys,
    scopes: z.array(scopeReceipt),
    seal: z.object({ key: z.string(), signature: z.string() }).describe('Signs all bytes before it.'),
  })
  .meta({ id: 'TraceReceipt', description: 'A file that `reflex verify` checks without a server; docs/receipts.md.' })

export const opening = z
  .object({
    mask: z.string().describe('What the log has in place of the value.'),
    salt: z
      .string()
      .regex(/^[\da-f]{64}$/)
      .describe('With the value it gives the mask. Give it to those alone who may see the value.'),
  })
  .meta({ id: 'Opening', description: 'The proof of a masked value, which `reflex receipts prove` checks against a receipt.' })

/** `neighbours`: with events of other traces, which contexts and prompts quote. */
export type OfReceipt = { trace_id: string; neighbours: boolean }
/** An exported trace of a scope, with the chain if the deployment signs. */
export type WithChain = TraceRecording & { chain: ExportChain }
/** The places of entries in the chain of their log, and the rows from there to signed heads. */
export type ChainEvidence = { begins: number | null; entries: Proven[]; segments: Segment[] }
/** A scope's part of a receipt. Entries are in the evidence, as they were hashed. */
export type ScopeEvidence = { recording: TraceRecording; evidence: ChainEvidence }
