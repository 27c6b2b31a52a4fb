import { InvalidArgumentError } from 'commander'
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../../cli/lib/cli-error.ts'
import type { Terminal } from '../../../../cli/lib/paint.ts'
import { askPages, requestOf, type Asking } from '../../../../cli/reflex/ask.ts'
import { completions } from '../../../../cli/reflex/completion.ts'
import { checksOf, missingToolsCheck, scopeToolsCheck, type DoctorHealth } from '../../../../cli/reflex/doctor/checks.ts'
import { printer } from '../../../../cli/reflex/printer.ts'
import { reflexProgram } from '../../../../cli/reflex/program.ts'
import { matches } from '../../../../cli/reflex/reflex/test.ts'
import { settingsIn } from '../../../../cli/reflex/scope/set.ts'
import { fields, safeJson, table } from '../../../../cli/reflex/table.ts'
import { instant, share, wholeNumber } from '../../../../cli/reflex/values.ts'
import type { AnyOperation } from '../../../../src/contract/operation.ts'
import { list } from '../../../../src/contract/operations/events.ts'

test('a table aligns its columns, cuts the last one, and cannot steer the terminal', () => {
  const columns = [
    { title: 'ID', of: ({ id }: { id: string; text: string | null }) => id },
    { title: 'TEXT', of: ({ text }: { id: string; text: string | null }) => text },
  ]
  const items = [
    { id: 'a', text: 'one\u001b[31m two three four five' },
    { id: 'long-id', text: null },
  ]
  expect(table(items, columns, { width: 20 })).toEqual(['ID       TEXT', 'a        one?[31m t…', 'long-id  -'])
  expect(fields({ a: 1, bcd: undefined, ef: 'x\ny' })).toEqual(['a   1', 'ef  x y'])
})

test('JSON on a terminal has no character that steers it, and parses to the same value', () => {
  const value = { a: 'x\u009b31m\u202e\ufeff' }
  expect(safeJson(value)).toMatch(/^[\x20-\x7e]*$/)
  expect(JSON.parse(safeJson(value))).toEqual(value)
})

test('values of options are checked', () => {
  const now = Date.parse('2026-11-22T05:00:00Z')
  expect(instant('10m', now)).toBe('2026-11-22T04:50:00.000Z')
  expect(instant('10m ago', now)).toBe('2026-11-22T04:50:00.000Z')
  expect(instant('2026-11-22T06:00:00+01:00', now)).toBe('2026-11-22T05:00:00.000Z')
  for (const text of ['', '10', 'm', 'yesterday', '2026-13-01']) expect(() => instant(text, now)).toThrow(InvalidArgumentError)
  expect(wholeNumber('7')).toBe(7)
  for (const text of ['0', '-1', '1.5', 'x', '']) expect(() => wholeNumber(text)).toThrow(InvalidArgumentError)
  expect(share('0.95')).toBe(0.95)
  for (const text of ['1.1', '-0.1', '', 'x']) expect(() => share(text)).toThrow(InvalidArgumentError)
})

test('a list of several pages says once what each of them lacks', async () => {
  const pages = [
    { items: [{ id: 'a' }], next_cursor: '5', missing: ['EVENTS_DB_1'] },
    { items: [{ id: 'b' }], next_cursor: null, missing: ['EVENTS_DB_1', 'EVENTS_DB_2'], damaged: ['DB 7'] },
  ]
  const asking = { api: () => ({ json: async () => pages.shift() }), signal: undefined } as unknown as Asking
  const page = await askPages(asking, list as AnyOperation, { limit: 10, most: 5 })
  const notes: string[] = []
  const stdout = { write: () => true } as unknown as Terminal
  const stderr = { write: (text: string) => void notes.push(text) } as unknown as Terminal
  printer(false, { stdout, stderr }).page(page, [], 'none')
  expect(notes).toEqual([
    'EVENTS_DB_1, EVENTS_DB_2 did not answer: what only they have is missing here.\n',
    'DB 7 cannot be read: the events in these packs are missing here.\n',
  ])
})

test('settings are JSON or text', () => {
  expect(settingsIn(['a=1', 'b=text', 'c=null', 'd={"x":1}', 'e=', 'f=a=b'])).toEqual({
    a: 1,
    b: 'text',
    c: null,
    d: { x: 1 },
    e: '',
    f: 'a=b',
  })
  expect(() => settingsIn(['a'])).toThrow(UsageError)
})

test('an action matches if it has the wanted fields', () => {
  expect(matches({ a: { b: 1, c: 2 }, d: [1] }, { a: { b: 1 }, d: [1] })).toBe(true)
  expect(matches({ a: 1 }, { a: 1, b: undefined })).toBe(false)
  expect(matches(null, null)).toBe(true)
  expect(matches({ a: 1 }, null)).toBe(false)
  expect(matches({ d: [1, 2] }, { d: [1] })).toBe(false)
})

test('parts of a path are encoded', () => {
  const fields = { limit: 5, cursor: undefined, q: 'ü&' }
  expect(requestOf({ at: 'get /v1/scopes/{scope}' }, { path: ['a/b c'], fields }).address).toBe('/v1/scopes/a%2Fb%20c?limit=5&q=%C3%BC%26')
})

describe('completion', () => {
  const completed = (...words: string[]) => completions(reflexProgram(), words)
  test('offers nouns, verbs, options and the values of options', () => {
    expect(completed('')).toEqual(expect.arrayContaining(['events', 'scope', 'doctor']))
    expect(completed('')).not.toContain('complete')
    expect(completed('scope', 's')).toEqual(['show', 'set'])
    expect(completed('events', 'list', '--st')).toEqual(['--status'])
    expect(completed('events', 'list', '--status', 'dead')).toEqual(['dead_lettered'])
    expect(completed('events', 'list', '--js')).toEqual(['--json'])
    expect(completed('completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
  })
})

describe('doctor', () => {
  const part = { ok: true, duration_ms: 1, error: null }
  const time = '2026-11-22T05:00:00.000Z'
  const now = Date.parse(time)
  const deployment = { time, bindings: { present: ['DB'], missing: [], unused: ['AI'] }, schema_error: null, secrets: [] }
  const healthy: DoctorHealth = {
    database: part,
    queue: part,
    inboxes: { scopes: 1, open: 0 },
    parked: { scopes: 0, work: 0 },
    dead_letters: { total: 0 },
    retention: { days: 30, backlog: 0 },
    model: 'offline',
    model_error: null,
    agents: [],
    deployment,
  }
  const calls = {
    status: 'answering' as const,
    last_answer_at: '2026-01-01T00:00:00.000Z',
    failing_since: null,
    failures: 0,
    scopes_failing: 0,
    scopes_waiting: 0,
    asks_at: null,
    error: null,
  }
  const levels = (changes: Partial<DoctorHealth>, timing = { sent: now - 10, received: now + 10 }) =>
    checksOf({ ...healthy, ...changes }, timing).flatMap(({ name, level }) => (level === 'ok' ? [] : [`${name} ${level}`]))

  test('finds nothing wrong with a healthy server', () => {
    expect(levels({})).toEqual([])
    expect(levels({ model_calls: calls })).toEqual([])
  })

  const shard = { name: 'EVENTS_DB_1', error: null, bytes: 3e9, database_bytes: 3.1e9, bytes_per_day: 2e8, kept_days: 30 }
  test('shows how full each database of packs is, and how fast it fills', () => {
    const health = {
      ...healthy,
      retention: {
        days: 30,
        backlog: 0,
        databases: [shard, { ...shard, bytes_per_day: null, kept_days: null }, { ...shard, kept_days: 2463934.8 }],
      },
    }
    expect(checksOf(health, { sent: now, received: now }).filter(({ name }) => name.startsWith('events in'))).toMatchObject([
      { level: 'ok', detail: '3000.0 MB of packed events, 200.0 MB a day, 30 days fit; 3100.0 MB of 10 GB in all' },
      { level: 'ok', detail: '3000.0 MB of packed events; 3100.0 MB of 10 GB in all' },
      { level: 'ok', detail: '3000.0 MB of packed events, 200.0 MB a day, years fit; 3100.0 MB of 10 GB in all' },
    ])
  })

  // A local server has RATE_LIMIT, and does not use it.
  test('names the bindings that are not used, bound or not', () => {
    const bindings = { present: ['SCOPE', 'DB'], missing: [], unused: ['RATE_LIMIT', 'AI'] }
    const checks = checksOf({ ...healthy, deployment: { ...deployment, bindings } }, { sent: now, received: now })
    const found = checks.find(({ name }) => name === 'bindings')
    expect(found).toMatchObject({ level: 'ok', detail: 'SCOPE, DB; not used: RATE_LIMIT, AI' })
  })

  test('warns days ahead that D1 will forget events, unless an archive takes them', () => {
    const packs = { most_bytes: 6e9, kept_days: 12.5, leave_in_days: 3.5 }
    const health = { ...healthy, archive: null, retention: { days: 30, backlog: 0, packs } }
    const of = (changed: Partial<DoctorHealth>) =>
      checksOf({ ...health, ...changed }, { sent: now, received: now }).filter(({ name }) => name === 'events in D1')
    expect(of({})).toMatchObject([
      {
        level: 'warning',
        detail: 'REFLEX_EVENTS_BYTES holds 12.5 days of events at this rate, not 30: the oldest are forgotten, beginning in 3.5 days',
      },
    ])
    expect(of({ archive: { ok: true, duration_ms: 1, error: null } })).toEqual([])
    expect(of({ retention: { days: 10, backlog: 0, packs } })).toEqual([])
    expect(of({ retention: { days: 30, backlog: 0, packs: { ...packs, leave_in_days: 0 } } })).toMatchObject([
      { detail: expect.stringMatching(/beginning now$/) },
    ])
  })

  test('warns of tools and MCP servers that settings declare and nothing can call', () => {
    const tools = [{ name: 'mcp.bank', destinations: [], assumed: false, unavailable: 'listing its tools took longer than 5000 ms' }]
    expect(missingToolsCheck([{ scope: 'shop/1', tools }])).toMatchObject([
      {
        level: 'warning',
        detail: 'mcp.bank of shop/1: listing its tools took longer than 5000 ms',
        hint: expect.stringContaining('scope tools'),
      },
    ])
    expect(missingToolsCheck([{ scope: 'shop/1', tools: [{ name: 'http.a', destinations: [], assumed: false }] }])).toEqual([])
  })

  test('names what is assumed of the tools of settings, each once', () => {
    const mail = { name: 'http.mail', destinations: ['whom', 'cc'], assumed: true }
    const pay = { name: 'mcp.bank.pay', destinations: ['iban'], assumed: true }
    const declared = { ...mail, name: 'http.told', assumed: false }
    const of_agent = { ...mail, name: 'block' }
    const asked = [
      { scope: 'shop/1', tools: [mail, declared, of_agent] },
      { scope: 'shop/2', tools: [mail, pay] },
    ]
    expect(scopeToolsCheck(asked)).toMatchObject([
      {
        level: 'ok',
        detail:
          'assumed by format and name in 2 scopes that changed last: http.mail (whom, cc) in shop/1 and 1 more, ' +
          'mcp.bank.pay (iban) in shop/2; `destinations` in the settings says otherwise',
      },
    ])
    expect(scopeToolsCheck([{ scope: 'shop/1', tools: [declared, of_agent] }])).toEqual([])
  })

  test('says when the model answered last, and what its calls did since', () => {
    const model = (model_calls: NonNullable<DoctorHealth['model_calls']>) =>
      checksOf({ ...healthy, model_calls }, { sent: now, received: now })[2]
    expect(model(calls)).toMatchObject({ name: 'model', level: 'ok', detail: 'offline, last answer at 2026-01-01T00:00:00.000Z' })
    const failing_since = '2026-01-01T01:00:00.000Z'
    expect(
      model({ ...calls, status: 'silent', failing_since, failures: 12, scopes_failing: 4, scopes_waiting: 3, error: 'HTTP 503' }),
    ).toMatchObject({
      detail:
        `offline: 12 calls failed since ${failing_since} in 4 scopes, 3 of them waiting; ` +
        'last answer at 2026-01-01T00:00:00.000Z; HTTP 503',
      hint: expect.stringContaining('reflex scope ask SCOPE'),
    })
  })

  test.each<[string, Partial<DoctorHealth>]>([
    ['database failed', { database: { ok: false, duration_ms: 1000, error: 'no response' } }],
    ['model failed', { model_error: 'the key is missing' }],
    ['model failed', { model_calls: { ...calls, status: 'silent', failures: 3, scopes_failing: 3, scopes_waiting: 3 } }],
    ['model warning', { model_calls: { ...calls, status: 'failing', failures: 1, scopes_failing: 1 } }],
    ['bindings failed', { deployment: { ...deployment, bindings: { present: [], missing: ['EVENTS'], unused: [] } } }],
    ['migrations failed', { deployment: { ...deployment, schema_error: 'the table events: no such column' } }],
    ['migrations warning', { deployment: { ...deployment, schema: 'unknown' } }],
    ['database size warning', { deployment: { ...deployment, database_bytes: 8.5e9 } }],
    ['ledger size warning', { ledger: { bytes: 8.1e9 } }],
    ['ledger retention failed', { ledger: { bytes: 1, retention_days: null } }],
    ['secret REFLEX_TOOL_A warning', { deployment: { ...deployment, secrets: [{ name: 'REFLEX_TOOL_A', problem: 'no host' }] } }],
    ['secrets warning', { deployment: { ...deployment, secrets: null } }],
    ['deployment warning', { deployment: null }],
    ['dead letters warning', { dead_letters: { total: 3 } }],
    ['parked work warning', { parked: { scopes: 1, work: 2 } }],
    ['retention failed', { retention: { days: null, backlog: 0 } }],
    ['events in D1 failed', { retention: { days: 30, backlog: 0, packs: { most_bytes: null, kept_days: null } } }],
    ['events in D1 warning', { retention: { days: 30, backlog: 0, packs: { most_bytes: 6e9, kept_days: 12.5 } } }],
    ['events in EVENTS_DB_1 warning', { retention: { days: 30, backlog: 0, databases: [{ ...shard, database_bytes: 8.5e9 }] } }],
    ['events in EVENTS_DB_1 failed', { retention: { days: 30, backlog: 0, databases: [{ ...shard, error: 'no such table: packs' }] } }],
  ])('reports %s', (expected, changes) => expect(levels(changes)).toEqual([expected]))

  test('reports a clock that is off by more than the request took', () => {
    expect(levels({}, { sent: now + 60_000, received: now + 60_010 })).toEqual(['clock failed'])
    expect(levels({}, { sent: now - 60_010, received: now - 60_000 })).toEqual(['clock failed'])
    expect(levels({}, { sent: now - 60_000, received: now + 60_000 })).toEqual([])
  })
})
