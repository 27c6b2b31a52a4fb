import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Contexts } from '../../../src/features/learning/episodes/contexts.ts'
import { readEpisodes, scopeSource, type EpisodeSource } from '../../../src/features/learning/episodes/read.ts'
import type { Episode, Saw } from '../../../src/features/learning/episode.ts'
import type { ReflexContext } from '../../../src/reflexes/reflex-context.ts'
import { rangeRecording } from '../../../src/traces/recording-lines.ts'
import { ARCHIVED } from '../../support/archive-bucket.ts'
import { call, fetchRaw, scopePath } from '../../support/http.ts'
import { createVersion } from '../../support/reflexes.ts'
import { age, entriesOf, evict, freshScope, hurry, logOf, note, send, sendAndSettle, stubOf, textOf, until } from '../../support/scopes.ts'
import { framesOf } from '../../support/socket-frames.ts'
import { ask, behaviours } from '../../support/test-agents.ts'
import { skill } from '../../support/two-step-skill.ts'
import { assertProperty } from '../../support/property.ts'

type Stub = ReturnType<typeof stubOf>

const REFLEX = `function reflex({ event, tick }) {
  if (event.text === 'consumed') return { action_type: 'reply', content: 'yes', consume: true }
  if (event.text === 'replied') return { action_type: 'reply', content: 'yes' }
  if (event.text === 'noted') return { action_type: 'set_scratch', key: 'tick', value: tick }
  return null
}`

/** Has no recent actions, as a reflex that is to be learned. */
const NEWCOMER = 'function reflex() { return null }'

async function prepared(): Promise<{ scope: string; stub: Stub }> {
  const scope = freshScope()
  const stub = stubOf(scope)
  const [{ id: newcomer }, { id }] = [await createVersion({ code: NEWCOMER }), await createVersion({ code: REFLEX })]
  await stub.configure({ context_limit: 20, retry: { max_attempts: 2 }, reflexes: [{ id: newcomer }, { id }] }, 'a test')
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events.at(-1)!)
    context.scratch['last'] = text
    if (text === 'throws') throw new Error('no')
    if (text === 'waits') await deps.call('act', { text: 'x' })
    return text === 'acts' || text === 'waits' ? { done: true } : null
  })
  return { scope, stub }
}

test('an agent that remembers its turns teaches what it says, without the note by which it remembers', async () => {
  const scope = freshScope()
  const settings = { agent: 'prompted', instructions: 'Answer.', memory: { turns: 5, tokens: 1000 } }
  await stubOf(scope).configure(settings, 'ops')
  await sendAndSettle(stubOf(scope), note(scope, 'first'))
  await sendAndSettle(stubOf(scope), note(scope, 'second'))
  expect((await stubOf(scope).context(10)).scratch).toMatchObject({ memory: [{}, {}] })
  expect((await entriesOf(stubOf(scope), 'turn-ended')).map(({ acts }) => acts.map(({ act }) => act))).toEqual([['reply'], ['reply']])
})

const steps: Record<string, (scope: string, stub: Stub) => Promise<unknown>> = {
  kept: (scope, stub) => send(stub, note(scope, 'kept'), note(scope, 'kept', { source: 'another' })),
  acts: (scope, stub) => send(stub, note(scope, 'acts')),
  waits: (scope, stub) => send(stub, note(scope, 'waits')).then(() => send(stub, note(scope, 'during the turn'))),
  filtered: (scope, stub) => send(stub, note(scope, 'noise'), note(scope, 'kept')),
  'a failing turn': (scope, stub) => send(stub, note(scope, 'throws')),
  'a dead letter': async (scope, stub) => {
    const [id = ''] = await send(stub, note(scope, 'throws'))
    await until(async () => {
      await hurry(stub)
      return (await stub.event(id))?.status === 'dead_lettered'
    }, 'the turn failed for the last time')
  },
  'by reflexes': (scope, stub) =>
    send(stub, note(scope, 'consumed'), note(scope, 'noted'), note(scope, 'replied'), note(scope, 'noted'), note(scope, 'kept')),
  'very many': (scope, stub) => send(stub, ...Array.from({ length: 130 }, () => note(scope, 'kept'))),
  large: (scope, stub) => send(stub, ...Array.from({ length: 9 }, () => note(scope, 'x'.repeat(9000)))),
  evicted: (_scope, stub) => evict(stub),
}

async function settle(stub: Stub): Promise<void> {
  await until(async () => {
    const { inbox } = await stub.state()
    if (inbox.pending + inbox.processing === 0) return true
    await hurry(stub)
    return false
  }, 'everything has its outcome')
}

const shown = ({ event, recent_events, window, scratch, recent_actions }: Saw): Saw => ({
  event,
  recent_events,
  window,
  scratch,
  recent_actions,
})

/** Rebuilt contexts beside those that reflexes were shown, where they differ. */
async function differences(stub: Stub): Promise<unknown[]> {
  const { entries, events } = await rangeRecording(stub, { since: 0, after: null, limit: 5000 })
  const contexts = new Contexts({ seq: entries[0]?.seq ?? 0, at: 0 })
  contexts.receive(events)
  const found: unknown[] = []
  let compared = 0
  for (const entry of entries) {
    contexts.feed(entry, { claimed: false, agent: 'test-agent' })
    const logged = entry.kind === 'reflex-fired' || entry.kind === 'reflex-passed' ? (entry.context as ReflexContext | null) : null
    if (!logged || logged.recent_actions.length > 0) continue
    compared += 1
    const rebuilt = contexts.of(entry.event_ids[0] ?? '')?.saw
    const pair = { logged: shown(logged), rebuilt: rebuilt && shown(rebuilt) }
    if (JSON.stringify(sorted(pair.logged)) !== JSON.stringify(sorted(pair.rebuilt))) found.push(pair)
  }
  return compared === 0 ? ['nothing was compared'] : found
}

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(fields.map(([name, inner]) => [name, sorted(inner)]))
}

test('the context of an event is rebuilt from the log as a reflex was shown it', async () => {
  const runs = fc.array(fc.constantFrom(...Object.keys(steps)), { minLength: 3, maxLength: 7 }).map((names) => [...names, 'kept'])
  await assertProperty(
    'learning/episodes',
    fc.asyncProperty(runs, async (names) => {
      const { scope, stub } = await prepared()
      for (const name of names) {
        await steps[name]!(scope, stub)
        await settle(stub)
      }
      expect(await differences(stub)).toEqual([])
    }),
    { numRuns: 6, examples: [[Object.keys(steps)], [['very many', 'acts', 'very many', 'kept', 'a failing turn', 'by reflexes']]] },
  )
})

const all = async (source: EpisodeSource) => readEpisodes(source, { most: 10_000 })

/** Reads with a new process for each slice. */
async function inSlices(source: EpisodeSource, most: number): Promise<Episode[]> {
  const episodes: Episode[] = []
  let after_seq = 0
  for (let more = true; more;) {
    const slice = await readEpisodes(source, { after_seq, most })
    episodes.push(...slice.episodes)
    ;[after_seq, more] = [slice.watermark, slice.more]
  }
  return episodes
}

async function busyScope(kind?: string): Promise<{ scope: string; stub: Stub }> {
  const scope = freshScope(kind)
  const stub = stubOf(scope)
  await stub.configure({ project: 'shop', goal_labels: ['twice'], retry: { max_attempts: 1 } }, 'a test')
  behaviours.set(scope, async ({ events }, deps) => {
    const text = textOf(events.at(-1)!)
    if (text.startsWith('act on ')) await deps.call('act', { text: text.slice(7) })
    if (text.startsWith('answer ')) deps.reply(`I say ${text.slice(7)}`)
    if (text.startsWith('propose ')) await ask(deps, text)
    if (text === 'fails') await deps.call('act', { text: 'throw' })
    if (text === 'notes') deps.context.scratch['n'] = 1
    return null
  })
  return { scope, stub }
}

test('the sender of a decision is the key that sent its event, whatever the event says', async () => {
  const { scope, stub } = await busyScope()
  const { id: key_id, key } = (await call('/v1/keys', { json: { name: 'feed', roles: ['publisher'], scopes: [scope] } })).body
  const forged = (source: string) => ({ ...note(scope, 'nothing', { source }), meta: { sender: `key:${source}` } })
  for (const source of ['host:1', 'host:2']) await call(`${scopePath(scope)}/events?wait=outcome`, { key, json: forged(source) })
  const queued = forged('host:3')
  await call('/v1/events', { key, json: queued })
  await until(async () => (await stub.outcomes([queued.id], 100)).settled, 'the queued event has its outcome')
  const { webSocket } = await fetchRaw(scopePath(scope, '/ws'), { key, headers: { Upgrade: 'websocket' } })
  const { frame } = framesOf(webSocket!)
  webSocket?.send(JSON.stringify(forged('host:4')))
  await frame('ack')
  webSocket?.close()
  await sendAndSettle(stub, note(scope, 'nothing', { source: 'timer:daily' }))
  const senders = async () => (await all(scopeSource(stub))).episodes.map(({ source }) => source).sort()
  const sender = `key:${key_id}`
  await until(async () => (await senders()).length === 5, 'all are decided')
  expect(await senders()).toEqual([sender, sender, sender, sender, 'timer:daily'])
})

describe('what people say about decisions', () => {
  const said = (scope: string, id: string, json: object) => call(`${scopePath(scope)}/events/${id}/feedback`, { json })
  const taught = async (stub: Stub) => {
    const { episodes } = await all(scopeSource(stub))
    return new Map(episodes.map(({ id, teacher, acts, outcome }) => [id, { by: teacher.by, outcome, acts: acts.map((act) => act.input) }]))
  }

  test('replaces what a turn or a reflex decided, as the decision of a person', async () => {
    const { scope, stub } = await prepared()
    const events = ['acts', 'acts', 'replied', 'replied', 'consumed'].map((text) => note(scope, text))
    for (const event of events) await sendAndSettle(stub, event)
    const [right, wrong, reflex, unjudged, ignored] = events.map(({ id }) => id) as [string, string, string, string, string]
    await said(scope, right, { right: true })
    await said(scope, wrong, { right: false })
    await said(scope, reflex, { right: false, reply: 'no' })
    await said(scope, ignored, { right: true })
    const found = await taught(stub)
    expect(found.get(right)).toMatchObject({ by: 'person', outcome: 'ok' })
    expect(found.get(wrong)).toMatchObject({ by: 'person', outcome: 'overruled' })
    expect(found.get(reflex)).toMatchObject({ by: 'person', outcome: 'corrected', acts: [{ content: 'no' }] })
    expect(found.get(ignored)).toMatchObject({ by: 'person', outcome: 'ok', acts: [{ content: 'yes' }] })
    expect(found.get(unjudged)?.by).not.toBe('person')
  })

  test('about a decision that was read before is returned separately', async () => {
    const { scope, stub } = await prepared()
    const event = note(scope, 'acts')
    await sendAndSettle(stub, event)
    const before = await all(scopeSource(stub))
    await said(scope, event.id, { right: false, reply: 'at nine' })
    const { episodes, corrections } = await readEpisodes(scopeSource(stub), { after_seq: before.watermark, lead: before.watermark + 1 })
    expect(episodes).toEqual([])
    expect(corrections).toMatchObject([{ id: event.id, by: 'person', outcome: 'corrected', acts: [{ input: { content: 'at nine' } }] }])
  })

  test.each([
    ['that is in the chain', () => null],
    ['that has left the chain', (stub: Stub) => stub.configure({ reflexes: [] }, 'ops')],
    ['that has left the chain, after an eviction', (stub: Stub) => stub.configure({ reflexes: [] }, 'ops').then(() => evict(stub))],
  ])('that overrules an act of a reflex %s says that nothing should have been done', async (_, meanwhile) => {
    const scope = freshScope()
    const code = `function reflex({ event }) { return { action_type: 'call_tool', tool: 'act_global', args: { text: event.text }, consume: true } }`
    const { id } = await createVersion({ code })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
    const event = note(scope, '192.0.2.1')
    await sendAndSettle(stubOf(scope), event, note(scope, '192.0.2.2'))
    await meanwhile(stubOf(scope))
    for (const key of ['undo', 'again']) await stubOf(scope).callTool({ tool: 'undo_global', input: { text: '192.0.2.1' }, key }, 'ops')
    const overruled = (await logOf(stubOf(scope))).filter(({ kind }) => kind === 'reflex-overruled')
    expect(overruled).toMatchObject([{ reflex_id: id, version: 1, turn_id: null, event_ids: [event.id] }])
    expect((await taught(stubOf(scope))).get(event.id)).toMatchObject({ by: 'person', outcome: 'corrected', acts: [] })
  })
})

describe('the decisions of a scope', () => {
  test('are read with what each was made from, and what was done', async () => {
    const { scope, stub } = await busyScope()
    const id = await skill()
    const texts = ['act on door 7', 'nothing', 'answer me', `propose ${id}`, 'fails', 'notes']
    for (const text of texts) await sendAndSettle(stub, note(scope, text))
    const { episodes, skipped, watermark, more } = await all(scopeSource(stub))
    expect({ skipped, more }).toEqual({ skipped: [], more: false })
    expect(watermark).toBe((await logOf(stub)).at(-1)?.seq)
    expect(episodes.map(({ acts }) => acts)).toMatchObject([
      [{ kind: 'tool', name: 'act', input: { text: 'door 7' }, output: { did: 'door 7' }, ok: true }],
      [],
      [{ kind: 'reply', input: { content: 'I say me' } }],
      [{ kind: 'skill', name: id, input: { what: 'm' }, ok: true }],
      [{ kind: 'tool', name: 'act', ok: false }],
      [{ kind: 'note', name: 'n', input: { value: 1 } }],
    ])
    expect(episodes.map(({ outcome }) => outcome)).toEqual(['ok', 'ok', 'ok', 'ok', 'failed', 'ok'])
    const [first, , , proposed] = episodes
    expect(first).toMatchObject({
      place: { project: 'shop', agent: 'test-agent' },
      teacher: { by: 'model', model: 'none' },
      source: 'test',
      goal: { text: 'act on door 7', labels: ['twice'] },
      saw: {
        event: { text: 'act on door 7' },
        scratch: {},
        recent_actions: [],
        window: { '10m': { total: 1, by_type: { 'test.note': 1 } } },
      },
    })
    expect(proposed).toMatchObject({ teacher: { model: 'offline' }, usage: { model_calls: 2 }, saw: { window: { '10m': { total: 4 } } } })
    expect(proposed?.saw.recent_events).toHaveLength(4)
  })

  test('include calls that an earlier effect answered, with their own input', async () => {
    const { scope, stub } = await busyScope()
    behaviours.set(scope, (_, deps) => deps.call('act_once', { text: 'door 7' }).then(() => null))
    for (const text of ['first', 'second']) await sendAndSettle(stub, note(scope, text))
    const { episodes, skipped } = await all(scopeSource(stub))
    expect(skipped).toEqual([])
    expect(episodes.map(({ acts }) => acts)).toMatchObject([
      [{ name: 'act_once', input: { text: 'door 7' }, output: { did: 'door 7' }, ok: true }],
      [{ name: 'act_once', input: { text: 'door 7' }, output: { did: 'door 7' }, ok: true }],
    ])
  })

  test('are the same in slices, each read by another process, and nothing is read twice in one', async () => {
    const { scope, stub } = await busyScope()
    for (let n = 0; n < 12; n += 1) await sendAndSettle(stub, note(scope, n % 3 === 0 ? 'nothing' : `act on door ${n}`))
    const { episodes } = await all(scopeSource(stub))
    expect(episodes).toHaveLength(12)
    expect(await inSlices(scopeSource(stub), 5)).toEqual(episodes)
    const pages: (number | null)[] = []
    const counting: EpisodeSource = {
      page: async (request) => {
        pages.push(request.after)
        return scopeSource(stub).page({ ...request, limit: 10 })
      },
    }
    const read: Episode[] = []
    let last = await readEpisodes(counting, { most: 5 })
    read.push(...last.episodes)
    while (last.more) read.push(...(last = await readEpisodes(counting, { most: 5, reading: last.reading })).episodes)
    expect(read).toEqual(episodes)
    expect(new Set(pages).size).toBe(pages.length)
  })

  test('on several events belong to the one that holds the arguments, or to none', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async ({ events }, deps) => {
      for (const text of events.map(textOf)) if (text.startsWith('block ')) await deps.call('act', { text: text.slice(6) })
      if (events.map(textOf).includes('all')) await deps.call('act', { text: 'everything' })
      return null
    })
    await sendAndSettle(stub, note(scope, 'block 192.0.2.1'), note(scope, 'hello'), note(scope, 'block 192.0.2.2'))
    await sendAndSettle(stub, note(scope, 'all'), note(scope, 'hello'))
    const { episodes, skipped } = await all(scopeSource(stub))
    expect(episodes.map(({ goal, acts }) => [goal?.text, ...acts.map(({ input }) => input['text'])])).toEqual([
      ['block 192.0.2.1', '192.0.2.1'],
      ['hello'],
      ['block 192.0.2.2', '192.0.2.2'],
    ])
    expect(skipped).toEqual([{ reason: 'a turn on several events did something that belongs to none of them alone', count: 1 }])
  })

  test('of people replace those of the turn that asked for an approval', async () => {
    const { scope, stub } = await busyScope()
    const id = await skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })
    for (const decision of ['approve', 'reject']) {
      const decided = await readEpisodes(scopeSource(stub), { most: 10_000 })
      await sendAndSettle(stub, note(scope, `propose ${id}`, { decision }))
      const { body } = await call(`/v1/approvals?status=pending&scope=${encodeURIComponent(scope)}`)
      await call(`/v1/approvals/${body.items[0].id}/${decision}`, { json: {} })
      await until(
        async () => (await readEpisodes(scopeSource(stub), { most: 10_000 })).episodes.length > decided.episodes.length + 1,
        decision,
      )
    }
    const { episodes } = await all(scopeSource(stub))
    const asked = { kind: 'skill', name: id, input: { what: 'm' }, ok: true }
    expect(episodes.map(({ teacher, outcome, acts }) => ({ by: teacher.by, outcome, acts }))).toMatchObject([
      { by: 'model', outcome: 'ok', acts: [asked] },
      { by: 'person', outcome: 'ok', acts: [asked] },
      { by: 'model', outcome: 'ok', acts: [asked] },
      { by: 'person', outcome: 'corrected', acts: [] },
    ])
    expect(episodes[1]?.id).toBe(episodes[0]?.id)
    expect(episodes[1]?.saw).toEqual(episodes[0]?.saw)
  })

  test('of a consumer outside are those that it made with tools of the scope, in the trace of the event', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull' }, 'a test')
    await send(stub, note(scope, 'please act'), note(scope, 'never mind'))
    const claimed = await stub.claim({ limit: 10, lease_s: 60 }, 'a consumer')
    if (!claimed.ok) throw new Error(claimed.detail)
    const [first] = claimed.deliveries
    const trace = { trace_id: first!.event.meta.trace_id, parent_id: null }
    await stub.callTool({ tool: 'act', input: { text: 'by hand' }, key: 'k', trace }, 'a consumer')
    await stub.ack(claimed.deliveries.map(({ ack_token }) => ack_token))
    const { episodes, skipped } = await all(scopeSource(stub))
    expect(episodes).toMatchObject([
      {
        teacher: { by: 'pull' },
        saw: { event: { text: 'please act' }, recent_events: [{ text: 'please act' }] },
        acts: [{ kind: 'tool', name: 'act', input: { text: 'by hand' } }],
      },
    ])
    expect(skipped).toEqual([{ reason: expect.stringContaining('used no tool of the scope'), count: 1 }])
  })

  test('are read from the archive where the scope has deleted them', async () => {
    const { scope, stub } = await busyScope(ARCHIVED)
    for (const text of ['act on door 7', 'nothing', 'answer me']) await sendAndSettle(stub, note(scope, text))
    const { episodes } = await all(scopeSource(stub))
    await until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has everything')
    await age(stub, 20)
    await until(async () => (await stub.state()).archive!.files > 1, 'everything is archived')
    expect(episodes).toHaveLength(3)
    expect((await all(scopeSource(stub))).episodes).toEqual(episodes)
  })
})
