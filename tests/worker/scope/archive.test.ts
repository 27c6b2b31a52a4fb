import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test } from 'vitest'
import { decodeArchive, encodeArchive } from '../../../src/base/archive-file.ts'
import { ARCHIVED, hooks, puts } from '../../support/archive-bucket.ts'
import { call, keyFor, scopePath } from '../../support/http.ts'
import { age, crash, evict, freshScope, inObject, logOf, note, runAlarm, send, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { propose, skill, twoSteps } from '../../support/two-step-skill.ts'
import { behaviours } from '../../support/test-agents.ts'

type Stub = ReturnType<typeof stubOf>
afterEach(() => hooks.clear())

const rowsOf = (stub: Stub, sql: string) => inObject(stub, ({ storage }) => storage.sql.exec(sql).toArray())
const left = async (stub: Stub): Promise<number> =>
  (await rowsOf(stub, 'SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM events) AS n'))[0]!['n'] as number
const isEmpty = (stub: Stub) => until(async () => (await left(stub)) === 0, 'everything is archived')
const isReplicated = (stub: Stub) => until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')

/** A scope with ended events that D1 has. */
const lived = (...texts: string[]) => livedAs(ARCHIVED, ...texts)

async function livedAs(kind: string | undefined, ...texts: string[]) {
  const scope = freshScope(kind)
  behaviours.set(scope, async () => ({ done: true }))
  const stub = stubOf(scope)
  const records = await sendAndSettle(stub, ...texts.map((text) => note(scope, text)))
  await isReplicated(stub)
  return { scope, stub, records, log: await logOf(stub) }
}

const filesOf = async (scope: string) =>
  (await call(scopePath(scope, '/archive'))).body.items as {
    number: number
    kind: string
    rows: number
    first_seq: number
    last_seq: number
    files: { format: string; path: string; bytes: number; sha256: string }[]
  }[]

/** All lines of a kind that the bucket has, by the manifest. */
async function linesOf(scope: string, kind: string): Promise<{ seq: number }[]> {
  const lines: { seq: number }[] = []
  for (const file of (await filesOf(scope)).filter((one) => one.kind === kind)) {
    const { path, sha256 } = file.files.find(({ format }) => format === 'jsonl')!
    const bytes = new Uint8Array(await (await env.TEST_ARCHIVE.get(path))!.arrayBuffer())
    lines.push(...decodeArchive(bytes, sha256)!.map((line) => JSON.parse(line) as { seq: number }))
  }
  return lines
}
const pathsOf = async (scope: string) => {
  const folder = scope.replaceAll('/', '~2f')
  return (await env.TEST_ARCHIVE.list()).objects.map(({ key }) => key).filter((key) => key.includes(folder))
}

/** Stops the scope at its put number `at`, until it passes on or dies. */
function stopAt(scope: string, side: 'before' | 'after', at: number) {
  const place = { reached: false, passed: false }
  let count = 0
  hooks.set(scope, {
    [side]: async () => {
      count += 1
      if (count !== at) return
      hooks.delete(scope)
      place.reached = true
      while (!place.passed) await scheduler.wait(5)
    },
  })
  return place
}

describe('the archive', () => {
  test('gets each expired event and log entry once, as JSONL and Parquet, before the scope deletes it', async () => {
    const { scope, stub, records, log } = await lived('a', 'b')
    await age(stub, 8)
    await isEmpty(stub)
    expect((await linesOf(scope, 'log')).map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq))
    expect(await linesOf(scope, 'log')).toEqual(log)
    expect(await linesOf(scope, 'events')).toMatchObject(records.map(({ event, outcome }) => ({ id: event.id, outcome, payload: event })))
    const files = await filesOf(scope)
    expect(files).toMatchObject([
      { kind: 'events', rows: 2, first_seq: 1, last_seq: 2 },
      { kind: 'log', rows: log.length, first_seq: log[0]!.seq, last_seq: log.at(-1)!.seq },
    ])
    for (const { path, bytes } of files.flatMap((file) => file.files)) {
      expect(await env.TEST_ARCHIVE.head(path)).toMatchObject({ size: bytes, customMetadata: { schema_version: '1' } })
    }
    expect((await stub.state()).archive).toEqual({ files: 2, last_error: null })
  })

  test('gets the values that log entries refer to, once no entry of the scope does', async () => {
    const { scope, stub, log } = await lived('a')
    const { basis } = log.find(({ kind }) => kind === 'event-accepted') as { basis?: string }
    await inObject(stub, ({ storage }) => storage.sql.exec('UPDATE parts SET at = at - 864000000'))
    await age(stub, 8)
    await until(async () => (await rowsOf(stub, 'SELECT 1 FROM parts')).length === 0, 'the parts are archived')
    expect(await linesOf(scope, 'parts')).toMatchObject([{ hash: basis, value: { agent: expect.anything() } }])
  })

  test.each([
    ['in an archive', ARCHIVED],
    ['without an archive', undefined],
  ])('the values that log entries refer to leave a scope that is quiet since, %s', async (_, kind) => {
    const { stub } = await livedAs(kind, 'a')
    await age(stub, 8)
    await isEmpty(stub)
    expect(await rowsOf(stub, 'SELECT 1 FROM parts')).not.toEqual([])
    await inObject(stub, ({ storage }) => storage.sql.exec('UPDATE parts SET at = at - 864000000'))
    await evict(stub)
    await stub.state()
    await until(async () => (await rowsOf(stub, 'SELECT 1 FROM parts')).length === 0, 'the parts are gone')
  })

  test('is read through the same API as the scope', async () => {
    const { scope, stub, records, log } = await lived('a', 'b')
    const [{ event }] = records as [(typeof records)[0]]
    const before = await call(scopePath(scope, `/events/${event.id}`))
    const logged = await call(`/v1/events/${event.id}?scope=${encodeURIComponent(scope)}`)
    await age(stub, 8)
    await isEmpty(stub)
    await env.DB.exec('DELETE FROM events; DELETE FROM packs')
    await sendAndSettle(stub, note(scope, 'new'))
    const { body } = await call(scopePath(scope, '/log'))
    expect(body.items).toEqual(log)
    const next = await call(scopePath(scope, `/log?after=${body.next_cursor}`))
    expect(next.body.items[0].seq).toBe(log.at(-1)!.seq + 1)
    const { body: part } = await call(scopePath(scope, '/log?after=1&before=5&limit=2'))
    expect(part).toEqual({ items: log.slice(1, 3), next_cursor: '3' })
    const times = { accepted_at: expect.any(String), ended_at: expect.any(String) }
    expect((await call(scopePath(scope, `/events/${event.id}`))).body).toEqual({ ...before.body, ...times })
    const named = `/v1/events/${event.id}?scope=${encodeURIComponent(scope)}`
    expect((await call(named)).body).toEqual(logged.body)
    expect((await call(named, { key: await keyFor(['viewer'], [freshScope()]) })).status).toBe(404)
    expect((await call(`/v1/events/${event.id}`)).status).toBe(404)
    expect((await call(scopePath(scope, '/events/unknown'))).status).toBe(404)
  })

  test('is answered with 503 if no entry of a trace can be read, which is not a trace that retention has deleted', async () => {
    const { scope, stub, records } = await lived('a')
    await age(stub, 8)
    await isEmpty(stub)
    const trace = `/v1/traces/${records[0]!.event.meta.trace_id}`
    const asked = `?scope=${encodeURIComponent(scope)}`
    const statuses = async () => {
      const replay = call(`${trace}/replay${asked}`, { json: {} })
      const read = ['', '/export', '/receipt'].map((path) => call(`${trace}${path}${asked}`))
      return (await Promise.all([...read, replay])).map(({ status }) => status)
    }
    expect(await statuses()).toEqual([200, 200, 200, 200])
    hooks.set(scope, {
      before: () => {
        throw new Error('the bucket is away')
      },
    })
    expect(await statuses()).toEqual([503, 503, 503, 503])
    expect(await call(`/v1/traces/${'a'.repeat(32)}/export${asked}`)).toMatchObject({ status: 404 })
  })

  test('gives an exported trace what the scope has deleted of it', async () => {
    const { scope, stub, records } = await lived('a')
    const of = (part: string) => `/v1/traces/${records[0]!.event.meta.trace_id}${part}?scope=${encodeURIComponent(scope)}`
    const exported = async () => (await call(of('/export'))).body
    const { entries, events, parts } = await exported()
    await inObject(stub, ({ storage }) => storage.sql.exec('UPDATE parts SET at = at - 864000000'))
    await age(stub, 8)
    await isEmpty(stub)
    await until(async () => (await rowsOf(stub, 'SELECT 1 FROM parts')).length === 0, 'the parts are archived')
    expect(await exported()).toMatchObject({ complete: true, entries, events, parts })
    hooks.set(scope, {
      before: () => {
        throw new Error('the bucket is away')
      },
    })
    await sendAndSettle(stub, note(scope, 'again', { meta: records[0]!.event.meta }))
    expect(await exported()).toMatchObject({ complete: false, events: [{ seq: 2 }] })
    expect((await call(of(''))).body).toMatchObject({ truncated: true })
    const { body: replayed } = await call(of('/replay'), { json: { mode: 'pinned' } })
    expect(replayed).toMatchObject({ complete: false, divergences: [] })
    expect(replayed.compared).toBeGreaterThan(0)
  })

  test('writes a file for each day', async () => {
    const { scope, stub } = await lived('a')
    // A row of the log of its own.
    await sendAndSettle(stub, note(scope, 'b'))
    await isReplicated(stub)
    const log = await logOf(stub)
    await inObject(stub, ({ storage }) => {
      storage.sql.exec('UPDATE log SET at = at - 86400000 WHERE seq <= 2')
    })
    await age(stub, 8)
    await isEmpty(stub)
    const files = (await filesOf(scope)).filter(({ kind }) => kind === 'log')
    expect(files).toHaveLength(2)
    expect((await linesOf(scope, 'log')).map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq))
    expect((await call(scopePath(scope, '/log?limit=1000'))).body.next_cursor).toBe(String(files[0]!.last_seq))
    // The log continues after a gap: a bucket was bound later.
    await inObject(stub, ({ storage }) => storage.sql.exec('DELETE FROM archive_files WHERE number = ?', files[0]!.number))
    const begins = files[1]!.first_seq
    expect((await call(scopePath(scope, '/log?limit=1'))).body).toEqual({ items: [log[begins - 1]], next_cursor: String(begins) })
  })

  test('has the newest of two events of the same id, which was used again once the first had expired', async () => {
    const { scope, stub, records } = await lived('first')
    await age(stub, 8)
    await isEmpty(stub)
    const again = note(scope, 'second')
    const { id } = records[0]!.event
    await sendAndSettle(stub, { ...again, id })
    await isReplicated(stub)
    await age(stub, 8)
    await isEmpty(stub)
    expect((await linesOf(scope, 'events')).map((line) => (line as { id?: string }).id)).toEqual([id, id])
    expect((await call(scopePath(scope, `/events/${id}`))).body.event).toMatchObject({ id, text: 'second' })
  })

  test('keeps a day that has not expired as a whole', async () => {
    const { stub } = await lived('a')
    const rows = await left(stub)
    const day = Math.floor(Date.now() / 86_400_000) * 86_400_000
    await inObject(stub, ({ storage }) => {
      storage.sql.exec('UPDATE log SET at = ?', day - 7 * 86_400_000)
      storage.sql.exec('UPDATE events SET accepted_at = ?', day - 7 * 86_400_000)
    })
    await evict(stub)
    await runAlarm(stub)
    expect(await left(stub)).toBe(rows)
    await inObject(stub, ({ storage }) => storage.sql.exec('UPDATE log SET at = at - 86400000 WHERE seq = 1'))
    await evict(stub)
    await runAlarm(stub)
    await until(async () => (await left(stub)) === rows - 1, 'the day before is archived')
    await until(async () => (await stub.state()).archive?.files === 1, 'it is all')
    expect(await left(stub)).toBe(rows - 1)
  })

  test('has no value of an event that the scope hides by then', async () => {
    const { scope, stub } = await lived('hush')
    await stub.configure({ redact: ['text'] }, 'ops')
    await age(stub, 8)
    await isEmpty(stub)
    expect(JSON.stringify(await linesOf(scope, 'events'))).not.toContain('hush')
  })

  test('holds no secret of the deployment', async () => {
    const { scope, stub } = await lived('the key is ticket-secret, really')
    await age(stub, 8)
    await isEmpty(stub)
    const lines = [...(await linesOf(scope, 'log')), ...(await linesOf(scope, 'events'))]
    expect(JSON.stringify(lines)).toContain('the key is')
    expect(JSON.stringify(lines)).not.toContain('ticket-secret')
  })

  test('shows no secret of the log that a skill has made one since', async () => {
    const { scope, stub } = await lived('a')
    await stub.configure({ blackboard: { ctx: { hidden: 'hunter2-hunter2' } } }, 'ops')
    await isReplicated(stub)
    await age(stub, 8)
    await isEmpty(stub)
    const shown = async () => JSON.stringify((await call(scopePath(scope, '/log'))).body)
    expect(await shown()).toContain('hunter2')
    const signature = {
      inputs: [{ name: 'what', type: 'string', required: true, secret: true }],
      blackboard_bindings: { inputs: { what: 'ctx.hidden' } },
    }
    const id = await skill({ signature, plan: { ...twoSteps('x').plan, result_map: {} } })
    await propose(scope, id, { inputs: {} })
    expect(await shown()).not.toContain('hunter2')
  })

  test('loses no counts with the rows that hold them, although they expire while it writes', async () => {
    const { scope, stub } = await lived('a')
    const place = stopAt(scope, 'before', 1)
    await age(stub, 8)
    await until(async () => place.reached, 'it writes the file')
    await sendAndSettle(stub, note(scope, 'b'))
    await isReplicated(stub)
    const { counters } = await stub.state()
    await inObject(stub, ({ storage: { sql } }) => {
      sql.exec('UPDATE log SET at = at - 8 * 86400000')
      sql.exec('UPDATE events SET accepted_at = accepted_at - 8 * 86400000')
    })
    place.passed = true
    await isEmpty(stub)
    await evict(stub)
    expect((await stub.state()).counters).toEqual(counters)
  })

  test('takes back a file that was begun for a day whose rows are gone, before it writes the next', async () => {
    const { scope, stub } = await lived('a')
    await inObject(
      stub,
      ({ storage: { sql } }) => void sql.exec(`INSERT INTO archive_files (number, kind, day) VALUES (1, 'log', '2020-01-01')`),
    )
    const place = stopAt(scope, 'before', 3)
    await age(stub, 8)
    await until(async () => place.reached, 'it writes the file of the log')
    const begun = await rowsOf(stub, `SELECT number FROM archive_files WHERE kind = 'log'`)
    expect(begun).toEqual([{ number: 3 }])
    place.passed = true
    await isEmpty(stub)
  })

  test('lists no file that is still being written', async () => {
    const { scope, stub } = await lived('a')
    const place = stopAt(scope, 'before', 1)
    await age(stub, 8)
    await until(async () => place.reached, 'it writes the file')
    expect(await filesOf(scope)).toEqual([])
    place.passed = true
    await isEmpty(stub)
  })

  test('is searched for a trace in sixteen files, and with more the trace is not complete', async () => {
    const { scope, stub, records } = await lived('a')
    await age(stub, 8)
    await isEmpty(stub)
    const { number, files } = (await filesOf(scope)).find(({ kind }) => kind === 'log')!
    const { path } = files.find(({ format }) => format === 'jsonl')!
    const bytes = await (await env.TEST_ARCHIVE.get(path))!.arrayBuffer()
    const columns = 'kind, day, first_seq, last_seq, rows, files, ids, archived_at'
    const copy = async (to: number) => {
      await env.TEST_ARCHIVE.put(path.replace(/\d{8}(?=\.jsonl)/, String(to).padStart(8, '0')), bytes)
      const insert = `INSERT INTO archive_files (number, ${columns}) SELECT ?, ${columns} FROM archive_files WHERE number = ?`
      await inObject(stub, ({ storage }) => void storage.sql.exec(insert, to, number))
    }
    const isComplete = async () => {
      const exported = `/v1/traces/${records[0]!.event.meta.trace_id}/export?scope=${encodeURIComponent(scope)}`
      return (await call(exported)).body.complete as boolean
    }
    for (let to = 101; to <= 115; to += 1) await copy(to)
    expect(await isComplete()).toBe(true)
    await copy(116)
    expect(await isComplete()).toBe(false)
  })

  test('is null in the state of a scope without a bucket, which deletes expired data as ever', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await sendAndSettle(stub, note(scope, 'a'))
    await isReplicated(stub)
    await age(stub, 8)
    expect(await left(stub)).toBe(0)
    expect((await stub.state()).archive).toBeNull()
    expect(await pathsOf(scope)).toEqual([])
  })
})

describe('a process that dies', () => {
  test.each([
    ['before the first file arrives', 'before', 1],
    ['after the first file has arrived', 'after', 1],
    ['after both formats have arrived, before the manifest has them', 'after', 2],
    ['between the files of events and of the log', 'before', 3],
    ['after the last file has arrived', 'after', 5],
  ] as const)('%s writes the same bytes again under the same names', async (_, side, at) => {
    const { scope, stub, log } = await lived('a', 'b')
    const place = stopAt(scope, side, at)
    await age(stub, 8)
    await until(async () => place.reached, 'it writes the file')
    const again = await crash(scope)
    await until(async () => {
      await again.poke().catch(() => {})
      return (await left(again)) === 0
    }, 'everything is archived')
    expect((await linesOf(scope, 'log')).map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq))
    expect((await linesOf(scope, 'events')).map(({ seq }) => seq)).toEqual([1, 2])
    expect(await pathsOf(scope)).toHaveLength(5)
    const written = Map.groupBy(
      puts.filter((put) => put.scope === scope),
      ({ path }) => path,
    )
    expect(written.size).toBe(5)
    for (const [first, ...others] of written.values()) for (const other of others) expect(other.bytes).toEqual(first!.bytes)
  })
})

describe('a bucket that is unavailable', () => {
  test('delays every deletion; nothing is lost, and the backlog drains once it is back', async () => {
    const { scope, stub, log } = await lived('a', 'b')
    const rows = await left(stub)
    hooks.set(scope, {
      before: () => {
        throw new Error('the bucket is away')
      },
    })
    for (let day = 0; day < 3; day += 1) await age(stub, 8)
    const failing = await until(async () => (await stub.state()).archive?.last_error, 'the failure is reported')
    expect(failing).toBe('the bucket is away')
    expect(await left(stub)).toBe(rows)
    expect(await logOf(stub)).toEqual(log)
    hooks.clear()
    await evict(stub)
    await stub.poke()
    await isEmpty(stub)
    expect((await stub.state()).archive).toEqual({ files: 2, last_error: null })
    expect((await linesOf(scope, 'log')).map(({ seq }) => seq)).toEqual(log.map(({ seq }) => seq))
  })

  test('is asked again by a later sweep, and not by each event until then', async () => {
    const { scope, stub } = await lived('a')
    let asked = 0
    hooks.set(scope, {
      before: () => {
        asked += 1
        throw new Error('the bucket is away')
      },
    })
    await age(stub, 8)
    await until(async () => asked > 0, 'it is asked')
    for (const text of ['b', 'c', 'd']) await sendAndSettle(stub, note(scope, text))
    await runAlarm(stub)
    expect(asked).toBe(1)
  })

  test('is answered with 503 if the log or an event is read that only the archive has', async () => {
    const { scope, stub, records } = await lived('a')
    await age(stub, 8)
    await isEmpty(stub)
    hooks.set(scope, {
      before: () => {
        throw new Error('the bucket is away')
      },
    })
    expect(await call(scopePath(scope, '/log'))).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining('the bucket is away') },
    })
    expect((await call(scopePath(scope, `/events/${records[0]!.event.id}`))).status).toBe(503)
    expect((await call(scopePath(scope, '/events/unknown'))).status).toBe(404)
  })

  test('is distinguished from a file that is missing or damaged', async () => {
    const { scope, stub } = await lived('a')
    await age(stub, 8)
    await isEmpty(stub)
    const { path } = (await filesOf(scope)).find(({ kind }) => kind === 'log')!.files.find(({ format }) => format === 'jsonl')!
    const [other] = [...encodeArchive('log', scope, [{ seq: 1, text: '{"seq":1}' }])]
    await env.TEST_ARCHIVE.put(path, other!.bytes)
    expect((await call(scopePath(scope, '/log'))).body.detail).toContain('is damaged')
    await env.TEST_ARCHIVE.delete(path)
    expect((await call(scopePath(scope, '/log'))).body.detail).toContain('is missing')
  })
})

describe('an event that changes while its file is written', () => {
  test('is kept, and archived once it has ended again', async () => {
    const scope = freshScope(ARCHIVED)
    const stub = stubOf(scope)
    let broken = true
    behaviours.set(scope, async () => {
      if (broken) throw new Error('it does not work')
      return { done: true }
    })
    await stub.configure({ retry: { max_attempts: 1 } }, 'ops')
    const [id] = await send(stub, note(scope, 'a'))
    await until(async () => (await stub.event(id!))?.status === 'dead_lettered', 'it is a dead letter')
    await isReplicated(stub)
    broken = false
    const place = stopAt(scope, 'after', 1)
    await age(stub, 8)
    await until(async () => place.reached, 'it writes the file')
    await stub.reopen([id!], 'ops')
    await until(async () => (await stub.event(id!))?.status === 'completed', 'it has ended')
    place.passed = true
    await isReplicated(stub)
    await age(stub, 8)
    await isEmpty(stub)
    expect(await linesOf(scope, 'events')).toMatchObject([{ id, status: 'completed' }])
    expect(await pathsOf(scope)).toHaveLength((await filesOf(scope)).flatMap(({ files }) => files).length)
  })
})
