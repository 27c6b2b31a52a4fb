import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState } from './api.ts'
import { reflexHere } from './command-line.ts'
import { scriptedModel, type ScriptedModel } from './scripted-model.ts'

const state = await temporaryState()
const scope = 'e2e/learning'
let server: LocalServer
let model: ScriptedModel
/** Replies of the teacher, by what the newest message says. */
let teaches = { 'disk full': 'clean it up', 'all fine': 'good' }

beforeAll(async () => {
  model = await scriptedModel(async function* (question) {
    const said = Array.from(question.matchAll(/(disk full|all fine) on host/g)).at(-1)?.[1] as keyof typeof teaches
    yield teaches[said]
  })
  server = await startServer({ persist_to: state.directory, migrated: true, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, ...model.vars } })
})
afterAll(async () => {
  await server.stop()
  model.stop()
  await state.remove()
})

type Served = { outcome: { by: string } }
type Candidate = { id: string; version: string; state: string; decision: string }
type Run = { run_id: string; status: string; started_by: string; found: number; candidates: Candidate[] }
type Certificates = { items: { certificate: { foreseen?: { act: string; n: number; k: number }[] } }[] }
let sent = 0

/** Sends messages one by one until `enough` of the last deciders, and returns who decided. */
async function serve(most: number, enough: (by: readonly string[]) => boolean = () => false): Promise<string[]> {
  const by: string[] = []
  while (by.length < most && !enough(by)) {
    const content = `${sent % 2 === 0 ? 'disk full' : 'all fine'} on host-${sent}`
    const body = { id: `m${sent}`, type: 'ws.message', connection_id: 'e2e', content }
    const { events } = await ask<{ events: Served[] }>(server.url, `${scopePath(scope)}/events?wait=outcome`, { body })
    by.push(events[0]?.outcome.by ?? '')
    sent += 1
  }
  return by
}
const lastAre = (decider: string, count: number) => (by: readonly string[]) =>
  by.length >= count && by.slice(-count).every((one) => one === decider)

async function learn(): Promise<Run> {
  const { run_id } = await ask<Run>(server.url, '/v1/learn', { body: { scope, kinds: ['reflex'] } })
  return eventually(async () => {
    const run = await ask<Run>(server.url, `/v1/learn/runs/${run_id}`)
    return run.status !== 'running' && run
  }, 'the run has ended')
}
const configure = (learning: object) => ask(server.url, scopePath(scope), { method: 'PATCH', body: { learning } })

test('what a model repeats is learned, proved and taken over, caught when the model changes its mind, and learned again', async () => {
  const settings = {
    agent: 'prompted',
    instructions: 'Answer each message.',
    learning: { mode: 'auto', min_agreement: 0.95, trusted_sources: ['key:admin'] },
  }
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: settings })
  await serve(240)
  const run = await learn()
  expect(run).toMatchObject({ status: 'done', found: 2 })
  // The last 40 decisions were compared with what the first 200 had taught.
  const foreseen = await eventually(async () => {
    const all = await Promise.all(run.candidates.map(({ id }) => ask<Certificates>(server.url, `/v1/certificates?id=${id}`)))
    const acts = all.flatMap(({ items }) => items.flatMap(({ certificate }) => certificate.foreseen ?? []))
    return acts.length === 2 && acts
  }, 'the certificates are known')
  expect(foreseen).toEqual([
    expect.objectContaining({ act: 'reply', n: 20, k: 20 }),
    expect.objectContaining({ act: 'reply', n: 20, k: 20 }),
  ])
  const proved = await serve(400, lastAre('reflex', 20))
  expect(proved.slice(-20).every((one) => one === 'reflex')).toBe(true)
  // The share of audits falls with the acts since the proof.
  await serve(200)
  const asked = model.asked.length
  await serve(10)
  expect(model.asked.length - asked).toBeLessThanOrEqual(2)

  const candidate = (await ask<Run>(server.url, `/v1/learn/runs/${run.run_id}`)).candidates[0]
  const env = { REFLEX_URL: server.url, REFLEX_KEY: ADMIN_KEY }
  const shown = await reflexHere(['learn', 'show', run.run_id, candidate?.id ?? ''], env)
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('which proves more than') })
  const trace = /trace ([\da-f]{32})/.exec(shown.stdout)?.[1] ?? ''
  expect(await reflexHere(['trace', 'show', trace], env)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('invoke_agent prompted'),
  })

  teaches = { 'disk full': 'call a person', 'all fine': 'good' }
  await configure({ audit_share: 1 })
  const isCaught = (by: readonly string[]) => by.slice(-4).filter((one) => one === 'turn').length === 2
  expect(isCaught(await serve(200, isCaught))).toBe(true)
  // The first disagreement leaves such events to the model. The proof ends at the fifth: an alarm.
  expect((await serve(20)).filter((one) => one === 'turn')).toHaveLength(10)
  const drifted = await eventually(async () => {
    const { items } = await ask<{ items: Run[] }>(server.url, `/v1/learn/runs?scope=${encodeURIComponent(scope)}`)
    return items.find(({ started_by, status }) => started_by === 'drift' && status !== 'running')
  }, 'the drift has started a run')
  expect(drifted.status).toBe('done')
  await configure({ audit_share: 0.02 })
  await serve(200)
  expect(await learn()).toMatchObject({ status: 'done', found: expect.toSatisfy((found: number) => found > 0) })
  expect(lastAre('reflex', 10)(await serve(400, lastAre('reflex', 10)))).toBe(true)
}, 300_000)
