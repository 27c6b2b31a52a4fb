import { DurableObject } from 'cloudflare:workers'

/** A table of rows, and a socket that inserts what it gets and echoes it. */
export class Rows extends DurableObject {
  readonly #sql: SqlStorage
  #draining = false

  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    super(context, env)
    this.#sql = context.storage.sql
    this.#sql.exec(`CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, payload TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS inbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, payload TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS memory (seq INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS outcomes (id TEXT PRIMARY KEY, status TEXT NOT NULL, at INTEGER NOT NULL)`)
  }

  async insert(payloads: string[]): Promise<void> {
    for (const payload of payloads) this.#insert(payload)
  }

  async count(): Promise<number> {
    return this.#sql.exec<{ n: number }>('SELECT coalesce(max(seq), 0) AS n FROM rows').one().n
  }

  /**
   * A minimal event loop: a durable inbox, an idempotent handler, 100 events in memory, an outcome.
   */
  async work(event: string): Promise<void> {
    const insert = 'INSERT OR IGNORE INTO inbox (id, payload) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM outcomes WHERE id = ?1)'
    this.#sql.exec(insert, idOf(event), event)
    await this.ctx.storage.setAlarm(Date.now() + 5000)
    this.ctx.waitUntil(this.#drain())
  }

  async worked(): Promise<number> {
    return this.#sql.exec<{ n: number }>('SELECT count(*) AS n FROM outcomes').one().n
  }

  override async alarm(): Promise<void> {
    await this.#drain()
  }

  override async fetch(): Promise<Response> {
    const { 0: client, 1: server } = new WebSocketPair()
    this.ctx.acceptWebSocket(server)
    return new Response(null, { status: 101, webSocket: client })
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    if (typeof message !== 'string') return
    this.#insert(message)
    socket.send(message)
  }

  #insert(payload: string): void {
    this.#sql.exec('INSERT INTO rows (payload) VALUES (?)', payload)
  }

  /** Handles one event after the other; the alarm resumes after a crash. */
  async #drain(): Promise<void> {
    if (this.#draining) return
    this.#draining = true
    try {
      for (let row = this.#next(); row; row = this.#next()) {
        const { seq, payload } = row
        await handle(payload)
        this.ctx.storage.transactionSync(() => {
          this.#sql.exec('INSERT INTO memory (payload) VALUES (?)', payload)
          this.#sql.exec('DELETE FROM memory WHERE seq <= (SELECT max(seq) FROM memory) - 100')
          this.#sql.exec(`INSERT OR IGNORE INTO outcomes VALUES (?, 'completed', ?)`, idOf(payload), Date.now())
          this.#sql.exec('DELETE FROM inbox WHERE seq = ?', seq)
        })
      }
    } finally {
      this.#draining = false
    }
  }

  #next(): { seq: number; payload: string } | undefined {
    return this.#sql.exec<{ seq: number; payload: string }>('SELECT seq, payload FROM inbox ORDER BY seq LIMIT 1').toArray()[0]
  }
}

const idOf = (event: string): string => String((JSON.parse(event) as { id: unknown }).id)
const handle = async (_event: string): Promise<void> => {}
