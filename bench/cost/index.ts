import worker, { GlobalKey, Learner, Ledger, Scope as Uncounted, Sweeper } from '../../src/index.ts'
import type { Env } from '../../src/env.ts'
import type { ScopeApi } from '../../src/contract/scope-api.ts'
import { countDatabase, countStorage, takeDatabaseWrites, takeStorageWrites, type Writes } from '../../tests/support/count-writes.ts'

export { GlobalKey, Learner, Ledger, Sweeper }
/** Billed requests and queue operations: a message of 64 kB is written, read and deleted. */
export type Spent = { scope: Writes; d1: Writes; worker_requests: number; object_requests: number; queue_operations: number }

const nothing = { worker_requests: 0, object_requests: 0, queue_operations: 0 }
let spent = { ...nothing }
const encoder = new TextEncoder()
const MESSAGE_BYTES = 65_536

export class Scope extends Uncounted {
  constructor(context: DurableObjectState, env: Env) {
    countStorage(context.storage)
    super(context, env)
  }

  override async accept(...given: Parameters<ScopeApi['accept']>) {
    spent.object_requests += 1
    return super.accept(...given)
  }

  override async alarm() {
    spent.object_requests += 1
    await super.alarm?.()
  }

  writes(): Writes {
    return takeStorageWrites(this.ctx.storage)
  }
}

/** The Worker, plus `/v1/bench/spent?scope=…`: what it has spent since the last such request. */
export default {
  ...worker,
  async fetch(request, env, context) {
    countDatabase(env.DB)
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/v1/bench/spent') return Response.json(await take(env, searchParams.getAll('scope')))
    if (request.method === 'POST') spent.worker_requests += 1
    return worker.fetch(request, env, context)
  },
  async queue(batch, env) {
    spent.worker_requests += 1
    for (const { body } of batch.messages) {
      spent.queue_operations += 3 * Math.ceil(encoder.encode(JSON.stringify(body)).length / MESSAGE_BYTES)
    }
    await worker.queue(batch, env)
  },
} satisfies ExportedHandler<Env>

async function take(env: Env, names: readonly string[]): Promise<Spent> {
  const scopes = env.SCOPE as unknown as DurableObjectNamespace<Scope>
  const each = await Promise.all(names.map((name) => scopes.getByName(name).writes()))
  const total = (key: keyof Writes) => each.reduce((sum, writes) => sum + writes[key], 0)
  const scope = { rows: total('rows'), alarms: total('alarms'), bytes: total('bytes'), kept: total('kept') }
  const d1 = await takeDatabaseWrites(env.DB, names)
  const taken = { scope, d1: { ...d1, bytes: d1.bytes - (await queuedBytes(env.DB)) }, ...spent }
  spent = { ...nothing }
  return taken
}

/** A sent batch is stored until the next sweep: when that runs must not change the figure. */
const queuedBytes = async (db: D1Database): Promise<number> =>
  (await db.prepare('SELECT sum(octet_length(events)) AS bytes FROM queued').first<number>('bytes')) ?? 0
