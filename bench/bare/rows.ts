import { DurableObject } from 'cloudflare:workers'

/** A table of rows, and a socket that inserts what it gets and echoes it. */
export class Rows extends DurableObject {
  readonly #sql: SqlStorage

  constructor(context: DurableObjectState, env: Cloudflare.Env) {
    super(context, env)
    this.#sql = context.storage.sql
    this.#sql.exec('CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, payload TEXT NOT NULL)')
  }

  async insert(payloads: string[]): Promise<void> {
    for (const payload of payloads) this.#insert(payload)
  }

  async count(): Promise<number> {
    return this.#sql.exec<{ n: number }>('SELECT coalesce(max(seq), 0) AS n FROM rows').one().n
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
}
