import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Span, TraceReport, TraceSummary } from '../../../src/contract/reports/trace.ts'
import { newSpanId, newTraceId } from '../../../src/core/event.ts'
import { call, keyFor, problem, scopePath } from '../../support/http.ts'
import { ask } from '../../support/mcp.ts'
import { mcpAnswer, outside } from '../../support/mock-fetch.ts'
import { write } from '../../support/reflex-chain.ts'
import { configure, EXPORTED, HOST, open, scopeWith, server } from '../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, evict, freshScope, inObject, logOf, note, runAlarm, sendAndSettle, stubOf, until } from '../../support/scopes.ts'
import { framesOf } from '../../support/socket-frames.ts'
import { behaviours, effectGates } from '../../support/test-agents.ts'
import { skill, twoSteps } from '../../support/two-step-skill.ts'
import worker from '../../support/worker.ts'

let world: ReturnType<typeof outside>

beforeEach(() => {
  world = outside(HOST, (request) => (request.url.endsWith('/mcp') ? mcpAnswer(request) : Response.json({ opened: true })))
})
afterEach(() => world.restore())

/** A caller's trace with a span of its own. */
function caller() {
  const [trace_id, span_id] = [newTraceId().replace(/^./, 'f'), newSpanId()]
  return { trace_id, span_id, traceparent: `00-${trace_id}-${span_id}-01` }
}
const asTree = async (trace_id: string, query = ''): Promise<TraceReport> =>
  (await call(`/v1/traces/${trace_id}${query}`)).body as TraceReport
/** The trace once it has ended, as far as it is replicated. */
const treeOf = (trace_id: string, query = '') =>
  until(async () => {
    const trace = await asTree(trace_id, query)
    return trace.root && trace.status !== 'running' ? trace : null
  }, 'the trace has ended')

const flat = (span: Span): Span[] => [span, ...span.children.flatMap(flat)]
const kinds = (span: Span): string[] => flat(span).map(({ kind }) => kind)
/** The names from the root to the first span of a kind. */
function pathTo(kind: string, span: Span): string[] | null {
  if (span.kind === kind) return [span.name]
  for (const child of span.children) {
    const path = pathTo(kind, child)
    if (path) return [span.name, ...path]
  }
  return null
}
const spanOfKind = (kind: string, { root }: TraceReport): Span => flat(root).find((span) => span.kind === kind) as Span
const opens = (scope: string) => behaviours.set(scope, async (_, deps) => deps.call(open.name, { title: 'it burns' }))

async function deliver(scope: string, event: object): Promise<void> {
  const batch = createMessageBatch('reflex-events', [
    { id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body: { scope, events: [event] } },
  ])
  await worker.queue(batch, env)
  await getQueueResult(batch, createExecutionContext())
}

async function sendBySocket(scope: string, message: object): Promise<void> {
  const headers = {
    upgrade: 'websocket',
    'x-reflex-connect': JSON.stringify({
      connection_id: 'alice',
      key_id: 'admin',
      source: 'ws:alice',
      may_send: true,
      decides_as: null,
      after: null,
    }),
  }
  const { webSocket: socket } = await stubOf(scope).fetch('https://scope/ws', { headers })
  if (!socket) throw new Error('no socket')
  const { frame } = framesOf<{ type: string }>(socket)
  socket.send(JSON.stringify(message))
  await frame('ack')
}

test('a trace that is listed, but whose log is deleted, is absent by the retention of its scope', async () => {
  const scope = freshScope()
  const stub = stubOf(scope)
  behaviours.set(scope, async () => ({ done: true }))
  const [record] = await sendAndSettle(stub, note(scope, 'old'))
  const { trace_id } = record!.event.meta
  await treeOf(trace_id)
  await inObject(stub, ({ storage }) => {
    storage.sql.exec('UPDATE log SET at = at - 864000000')
    storage.sql.exec('UPDATE events SET accepted_at = accepted_at - 864000000')
  })
  await runAlarm(stub)
  const answer = await call(`/v1/traces/${trace_id}`)
  expect(answer).toMatchObject({ status: 404, body: { detail: expect.stringContaining('retention_days') } })
})

describe('an event of a traced caller', () => {
  test.each([
    [
      'HTTP',
      async (scope: string, { traceparent }: ReturnType<typeof caller>) => {
        const sent = await call(scopePath(scope, '/events'), { json: { type: 'test.note', text: 'go' }, headers: { traceparent } })
        expect(sent.status).toBeLessThan(300)
      },
    ],
    [
      'the queue',
      (scope: string, { trace_id, span_id }: ReturnType<typeof caller>) =>
        deliver(scope, note(scope, 'go', { meta: { trace_id, parent_id: span_id } })),
    ],
    [
      'a socket',
      (scope: string, { traceparent }: ReturnType<typeof caller>) => sendBySocket(scope, { type: 'test.note', text: 'go', traceparent }),
    ],
  ])('by %s gives one tree, down to the request of its tool', async (by, sendOne) => {
    const scope = await scopeWith({ http_tools: [open] })
    opens(scope)
    const from = caller()
    await sendOne(scope, from)
    const trace = await treeOf(from.trace_id)
    expect(trace).toMatchObject({
      trace_id: from.trace_id,
      scopes: [scope],
      status: 'ok',
      root: { parent_id: from.span_id, kind: by === 'the queue' ? 'queue' : 'event' },
    })
    const hop = by === 'the queue' ? [`send ${scope}`] : []
    expect(pathTo('effect', trace.root)).toEqual([...hop, `process ${scope}`, 'invoke_agent test-agent', 'execute_tool http.tickets.open'])
    const { span_id } = spanOfKind('effect', trace)
    expect(world.requests.map(({ headers }) => headers.get('traceparent'))).toEqual([`00-${from.trace_id}-${span_id}-01`])
  })

  test('keeps the flags and the state of the trace, also in what it sends elsewhere', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    const other = await scopeWith({ http_tools: [open] })
    opens(other)
    behaviours.set(scope, async (_, deps) =>
      deps.store.publish(note(other, 'go', { meta: { trace_id: deps.context.events[0]!.meta.trace_id } })),
    )
    const { trace_id, span_id } = caller()
    const headers = { traceparent: `00-${trace_id}-${span_id}-00`, tracestate: 'vendor=1' }
    await call(scopePath(scope, '/events'), { json: { type: 'test.note', text: 'go' }, headers })
    await until(async () => world.requests.length > 0, 'the tool of the other scope was called')
    await evict(stubOf(other))
    const [request] = world.requests
    expect(request?.headers.get('traceparent')).toMatch(new RegExp(`^00-${trace_id}-[0-9a-f]{16}-00$`))
    expect(request?.headers.get('tracestate')).toBe('vendor=1')
    expect(await entriesOf(stubOf(other), 'event-accepted')).toMatchObject([{ trace_flags: '00', tracestate: 'vendor=1' }])
  })

  test('has in its tree what a turn and a reflex send because of it', async () => {
    const scope = freshScope()
    const { id } = await write(`return { action_type: 'emit_event', event: { type: 'test.note', text: 'noise' } }`)
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    const from = caller()
    await sendBySocket(scope, { type: 'test.note', text: 'go', traceparent: from.traceparent })
    const trace = await treeOf(from.trace_id)
    const [reflex] = trace.root.children
    expect(reflex).toMatchObject({ kind: 'reflex', attributes: { 'reflex.fired': true } })
    expect(pathTo('action', trace.root)?.slice(0, 2)).toEqual([`process ${scope}`, `reflex ${id}`])
    expect(reflex?.children[0]?.children[0]).toMatchObject({ kind: 'event', attributes: { 'reflex.event.type': 'test.note' } })
  })

  test('is in the tree of each event of the turn that considered both', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => deps.reply('fine'))
    const [one, two] = [caller(), caller()]
    const events = [one, two].map(({ trace_id, span_id }) => note(scope, 'go', { meta: { trace_id, parent_id: span_id } }))
    await sendAndSettle(stubOf(scope), ...events)
    for (const from of [one, two]) {
      const trace = await treeOf(from.trace_id)
      expect(pathTo('reply', trace.root)).toEqual([`process ${scope}`, 'invoke_agent test-agent', 'reply'])
    }
  })
})

describe('a call of a traced caller', () => {
  const step = (tree: TraceReport) => pathTo('effect', tree.root)

  test('to the MCP server, by its _meta, is a tree with the run, its steps and their effects', async () => {
    const scope = freshScope()
    const skill_id = await skill()
    const from = caller()
    const name = skill_id.replace('.', '_')
    const { body } = await ask(scope, 'tools/list')
    const tool = body.result.tools.find((one: { title: string; name: string }) => one.name.includes(name.slice(-8)))
    const given = { name: tool.name, arguments: { what: 'x', reflex_why: 'do it twice' }, _meta: { traceparent: from.traceparent } }
    expect((await ask(scope, 'tools/call', given)).body.result).toMatchObject({ isError: false })
    const trace = await treeOf(from.trace_id, `?scope=${encodeURIComponent(scope)}`)
    expect(trace).toMatchObject({ status: 'ok', root: { parent_id: from.span_id, kind: 'call', name: `propose ${skill_id}` } })
    expect(step(trace)).toEqual([`propose ${skill_id}`, `invoke_workflow ${skill_id}`, 'step 0', 'execute_tool act'])
    expect(kinds(trace.root).filter((kind) => kind === 'step' || kind === 'effect' || kind === 'gate')).toEqual([
      'gate',
      'step',
      'effect',
      'step',
      'effect',
    ])
  })

  test('that waits for an approval is one tree, and names the trace of the decision', async () => {
    const scope = freshScope()
    const skill_id = await skill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } })
    const [from, decider] = [caller(), caller()]
    const json = { skill_id, inputs: { what: 'x' }, why: 'twice' }
    const proposed = await call(scopePath(scope, '/skills/propose'), { json, headers: { traceparent: from.traceparent } })
    const asked = await asTree(from.trace_id, `?scope=${encodeURIComponent(scope)}`)
    // Nothing runs until a person decides.
    expect(asked.status).toBe('ok')
    expect(flat(asked.root).find(({ kind }) => kind === 'approval')).toMatchObject({ status: 'waiting', duration_ms: null })
    await evict(stubOf(scope))
    const approve = `/v1/approvals/${proposed.body.approval_id}/approve`
    expect(await call(approve, { json: {}, headers: { traceparent: decider.traceparent } })).toMatchObject({ status: 200 })
    await until(async () => (await entriesOf(stubOf(scope), 'skill-applied')).length > 0, 'the run has ended')
    const trace = await treeOf(from.trace_id, `?scope=${encodeURIComponent(scope)}`)
    const names = [`propose ${skill_id}`, `gate ${skill_id}`, `approval ${skill_id}`, `invoke_workflow ${skill_id}`]
    expect(step(trace)).toEqual([...names, 'step 0', 'execute_tool act'])
    expect(spanOfKind('approval', trace).attributes).toMatchObject({
      'reflex.approval.status': 'approved',
      'reflex.approval.traceparent': decider.traceparent,
    })
  })

  test('that a crash interrupts continues its own tree', async () => {
    const scope = freshScope()
    const skill_id = await skill({
      plan: { ...twoSteps('x').plan, idempotence_key: 'k:{{what}}' },
    })
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const from = caller()
    const json = { skill_id, inputs: { what: 'x' }, why: 'twice' }
    const proposing = call(scopePath(scope, '/skills/propose'), { json, headers: { traceparent: from.traceparent } }).catch(() => null)
    await until(async () => (await entriesOf(stubOf(scope), 'effect-started')).length > 0, 'the first step runs')
    const running = await asTree(from.trace_id, `?scope=${encodeURIComponent(scope)}`)
    expect({ status: running.status, path: step(running)?.slice(-2) }).toEqual({ status: 'running', path: ['step 0', 'execute_tool act'] })
    const stub = await crash(scope)
    await proposing
    gate.resolve()
    effectGates.delete(scope)
    await stub.poke()
    await until(async () => (await entriesOf(stub, 'skill-applied')).length > 0, 'the run has ended')
    const trace = await treeOf(from.trace_id, `?scope=${encodeURIComponent(scope)}`)
    expect(kinds(trace.root).filter((kind) => kind === 'run')).toHaveLength(1)
    expect(spanOfKind('run', trace).attributes).toMatchObject({ 'reflex.run.resumed': true, 'reflex.run.status': 'ok' })
    expect(step(trace)).toEqual([`propose ${skill_id}`, `invoke_workflow ${skill_id}`, 'step 0', 'execute_tool act'])
  })

  test('that cancels a turn, retries and discards a dead letter is named by their spans', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const [from, canceller, retrier, discarder] = [caller(), caller(), caller(), caller()]
    behaviours.set(scope, async () => new Promise(() => {}))
    const cancelled = note(scope, 'cancel me', { meta: { trace_id: from.trace_id, parent_id: from.span_id } })
    await stub.accept([cancelled], 'http')
    await until(async () => (await stub.state()).turn !== null, 'the turn runs')
    const asked = await call(scopePath(scope, '/cancel'), { json: {}, headers: { traceparent: canceller.traceparent } })
    expect(asked.body).toMatchObject({ cancelled: true })
    expect(spanOfKind('turn', await treeOf(from.trace_id)).attributes).toMatchObject({
      'reflex.turn.cancelled_traceparent': canceller.traceparent,
    })

    await stub.configure({ retry: { max_attempts: 1 } }, 'ops')
    behaviours.set(scope, async () => {
      throw new Error('broken')
    })
    const [dead] = await sendAndSettle(stub, note(scope, 'fail'))
    const letter = () =>
      until(async () => {
        const { body } = await call(`/v1/dlq?scope=${encodeURIComponent(scope)}`)
        return body.items[0]?.id as string | undefined
      }, 'it is a dead letter')
    const retried = await call(`/v1/dlq/${await letter()}/retry`, { method: 'POST', headers: { traceparent: retrier.traceparent } })
    expect(retried.status).toBe(200)
    await until(async () => (await stub.event(dead!.event.id))?.status === 'dead_lettered', 'it has failed again')
    const discarded = await call(`/v1/dlq/${await letter()}`, { method: 'DELETE', headers: { traceparent: discarder.traceparent } })
    expect(discarded.status).toBe(204)
    const { root } = await treeOf(dead!.event.meta.trace_id)
    expect(root.attributes).toMatchObject({
      'reflex.event.reopened_traceparent': retrier.traceparent,
      'reflex.event.discarded_traceparent': discarder.traceparent,
    })
  })

  test('that changes the settings is in the log under its trace', async () => {
    const [scope, from] = [freshScope(), caller()]
    await call(scopePath(scope), { method: 'PATCH', json: { instructions: 'be brief' }, headers: { traceparent: from.traceparent } })
    const { body } = await call(scopePath(scope, `/log?trace_id=${from.trace_id}`))
    expect(body.items).toMatchObject([{ kind: 'settings-changed', parent_id: from.span_id }])
  })
})

test('calls of an MCP server carry the span of their effect', async () => {
  const scope = await scopeWith({ mcp_servers: [server] })
  const from = caller()
  behaviours.set(scope, async (_, deps) => deps.call('mcp.sky.look', { at: 'mars' }))
  await sendAndSettle(stubOf(scope), note(scope, 'go', { meta: { trace_id: from.trace_id, parent_id: from.span_id } }))
  const { span_id } = spanOfKind('effect', await treeOf(from.trace_id))
  const calls = world.requests.filter(({ body }) => body.includes('tools/call'))
  expect(calls.map(({ headers }) => headers.get('traceparent'))).toEqual([`00-${from.trace_id}-${span_id}-01`])
})

describe('the export of spans', () => {
  type Sent = { traceId: string; spanId: string; parentSpanId?: string; name: string }
  const isExport = ({ url }: { url: string }) => url.endsWith('/otlp/v1/traces')
  const exports = () => world.requests.filter(isExport)
  const sent = (): Sent[] =>
    exports().flatMap(({ body }) =>
      (JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: Sent[] }[] }[] }).resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap(({ spans }) => spans),
      ),
    )
  const isExported = (scope: string, count: number) =>
    until(async () => {
      const { spans } = await stubOf(scope).state()
      return spans?.waiting === 0 && spans.exported === count
    }, 'the spans are exported')

  test('sends the tree of the API, with the headers of the deployment, which no one reads', async () => {
    const scope = await scopeWith({ http_tools: [open] }, EXPORTED)
    await isExported(scope, 1)
    opens(scope)
    const from = caller()
    const meta = { trace_id: from.trace_id, parent_id: from.span_id }
    await sendAndSettle(stubOf(scope), note(scope, 'the header is Bearer collector-secret', { meta }))
    const { root } = await treeOf(from.trace_id)
    await isExported(scope, 4)
    const shown = flat(root).map(({ span_id, parent_id, name }) => ({ span_id, parent_id, name }))
    const spans = sent().filter(({ traceId }) => traceId === from.trace_id)
    expect(spans.map(({ spanId, parentSpanId, name }) => ({ span_id: spanId, parent_id: parentSpanId, name }))).toEqual(shown)
    expect(exports().map(({ headers }) => headers.get('authorization'))).toEqual(['Bearer collector-secret', 'Bearer collector-secret'])
    const request = world.requests.find((one) => !isExport(one))
    expect(request?.headers.get('traceparent')).toContain(spans.at(-1)?.spanId)
    const { text } = await call(scopePath(scope, '/log'))
    expect(
      text +
        exports()
          .map(({ body }) => body)
          .join(''),
    ).not.toContain('collector-secret')
  })

  test('is counted in the metrics, as replicated with the next event', async () => {
    const scope = freshScope(EXPORTED)
    behaviours.set(scope, async () => null)
    await sendAndSettle(stubOf(scope), note(scope, 'one'))
    await isExported(scope, 2)
    await sendAndSettle(stubOf(scope), note(scope, 'two'))
    const { text } = await until(async () => {
      const scraped = await call('/metrics')
      return /^reflex_spans_exported_total [1-9]/m.test(scraped.text) && scraped
    }, 'D1 has the count')
    expect(text).toMatch(/^reflex_spans_dropped_total \d+$/m)
    // The next test counts what its own collector gets.
    await isExported(scope, 4)
  })

  test('continues after an eviction, and sends what a collector that was away has missed', async () => {
    const scope = freshScope(EXPORTED)
    behaviours.set(scope, async () => null)
    world.restore()
    world = outside(HOST, () => new Response(null, { status: 503 }))
    const [one] = await sendAndSettle(stubOf(scope), note(scope, 'one'))
    const spans = await until(async () => {
      const state = await stubOf(scope).state()
      return state.spans?.last_error === null ? null : state.spans
    }, 'the collector answered')
    expect(spans).toMatchObject({ exported: 0, dropped: 0, last_error: 'the collector answered 503: ' })
    world.restore()
    world = outside(HOST, () => Response.json({}))
    await evict(stubOf(scope))
    await stubOf(scope).poke()
    await isExported(scope, 2)
    const own = sent().filter(({ traceId }) => traceId === one?.event.meta.trace_id)
    expect(own.map(({ name }) => name)).toEqual([`process ${scope}`, 'invoke_agent test-agent'])
  })
})

describe('the list of traces', () => {
  const listOf = async (query: string, key?: string): Promise<TraceSummary[]> =>
    (await call(`/v1/traces?${query}`, key === undefined ? {} : { key })).body.items

  test('shows each trace once, newest first, and filters', async () => {
    const scope = await scopeWith({ http_tools: [open] })
    opens(scope)
    const from = caller()
    const meta = { trace_id: from.trace_id, parent_id: from.span_id }
    await sendAndSettle(stubOf(scope), note(scope, 'one', { meta }), note(scope, 'two', { meta }))
    behaviours.set(scope, async () => null)
    const [plain] = await sendAndSettle(stubOf(scope), note(scope, 'three'))
    const in_scope = `scope=${encodeURIComponent(scope)}`
    const all = await until(async () => {
      const found = await listOf(`${in_scope}&kind=event`)
      return found.length === 2 && found.every(({ status }) => status === 'ok') ? found : null
    }, 'both are listed')
    const [newest, first] = all
    expect(newest).toMatchObject({
      trace_id: plain?.event.meta.trace_id,
      events: 1,
      first_event: { id: plain?.event.id, type: 'test.note' },
    })
    expect(first).toMatchObject({
      trace_id: from.trace_id,
      events: 2,
      scopes: [scope],
      agents: ['test-agent'],
      kinds: ['event', 'turn', 'effect'],
    })
    const ids = async (query: string) => (await listOf(`${in_scope}&${query}`)).map(({ trace_id }) => trace_id)
    expect(await ids('kind=effect')).toEqual([from.trace_id])
    expect(await ids('status=running')).toEqual([])
    expect(await ids('agent=other')).toEqual([])
    expect(await ids('min_duration_ms=60000')).toEqual([])
    expect(await ids(`since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([])
    expect(await ids('limit=1')).toEqual([newest?.trace_id])
    const { body } = await call(`/v1/traces?${in_scope}&limit=1`)
    expect(await ids(`limit=1&cursor=${body.next_cursor}`)).toEqual([from.trace_id])
  })

  test('finds each trace that the log of a scope names, also those without an event', async () => {
    const scope = freshScope()
    const skill_id = await skill()
    await configure(scope, { max_steps: 3 })
    await sendAndSettle(stubOf(scope), note(scope, 'one'))
    const from = caller()
    const proposed = await call(scopePath(scope, '/skills/propose'), {
      json: { skill_id, inputs: { what: 'x' } },
      headers: { traceparent: from.traceparent },
    })
    expect(proposed.status).toBe(200)
    const in_scope = `scope=${encodeURIComponent(scope)}`
    const listed = async (query = '') => new Map((await listOf(`${in_scope}${query}`)).map((trace) => [trace.trace_id, trace]))
    await until(async () => (await listed()).has(from.trace_id), 'the proposal is listed')
    await evict(stubOf(scope))
    const named = new Set((await logOf(stubOf(scope))).map(({ trace_id }) => trace_id))
    await until(async () => {
      const found = await listed()
      return [...named].every((trace_id) => found.has(trace_id))
    }, 'all traces are listed')
    expect((await listed()).get(from.trace_id)).toMatchObject({
      status: 'ok',
      events: 0,
      first_event: null,
      skills: [skill_id],
      scopes: [scope],
    })
    expect([...(await listed(`&skill=${skill_id}`)).keys()]).toEqual([from.trace_id])
    expect([...(await listed('&kind=gate')).keys()]).toEqual([from.trace_id])
    expect((await listed('&kind=gate&status=error')).size).toBe(0)
    expect((await listed('&kind=gate&min_duration_ms=60000')).size).toBe(0)
    expect((await asTree(from.trace_id)).root).toMatchObject({ kind: 'call' })
    const paged: string[] = []
    for (let cursor = ''; ;) {
      const { body } = await call(`/v1/traces?${in_scope}&limit=1${cursor}`)
      paged.push(...body.items.map(({ trace_id }: TraceSummary) => trace_id))
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(paged.toSorted()).toEqual([...named].toSorted())
  })

  test('finds a trace by a skill that ran in it', async () => {
    const scope = freshScope()
    const skill_id = await skill()
    const { id } = await write(`return { action_type: 'run_skill', skill_id: '${skill_id}', inputs: { what: 'x' } }`)
    await configure(scope, { reflexes: [{ id }] })
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'twice'))
    const [found] = await until(async () => {
      const listed = await listOf(`skill=${skill_id}`)
      return listed.length > 0 && listed
    }, 'it is listed')
    expect(found).toMatchObject({ trace_id: record?.event.meta.trace_id, skills: [skill_id] })
    expect(await listOf('skill=twice')).toEqual([])
  })

  test('and a trace are hidden from keys that do not cover its scope', async () => {
    const scope = freshScope()
    const from = caller()
    await sendAndSettle(stubOf(scope), note(scope, 'go', { meta: { trace_id: from.trace_id, parent_id: from.span_id } }))
    await treeOf(from.trace_id)
    const [other, own] = [await keyFor(['viewer'], ['elsewhere/*']), await keyFor(['viewer'], [scope])]
    expect(await listOf('limit=100', other)).toEqual([])
    expect((await listOf('limit=100', own)).map(({ trace_id }) => trace_id)).toEqual([from.trace_id])
    expect(await call(`/v1/traces/${from.trace_id}`, { key: other })).toMatchObject(problem(404, 'not-found'))
    expect(await call(`/v1/traces/${from.trace_id}?scope=${encodeURIComponent(scope)}`, { key: other })).toMatchObject(problem(403))
    expect(await call(`/v1/traces/${from.trace_id}`, { key: own })).toMatchObject({ status: 200 })
    // Other systems name it as a UUID, which an event may have as well.
    const uuid = from.trace_id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-').toUpperCase()
    expect(await call(`/v1/traces/${uuid}`, { key: own })).toMatchObject({ status: 200, body: { trace_id: from.trace_id } })
  })
})
