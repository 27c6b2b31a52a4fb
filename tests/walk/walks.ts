import { createExecutionContext, createMessageBatch, getQueueResult } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import { withDefaults, type Event } from '../../src/core/event.ts'
import { moveClockTo } from '../../testing/clock.ts'
import { call, fetchRaw, request, scopePath } from '../support/http.ts'
import { write } from '../support/reflex-chain.ts'
import { freshScope, note, send, sendAndSettle, stubOf, until } from '../support/scopes.ts'
import { skill } from '../support/two-step-skill.ts'
import worker, { app } from '../support/worker.ts'
import { beginRecording, endRecording, quiet, type Entered } from './entered.ts'

const HOUR = 3_600_000

/** Each walk begins at a full hour, in a runtime that has nothing else to do. */
async function calm(): Promise<void> {
  await quiet()
  moveClockTo((Math.floor(Date.now() / HOUR) + 1) * HOUR)
}

/** Waits until D1 has the outcomes, and nothing follows. */
async function replicated(events: readonly Event[]): Promise<void> {
  const ids = JSON.stringify(events.map(({ id }) => id))
  // No code of the walk is called for it. A scope has its first events either in packs or in rows.
  const ended = `SELECT (SELECT count(*) FROM events WHERE status = 'completed' AND id IN (SELECT value FROM json_each(?1)))
    + (SELECT coalesce(sum(events), 0) FROM packs WHERE scopes = json_array(?2)) AS n`
  const all = async () => (await env.DB.prepare(ended).bind(ids, events[0]?.scope).first<number>('n')) === events.length
  await until(all, 'D1 has the outcomes')
  await quiet()
}

/** A scope that is awake and has had an event. */
async function awake(): Promise<string> {
  const scope = freshScope()
  const first = note(scope, 'the first')
  await send(stubOf(scope), first)
  await replicated([first])
  await calm()
  return scope
}

/** The queue keeps the events: their delivery is another walk. */
const kept: unknown[] = []
const EVENTS = { sendBatch: async (messages: unknown[]) => void kept.push(...messages) }
const bindings = Object.assign({}, env, { EVENTS })

async function post(): Promise<Entered[]> {
  const json = { type: 'test.note', scope: await awake(), text: 'hi' }
  const publish = async () => app.fetch(request('/v1/events', { json }), bindings, createExecutionContext())
  const before = kept.length
  await publish()
  await quiet()
  beginRecording()
  const { status } = await publish()
  const entered = endRecording()
  expect([status, kept.length - before]).toEqual([202, 2])
  return entered
}

const line = (scope: string, second: number): Event => {
  const timestamp = new Date(Date.UTC(2026, 2, 9, 6, 0, second)).toISOString()
  const text = `Mar  9 ${timestamp.slice(11, 19)} web-1 sshd[100]: Failed password for root from 203.0.113.7 port ${4000 + second} ssh2`
  return withDefaults({ type: 'log.line', host: 'web-1', line: text, timestamp }, { now: Date.now(), source: 'test', scope }) as Event
}

async function deliver(scope: string, events: readonly Event[]): Promise<void> {
  // A request sends it with a batch: events without one are of another Worker, and are judged.
  const message = { id: crypto.randomUUID(), timestamp: new Date(), attempts: 1, body: { batch: '1', scope, events } }
  const batch = createMessageBatch('reflex-events', [message])
  await worker.queue(batch, env)
  expect((await getQueueResult(batch, createExecutionContext())).explicitAcks).toHaveLength(1)
  await replicated(events)
}

async function burst(): Promise<Entered[]> {
  const scope = freshScope('ssh')
  await deliver(scope, [line(scope, 0)])
  await calm()
  const lines = Array.from({ length: 8 }, (_, index) => line(scope, index + 1))
  beginRecording()
  await deliver(scope, lines)
  const entered = endRecording()
  const blocks = env.DB.prepare('SELECT count(*) AS n FROM blocks WHERE scope = ?').bind(scope)
  expect(await blocks.first('n')).toBe(1)
  return entered
}

/** The reply's log entry is the last frame that an answer causes. */
async function socket(): Promise<Entered[]> {
  const scope = freshScope()
  const { id } = await write(`return { action_type: 'reply', content: 'hello', consume: true }`)
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
  const { webSocket } = await fetchRaw(scopePath(scope, '/ws'), { headers: { Upgrade: 'websocket' } })
  if (!webSocket) throw new Error('no socket')
  let [answers, entered]: [number, Entered[]] = [0, []]
  webSocket.addEventListener('message', ({ data }) => {
    if (!String(data).includes('"reply-sent"')) return
    answers += 1
    if (answers === 2) entered = endRecording()
  })
  webSocket.accept()
  const answered = async (times: number): Promise<void> => {
    const message = JSON.stringify(note(scope, 'hi'))
    beginRecording()
    webSocket.send(message)
    await until(async () => answers === times, 'the answer has arrived')
  }
  await answered(1)
  await calm()
  await answered(2)
  webSocket.close()
  return entered
}

async function approval(): Promise<Entered[]> {
  const scope = await awake()
  const skill_id = await skill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } })
  await calm()
  beginRecording()
  const { body } = await call(scopePath(scope, '/skills/propose'), { json: { skill_id, inputs: { what: 'x' }, why: 'do it twice' } })
  const asked = env.DB.prepare('SELECT count(*) AS n FROM approvals WHERE id = ?').bind(body.approval_id)
  await until(() => asked.first('n'), 'it waits for a person')
  await quiet()
  expect(await call(`/v1/approvals/${body.approval_id}/approve`, { json: {} })).toMatchObject({ status: 200 })
  const ended = env.DB.prepare(`SELECT run->>'status' <> 'running' AS ended FROM approvals WHERE id = ?`).bind(body.approval_id)
  await until(() => ended.first('ended'), 'D1 has the end of its run')
  await quiet()
  return endRecording()
}

/** A version that acts by proof, in a scope where it was never compared. */
async function uncertified(): Promise<Entered[]> {
  const scope = freshScope()
  const { id } = await write(`return { action_type: 'reply', content: 'hello' }`, { scope })
  await env.DB.prepare('UPDATE artifact_versions SET by_proof = 1 WHERE id = ?').bind(id).run()
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
  await calm()
  const event = note(scope, 'hi')
  beginRecording()
  const [record] = await sendAndSettle(stubOf(scope), event)
  const entered = endRecording()
  expect(record).toMatchObject({ outcome: { by: 'turn' } })
  return entered
}

async function listing(): Promise<Entered[]> {
  const scope = await awake()
  beginRecording()
  const { status } = await call(`/v1/events?scope=${encodeURIComponent(scope)}`)
  expect(status).toBe(200)
  return endRecording()
}

export const walks = {
  post: { title: 'A request until 202', about: 'One event by `POST /v1/events` with the admin key, to a scope that is awake.', run: post },
  burst: {
    title: 'A burst, and a turn that blocks its sender',
    about: 'Eight log lines from the queue: a turn of `ssh-guard` calls the tool `block`, and D1 gets the outcomes.',
    run: burst,
  },
  socket: {
    title: 'A socket message that a reflex answers',
    about: 'From the message until the last frame of the log about its answer.',
    run: socket,
  },
  approval: {
    title: 'An approval',
    about: 'A skill is proposed over HTTP, waits for a person, is approved over HTTP, and runs its two steps.',
    run: approval,
  },
} as const
/** Shorter ones, which only answer a question. */
export const asides = { uncertified, listing } as const
