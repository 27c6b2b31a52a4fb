import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { unboundedComputing } from '../../src/base/computing.ts'
import type { LogEntry, NewEntry } from '../../src/contract/log-entry.ts'
import { Log } from '../../src/engine/log/log.ts'
import { scopeHead } from '../../src/engine/log/spans.ts'
import { RECEIPT } from '../../src/features/receipts/contract/receipt.ts'
import { publicKeys, signerOf } from '../../src/features/receipts/keys.ts'
import { evidenceOf } from '../../src/features/receipts/scope/evidence.ts'
import { RowLinks } from '../../src/features/receipts/scope/row-links.ts'
import { sealed } from '../../src/features/receipts/seal.ts'
import type { Database } from '../../src/kernel/unit.ts'
import { keyedMask } from '../../src/traces/keyed-hash.ts'
import { ContextJson } from '../../src/reflexes/context/context-json.ts'
import { RECEIPTS_KEY } from './receipts-key.ts'

export const TRACE = 'a'.repeat(32)
const SCOPE = 'test/receipts'
export const REDACTION_SECRET = 'a secret of sixteen letters'

/** A log in memory whose rows are linked and signed. `now`: the time in ms. */
export class LinkedLog {
  readonly sqlite: DatabaseSync
  readonly env: { REFLEX_RECEIPTS_KEY: string }
  now = 0
  log!: Log
  links!: RowLinks
  /** All that was executed. */
  readonly statements: string[] = []

  constructor({ key = RECEIPTS_KEY, sqlite = new DatabaseSync(':memory:') }: { key?: string; sqlite?: DatabaseSync } = {}) {
    this.sqlite = sqlite
    this.env = { REFLEX_RECEIPTS_KEY: key }
    sqlite.exec(
      'CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, counts TEXT, entries TEXT NOT NULL, chain BLOB, head TEXT)',
    )
    this.open()
  }

  get database(): Database {
    // node:sqlite takes no ArrayBuffer.
    const bound = (value: SQLInputValue | ArrayBuffer) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value)
    const all = (sql: string, ...params: (SQLInputValue | ArrayBuffer)[]) => {
      this.statements.push(sql)
      return this.sqlite.prepare(sql).all(...params.map(bound))
    }
    const first = (sql: string, ...params: SQLInputValue[]) => all(sql, ...params)[0]
    const precede = (write: () => void) => write()
    return { all, allHidden: all, each: all, first, precede, read: (_: string, otherwise: unknown) => otherwise } as unknown as Database
  }

  /** As an object that wakes: what was in memory is gone. */
  open(): void {
    const { database } = this
    this.log = new Log(database, () => this.now, { mask: keyedMask(REDACTION_SECRET) })
    this.links = new RowLinks({ scope: SCOPE, database, signer: signerOf(this.env), last: this.log.last, now: () => this.now })
    this.log.linkBy(this.links)
  }

  /** Writes a row, and waits for the head that it may need. */
  async write(...entries: NewEntry[]): Promise<void> {
    this.log.append(entries, this.now)
    this.log.write()
    await this.links.committed()
  }

  /** A file with the entries of the trace. */
  async receipt({ shows = () => true }: { shows?: (context: string) => boolean } = {}): Promise<string> {
    const { database, log, links, env } = this
    const own: LogEntry[] = []
    for (let after: number | null = 0; after !== null;) {
      const page = log.ofTrace(TRACE, after)
      own.push(...page.entries)
      after = page.next
    }
    const evidence = await evidenceOf(
      { database, log, history: { linked: async () => null }, fresh: () => links.head(), computing: unboundedComputing(), shows },
      own.map(({ seq }) => seq),
    )
    const recording = {
      agent: { name: 'prompted', version: null },
      settings: {},
      complete: true,
      events: [],
      parts: {},
      programs: {},
      manifests: {},
    }
    const { keys } = publicKeys(env)
    const made_at = new Date(this.now).toISOString()
    const content = {
      receipt: RECEIPT,
      trace_id: TRACE,
      made_at,
      neighbours: false,
      keys,
      scopes: [{ scope: SCOPE, ...evidence, recording }],
    }
    return sealed(content, signerOf(env)!)
  }

  /** A context that the log keeps, of which other entries of the row may repeat a part. */
  withContext(value: object): unknown {
    return this.log.cleanContext(value, ContextJson.of(value))
  }
}

/** An entry of the trace, or of another one. */
export const said = (content: string, trace_id = TRACE): NewEntry => ({
  ...scopeHead(),
  trace_id,
  kind: 'reply-sent',
  turn_id: null,
  reflex_id: null,
  content,
})

/** A log whose rows, of many sizes, have entries of the trace and of another one. */
export async function sampleLog(): Promise<LinkedLog> {
  const linked = new LinkedLog()
  const other = 'b'.repeat(32)
  for (const [row, size] of [1, 3, 9, 12, 20, 2].entries()) {
    linked.now += row * 7_000
    const entries = Array.from({ length: size }, (_, at) => said(`words ${row}.${at}`, (at + row) % 4 === 0 ? TRACE : other))
    await linked.write(...entries)
  }
  return linked
}
