import { dynamicTool, generateText, jsonSchema, type LanguageModel } from 'ai'
import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { Computing } from '../../../src/base/computing.ts'
import { hashJson } from '../../../src/base/json.ts'
import { limits } from '../../../src/base/limits.ts'
import { buildRegistry } from '../../../src/agent/registry.ts'
import { newSpanId, newTraceId } from '../../../src/core/event.ts'
import { hostOf } from '../../../src/features/replay/http/host.ts'
import { openRecordings } from '../../../src/features/replay/recording.ts'
import { replay } from '../../../src/features/replay/replay.ts'
import { call, problem } from '../../support/http.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { propose, skill, twoSteps } from '../../support/two-step-skill.ts'
import { ask, behaviours, effectGates, effects, testAgent } from '../../support/test-agents.ts'
import { crash, freshScope, inObject, logOf, note, stubOf, until } from '../../support/scopes.ts'

const replayed = async (scope: string, trace_id: string) =>
  (await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: { mode: 'pinned' } })).body
const exported = (scope: string, trace_id: string) => call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)

async function accept(scope: string, text: string) {
  const event = note(scope, text)
  await stubOf(scope).accept([event], 'http')
  await stubOf(scope).outcomes([event.id], 15_000)
  return event.meta.trace_id
}
async function withReflex(code: string, reference: object = {}, fields: object = {}) {
  const scope = freshScope()
  const { id } = await createVersion({ code, ...fields })
  await stubOf(scope).configure({ reflexes: [{ id, ...reference }] }, 'a test')
  return { scope, id }
}
async function replayFile({ sha256: _sha256, ...content }: Record<string, unknown>) {
  return call('/v1/replay', { json: { ...content, sha256: await hashJson(content) } })
}
const same = { equivalent: true, divergences: [], unknown: [] }

describe('a pinned replay', () => {
  test('passes and ignores events like the filters did', async () => {
    const scope = freshScope()
    expect(await replayed(scope, await accept(scope, 'fine'))).toMatchObject({ ...same, compared: 2 })
    expect(await replayed(scope, await accept(scope, 'noise'))).toMatchObject({ ...same, compared: 1 })
  })

  test('covers the scopes of its calls as well as those of its events', async () => {
    const [of_event, of_call] = [freshScope(), freshScope()]
    const trace_id = newTraceId().replace(/^./, 'f')
    const headers = { traceparent: `00-${trace_id}-${newSpanId()}-01` }
    const json = { skill_id: await skill(), inputs: { what: 'x' }, why: 'do it twice' }
    const path = (scope: string, rest: string) => `/v1/scopes/${encodeURIComponent(scope)}${rest}`
    await call(path(of_call, '/skills/propose'), { json, headers })
    await call(path(of_event, '/events?wait=outcome'), { json: { ...note(of_event, 'fine'), meta: undefined }, headers })
    const scopes = async () => (await call(`/v1/traces/${trace_id}/export`)).body.scopes?.length === 2
    expect(await until(scopes, 'both scopes are exported')).toBe(true)
    const report = await call(`/v1/traces/${trace_id}/replay`, { json: {} })
    expect(report.body).toMatchObject({ ...same, recorded: { effects: 2 }, replayed: { effects: 2 } })
  })

  test('covers all scopes that the trace went through, also from a file', async () => {
    const [one, other] = [freshScope(), freshScope()]
    const trace_id = newTraceId().replace(/^./, 'f')
    const sent = async (scope: string) => {
      const headers = { traceparent: `00-${trace_id}-${newSpanId()}-01` }
      const path = `/v1/scopes/${encodeURIComponent(scope)}/events?wait=outcome`
      expect(await call(path, { json: { ...note(scope, 'fine'), meta: undefined }, headers })).toMatchObject({ status: 200 })
    }
    const report = async (compared: number) => {
      const answer = await call(`/v1/traces/${trace_id}/replay`, { json: {} })
      return answer.status === 200 && answer.body.compared === compared && answer.body
    }
    expect(await call(`/v1/traces/${trace_id}/export`)).toMatchObject(problem(404))
    await sent(one)
    expect(await until(() => report(2), 'the first scope is found')).toMatchObject(same)
    await sent(other)
    const both = await until(() => report(4), 'both scopes are found')
    expect(both).toMatchObject({ ...same, trace_id })
    expect(await replayed(other, trace_id)).toMatchObject({ ...same, compared: 2 })
    const { body } = await call(`/v1/traces/${trace_id}/export`)
    expect(body).toMatchObject({ trace_id, scopes: [one, other].toSorted() })
    expect((await call('/v1/replay', { json: body })).body).toEqual(both)
    const { status, body: refused } = await call(`/v1/traces/${trace_id}/replay`, {
      json: { mode: 'what_if', changes: { model: 'offline' }, budget: { calls: 1 } },
    })
    expect({ status, detail: refused.detail }).toEqual({ status: 400, detail: expect.stringContaining('name one of them as `scope`') })
  })

  test('gives a chat the tools that its scope offered beside its own', async () => {
    const scope = `chat/${freshScope().replaceAll('/', '-')}`
    const trace_id = '0af7651916cd43dd8448eb211c80319c'
    const event = { type: 'ws.message', connection_id: 'one', content: 'hello' }
    const sent = await call(`/v1/scopes/${encodeURIComponent(scope)}/events?wait=outcome`, {
      json: event,
      headers: { traceparent: `00-${trace_id}-b7ad6b7169203331-01` },
    })
    expect(sent).toMatchObject({ status: 200, body: { events: [{ status: 'completed' }] } })
    expect(await replayed(scope, trace_id)).toMatchObject(same)
  })

  test('fires a reflex like the scope did', async () => {
    const { scope } = await withReflex(replying('hello'))
    expect(await replayed(scope, await accept(scope, 'hi'))).toMatchObject({ ...same, compared: 3 })
  })

  describe('of a call that was answered by its idempotence key', () => {
    type Entry = { kind: string; status?: string; input?: unknown }
    const reused = ({ kind, status }: Entry) => kind === 'effect-ended' && status === 'reused'
    const changed = (body: { entries: Entry[] }, change: (entry: Entry) => Entry) => ({
      ...body,
      entries: body.entries.map((entry) => (reused(entry) ? change(entry) : entry)),
    })
    /** As recorded, as an old log has it, and with another input than the one that was recorded. */
    const reports = async (scope: string, trace_id: string) => {
      const file = async () => (await exported(scope, trace_id)).body
      const body = await until(async () => [await file()].find(({ entries }) => entries.some(reused)), 'the call has ended')
      const old = await replayFile(changed(body, ({ input: _input, ...entry }) => entry))
      const other = await replayFile(changed(body, (entry) => ({ ...entry, input: { text: 'other' } })))
      return [await replayed(scope, trace_id), old.body, other.body]
    }
    const expected = [same, same, { equivalent: false, divergences: [{ kind: 'effect' }] }]

    test('compares the call of a reflex, also where an old log lacks its input', async () => {
      const code = 'function reflex(context) { return { action_type: "call_tool", tool: "act_once", args: { text: "once" } } }'
      const { scope } = await withReflex(code)
      await accept(scope, 'first')
      expect(await reports(scope, await accept(scope, 'second'))).toMatchObject(expected)
    })

    test('compares the call of a turn, also where an old log lacks its input', async () => {
      const scope = freshScope()
      behaviours.set(scope, async (_context, deps) => ({ said: await deps.call('act_once', { text: 'once' }) }))
      await accept(scope, 'first')
      expect(await reports(scope, await accept(scope, 'second'))).toMatchObject(expected)
    })
  })

  test('compares the notes of a turn that decided to do nothing', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (context) => ((context.scratch['seen'] = 1), null))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    const noted = body.entries.map((entry: { kind: string; status: string }) =>
      entry.kind === 'turn-ended' && entry.status === 'none' ? { ...entry, scratch: { seen: 2 } } : entry,
    )
    const { body: report } = await replayFile({ ...body, entries: noted })
    expect(report).toMatchObject({ equivalent: false, changed: 1, divergences: [{ kind: 'turn', path: '/scratch/seen' }] })
  })

  test('takes reflexes as unknown once the key has used up what it may compute', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { text } = await exported(scope, await accept(scope, 'hi'))
    const opened = await openRecordings(text)
    const [recording] = opened.ok ? opened.recordings : []
    let left = 1
    const spend = (units: number) => void (left -= units)
    const clock = { now: () => 0, wait: async () => {} }
    const computing = new Computing({ clock, left: () => left, spend, others: () => 0, leave: () => {} })
    const host = hostOf(env, { agents: buildRegistry([testAgent]), computing, is_foreign: false })
    expect(await replay(recording!, host)).toMatchObject(same)
    expect(await replay(recording!, host)).toMatchObject({
      divergences: [],
      unknown: expect.arrayContaining([
        expect.objectContaining({ kind: 'reflex', reason: expect.stringContaining('used up what it may compute') }),
        expect.objectContaining({ kind: 'action', reason: expect.stringContaining('could not be made again') }),
      ]),
    })
  })

  test('holds a reflex back by its cooldown, and passes where its action was refused', async () => {
    const { scope } = await withReflex(replying('hello'), { cooldown_s: 600 })
    await accept(scope, 'first')
    expect(await replayed(scope, await accept(scope, 'second'))).toMatchObject({ ...same, compared: 3 })
    const refused = await withReflex(`function reflex(context) { return { action_type: 'call_tool', tool: 'nothing', args: {} } }`)
    expect(await replayed(refused.scope, await accept(refused.scope, 'x'))).toMatchObject({ ...same, compared: 3 })
  })

  test('reports a decision that differs, by its span and path', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    const fired = body.entries.find(({ kind }: { kind: string }) => kind === 'reflex-fired')
    fired.action.content = 'goodbye'
    expect((await replayFile(body)).body).toMatchObject({
      equivalent: false,
      divergences: [{ span_id: fired.span_id, kind: 'reflex', path: '/action/content', recorded: 'goodbye', replayed: 'hello' }],
    })
  })
})

describe('a pinned replay of a turn', () => {
  const turn = async (behaviour: Parameters<(typeof behaviours)['set']>[1], text = 'hi') => {
    const scope = freshScope()
    behaviours.set(scope, behaviour)
    return { scope, trace_id: await accept(scope, text) }
  }

  test('runs the trigger with the recorded context, clock, tools and answers of the model', async () => {
    const { scope, trace_id } = await turn(async (context, deps) => {
      context.scratch['at'] = deps.now()
      const did = await deps.call('act', { text: 'once' })
      const failed = await deps.call('act', { text: 'throw' }).catch(String)
      const said = await ask(deps, `${context.events.length} notes`)
      deps.reply(said)
      return { said, did, failed, attempt: deps.attempt, age: deps.now() - context.created_at }
    })
    const report = await replayed(scope, trace_id)
    expect(report).toMatchObject({ ...same, recorded: { effects: 2, usage: { model_calls: 1 } } })
    expect(report.replayed).toEqual(report.recorded)
    expect(effects.filter((effect) => effect.scope === scope)).toHaveLength(2)
  })

  test('repeats a conversation in which the model calls a tool', async () => {
    const { scope, trace_id } = await turn(async (_context, deps) => {
      const { text } = await generateText({ model: deps.model, prompt: 'call a tool', tools: deps.tools, maxRetries: 0 })
      return { text }
    })
    expect(await replayed(scope, trace_id)).toMatchObject({ ...same, recorded: { effects: 1 } })
  })

  test('repeats the errors of calls as the turn saw them, with their names', async () => {
    const errors = ['TypeError: the tool failed', 'Error: Timeout: the tool failed', 'Error: the tool failed']
    const { scope, trace_id } = await turn(async (_context, deps) => {
      const seen: string[] = []
      for (const text of ['throw by name', 'throw like a name', 'throw']) seen.push(await deps.call('act', { text }).then(() => '', String))
      return { seen }
    })
    expect((await logOf(stubOf(scope))).find(({ kind }) => kind === 'turn-ended')).toMatchObject({ result: { seen: errors } })
    expect(await replayed(scope, trace_id)).toMatchObject(same)
  })

  test('repeats a failure, and a turn with nothing to do', async () => {
    const failing = await turn(async () => {
      throw new Error('it broke')
    })
    expect(await replayed(failing.scope, failing.trace_id)).toMatchObject(same)
    const idle = await turn(async () => null)
    expect(await replayed(idle.scope, idle.trace_id)).toMatchObject({ ...same, compared: 2 })
  })

  test('perceives each of several events as it was, on which one turn failed', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ retry: { max_attempts: 1 } }, 'a test')
    behaviours.set(scope, async () => {
      throw new Error('it broke')
    })
    const events = [note(scope, 'one'), note(scope, 'two')]
    await stubOf(scope).accept(events, 'http')
    await stubOf(scope).outcomes(
      events.map(({ id }) => id),
      15_000,
    )
    expect((await logOf(stubOf(scope))).flatMap((entry) => (entry.kind === 'turn-started' ? entry.event_ids.length : []))).toEqual([2])
    for (const { meta } of events) expect(await replayed(scope, meta.trace_id)).toMatchObject(same)
  })

  test('shows the first message of another prompt', async () => {
    const { scope, trace_id } = await turn(async (_context, deps) => ask(deps, 'as before'))
    behaviours.set(scope, async (_context, deps) => ask(deps, 'otherwise'))
    const { equivalent, divergences } = await replayed(scope, trace_id)
    expect(equivalent).toBe(false)
    expect(divergences).toMatchObject([
      { kind: 'model', path: '/prompt/0', recorded: { content: [{ text: 'as before' }] }, replayed: { content: [{ text: 'otherwise' }] } },
    ])
  })

  test('shows that the model was offered a tool with another schema, and asked with other options', async () => {
    const asking = (field: string, temperature: number) => async (_context: unknown, deps: { model: LanguageModel }) => {
      const inputSchema = jsonSchema({ type: 'object', properties: { [field]: { type: 'string' } }, required: [field] })
      const look = dynamicTool({ description: 'Looks', inputSchema, execute: async () => null })
      return (await generateText({ model: deps.model, prompt: 'hello', tools: { look }, temperature, maxRetries: 0 })).text
    }
    const { scope, trace_id } = await turn(asking('place', 0))
    expect(await replayed(scope, trace_id)).toMatchObject(same)
    behaviours.set(scope, asking('where', 1))
    const { equivalent, divergences } = await replayed(scope, trace_id)
    expect(equivalent).toBe(false)
    const paths = divergences.map(({ kind, path }: { kind: string; path: string }) => `${kind} ${path}`)
    expect(paths).toEqual([
      'model /temperature',
      'model /tools/0/inputSchema/properties/place',
      'model /tools/0/inputSchema/properties/where',
      'model /tools/0/inputSchema/required/0',
    ])
  })

  test('shows a tool call with another input, and another result', async () => {
    const { scope, trace_id } = await turn(async (_context, deps) => deps.call('act', { text: 'one' }))
    behaviours.set(scope, async (_context, deps) => {
      await deps.call('act', { text: 'two' })
      return { did: 'more' }
    })
    const { divergences } = await replayed(scope, trace_id)
    expect(divergences).toMatchObject([
      { kind: 'effect', path: '/text', recorded: 'one', replayed: 'two' },
      { kind: 'turn', path: '/result/did', recorded: 'one', replayed: 'more' },
    ])
  })

  test('does not guess what the trigger read outside', async () => {
    const { scope, trace_id } = await turn(async (_context, deps) => ({ rows: (await deps.db.prepare('SELECT 1 AS one').all()).results }))
    expect(await replayed(scope, trace_id)).toMatchObject({ unknown: [{ kind: 'turn', reason: expect.stringContaining('db.prepare') }] })
  })

  test('compares what is redacted as it is redacted, and shows no secret', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (context, deps) => ask(deps, `Extract one value: ${JSON.stringify(context.events)} said all`))
    const event = note(scope, 'log in', { password: 'hunter2-hunter2' })
    await stubOf(scope).accept([event], 'http')
    await stubOf(scope).outcomes([event.id], 15_000)
    expect(await replayed(scope, event.meta.trace_id)).toMatchObject({ divergences: [] })
    const { text } = await exported(scope, event.meta.trace_id)
    expect(text).not.toContain('hunter2')
  })
})

describe('a pinned replay of the gate', () => {
  const proposed = async (changes: Record<string, unknown>, proposal: Record<string, unknown> = {}) => {
    const scope = freshScope()
    const skill_id = await skill(changes)
    const { status } = await propose(scope, skill_id, proposal)
    const decided = (await logOf(stubOf(scope))).find(({ kind }) => kind === 'skill-decided')
    return { status, report: await replayed(scope, decided?.trace_id ?? '') }
  }

  test.each([
    ['allows', 'ok', 7, {}, {}],
    ['refuses another place', 'refused', 1, { compat: { env: ['prod'] } }, {}],
    ['asks for a missing input', 'clarify', 1, {}, { inputs: {} }],
    ['refuses a score below tau', 'refused', 1, {}, { why: 'no reason' }],
    ['denies', 'refused', 1, { policy: { allow_roles: ['publisher'], deny_if: ['true'] } }, {}],
    ['asks a person', 'needs_approval', 2, { policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } }, {}],
  ])('%s like the scope did', async (_how, expected, compared, changes, proposal) => {
    const { status, report } = await proposed(changes, proposal)
    expect(status).toBe(expected)
    expect(report).toMatchObject({ ...same, compared })
  })
})

describe('a pinned replay of skills', () => {
  const turn = async (changes: Record<string, unknown>, prompt: (skill_id: string) => string) => {
    const scope = freshScope()
    const skill_id = await skill(changes)
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, prompt(skill_id)) }))
    const trace_id = await accept(scope, 'hi')
    return { scope, trace_id, kinds: (await logOf(stubOf(scope))).map(({ kind }) => kind) }
  }

  test('builds the bulletin, decides on the proposal of the model and runs its plan', async () => {
    const { scope, trace_id, kinds } = await turn({}, (id) => `propose ${id} to do it twice`)
    expect(kinds).toContain('skill-applied')
    const report = await replayed(scope, trace_id)
    expect(report).toMatchObject({ ...same, recorded: { effects: 2, usage: { model_calls: 2 } } })
    expect(report.replayed).toEqual(report.recorded)
    expect(effects.filter((effect) => effect.scope === scope)).toHaveLength(2)
  })

  test('takes what a probe read for the blackboard from the seed', async () => {
    const scope = freshScope()
    const skill_id = await skill()
    await stubOf(scope).configure({ blackboard_probes: [{ name: 'seen', tool: 'act', input: { text: 'look' } }] }, 'a test')
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, `propose ${skill_id} to do it twice`) }))
    expect(await replayed(scope, await accept(scope, 'hi'))).toMatchObject(same)
  })

  test('does not guess how a run went on after the process had died', async () => {
    const scope = freshScope()
    const skill_id = await skill({ plan: { ...twoSteps('a.b').plan, idempotence_key: 'k:{{what}}' } })
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const asked = propose(scope, skill_id).catch(() => null)
    await until(async () => (await logOf(stubOf(scope))).some(({ kind }) => kind === 'effect-started'), 'the first step runs')
    await crash(scope)
    gate.resolve()
    await asked
    await stubOf(scope).poke()
    const ended = await until(async () => (await logOf(stubOf(scope))).find(({ kind }) => kind === 'skill-applied'), 'the run has ended')
    const report = await replayed(scope, ended.trace_id)
    expect(report).toMatchObject({ equivalent: null, divergences: [] })
    expect(report.unknown.map(({ reason }: { reason: string }) => reason)).toContain('the run was resumed after the process had died')
  })
})

describe('a replay', () => {
  const TABLES = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY name`
  /** All rows of the scope's object and of D1. */
  async function everything(scope: string) {
    const own = await inObject(stubOf(scope), ({ storage: { sql } }) => {
      const names = sql.exec<{ name: string }>(TABLES).toArray()
      return names.map(({ name }) => [name, JSON.stringify(sql.exec(`SELECT * FROM "${name}"`).toArray())])
    })
    const shared = (await env.DB.prepare(TABLES).all<{ name: string }>()).results.map(async ({ name }) => {
      const { results } = await env.DB.prepare(`SELECT * FROM "${name}"`).all()
      return [name, JSON.stringify(results)]
    })
    return { own, shared: await Promise.all(shared) }
  }

  test('calls no tool and no host, and writes no row', async () => {
    const scope = freshScope()
    const skill_id = await skill()
    const { id } = await createVersion({
      code: `function reflex() { return { action_type: 'call_tool', tool: 'act', args: { text: 'r' } } }`,
    })
    behaviours.set(scope, async (_context, deps) => {
      await deps.call('act', { text: 'one' })
      return { said: await ask(deps, `propose ${skill_id} to do it twice`) }
    })
    const turned = (await exported(scope, await accept(scope, 'hi'))).text
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    const acted = (await exported(scope, await accept(scope, 'hi'))).text
    // The reports of other tests would be rows, too.
    const isIdle = async () => {
      const listed = await env.DB.prepare('SELECT scope FROM scopes').all<{ scope: string }>()
      const names = new Set([scope, ...listed.results.map((row) => row.scope)])
      const states = await Promise.all(Array.from(names, (name) => stubOf(name).state()))
      return states.every(({ outbox }) => outbox.waiting === 0)
    }
    await until(isIdle, 'the outboxes are empty')
    const before = await everything(scope)
    const [did, fetched] = [effects.length, vi.spyOn(globalThis, 'fetch')]
    for (const body of [turned, acted]) expect((await call('/v1/replay', { body })).body).toMatchObject({ ...same, complete: true })
    expect(await everything(scope)).toEqual(before)
    expect(effects).toHaveLength(did)
    expect(fetched).not.toHaveBeenCalled()
    fetched.mockRestore()
  })

  test('reads a large trace in parts, between which the scope serves others', async () => {
    const scope = freshScope()
    const trace_id = newTraceId()
    const events = Array.from({ length: 12 }, (_, index) => note(scope, `${index}`.repeat(45_000)))
    const traced = events.map((event) => ({ ...event, meta: { ...event.meta, trace_id } }))
    await stubOf(scope).accept(traced, 'http')
    await stubOf(scope).outcomes(
      events.map(({ id }) => id),
      15_000,
    )
    const sizes: number[] = []
    for await (const part of (await stubOf(scope).recording({ trace_id, contexts: true })) ?? []) sizes.push(part.byteLength)
    expect(sizes.length).toBeGreaterThan(4)
    expect(Math.max(...sizes)).toBeLessThan(3 * limits.stream_page_bytes)
    expect((await exported(scope, trace_id)).body.events).toHaveLength(12)
    expect(await replayed(scope, trace_id)).toMatchObject(same)
  })

  test('needs neither the reflex nor the skill any more: their code is in the log', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const skill_id = await skill()
    const fired = await accept(scope, 'hi')
    const { trace_id: ran } = await propose(scope, skill_id)
    const { meta } = await env.DB.prepare('DELETE FROM artifact_versions WHERE id IN (?, ?)').bind(id, skill_id).run()
    expect(meta.changes).toBeGreaterThanOrEqual(2)
    for (const trace_id of [fired, ran]) expect(await replayed(scope, trace_id)).toMatchObject(same)
  })

  test('of a trace that is still running says so, and replays what it can', async () => {
    const scope = freshScope()
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    behaviours.set(scope, async (_context, deps) => deps.call('act', { text: 'slow' }))
    const event = note(scope, 'hi')
    await stubOf(scope).accept([event], 'http')
    await until(async () => (await logOf(stubOf(scope))).some(({ kind }) => kind === 'effect-started'), 'the turn runs')
    const report = await replayed(scope, event.meta.trace_id)
    gate.resolve()
    expect(report).toMatchObject({
      complete: false,
      compared: 1,
      divergences: [],
      unknown: [{ kind: 'turn', reason: 'the turn had not ended when it was exported' }],
    })
  })

  test('reports an effect that a request from outside caused as unknown', async () => {
    const scope = freshScope()
    await stubOf(scope).callTool({ tool: 'act', input: { text: 'by hand' }, key: 'k' }, 'olga')
    const [received] = await logOf(stubOf(scope))
    const report = await replayed(scope, received?.trace_id ?? '')
    expect(report).toMatchObject({ compared: 0, unknown: [{ kind: 'effect', reason: 'a request from outside called it' }] })
  })
})

describe('an exported trace', () => {
  test('is a self-contained file that replays by itself', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const { status, text, body } = await exported(scope, await accept(scope, 'hi'))
    expect(status).toBe(200)
    expect(Object.values(body.programs)).toMatchObject([{ id, code: replying('hello') }])
    const answer = await call('/v1/replay', { body: text })
    expect(answer.body).toMatchObject({ ...same, compared: 3 })
  })

  test.each([
    ['a changed byte', (text: string) => text.replace('"hello"', '"hullo"'), 'was changed'],
    ['an unknown schema', (text: string) => text.replace('"schema":2', '"schema":99'), 'schema version 99'],
    ['a missing field', (text: string) => text.replace('"entries":', '"entrees":'), 'not complete'],
  ])('with %s is rejected', async (_flaw, change, detail) => {
    const { scope } = await withReflex(replying('hello'))
    const { text } = await exported(scope, await accept(scope, 'hi'))
    const answer = await call('/v1/replay', { body: change(text) })
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining(detail) } })
  })

  test('with a fitting sum and an entry of another shape is rejected', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    for (const part of Object.values(body.parts) as { settings?: object }[]) if (part.settings) part.settings = {}
    const answer = await replayFile(body)
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining('does not have the shape') } })
  })

  test('whose code does not match its hash is rejected: live scopes share compiled programs by hash', async () => {
    const { scope } = await withReflex(replying('hello'))
    const { body } = await exported(scope, await accept(scope, 'hi'))
    for (const program of Object.values(body.programs)) (program as { code: string }).code = replying('evil')
    expect(await replayFile(body)).toMatchObject({ status: 400, body: { detail: expect.stringContaining('does not match its hash') } })
  })

  test('that is cut off is rejected', async () => {
    const scope = freshScope()
    const { text } = await exported(scope, await accept(scope, 'hi'))
    expect(await call('/v1/replay', { body: text.slice(0, -100) })).toMatchObject({ status: 400 })
  })

  test('is not found where the scope has no such trace', async () => {
    expect(await exported(freshScope(), 'a'.repeat(32))).toMatchObject({ status: 404 })
  })
})
