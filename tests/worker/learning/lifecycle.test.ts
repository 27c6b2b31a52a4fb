import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { call } from '../../support/http.ts'
import { freshScope, note, runAlarm, sendAndSettle, stubOf, textOf, until } from '../../support/scopes.ts'
import { ask, behaviours } from '../../support/test-agents.ts'

const SOURCES = 7
const noteAt = (scope: string, index: number) =>
  note(scope, `${index % 3 === 0 ? 'disk full' : 'all fine'} on host-${index}`, { source: `host:${index % SOURCES}` })

/** Sends notes one by one, as each gets a turn of its own; returns who decided on them. */
async function serve(scope: string, from: number, count: number): Promise<string[]> {
  const records = []
  for (let index = from; index < from + count; index += 1) records.push(...(await sendAndSettle(stubOf(scope), noteAt(scope, index))))
  return records.map(({ outcome }) => outcome?.by ?? '')
}

async function learned(scope: string) {
  const { run_id } = (await call('/v1/learn', { json: { scope } })).body
  return until(async () => {
    await runAlarm(env.LEARNER.getByName(scope))
    const { body } = await call(`/v1/learn/runs/${run_id}`)
    return body.status === 'running' ? null : body
  }, 'the run has ended')
}

test('what a model repeats becomes reflexes, which are proved, take over, and are audited', async () => {
  const scope = freshScope()
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events.at(-1) as never)
    await ask(deps, text)
    const host = /disk full on (\S+)/.exec(text)?.[1]
    return host === undefined ? null : deps.call('act_once', { text: `clean ${host}` })
  })
  await stubOf(scope).configure({ learning: { mode: 'auto', audit_share: 0.1 } }, 'ops')
  await serve(scope, 0, 240)
  const run = await learned(scope)
  expect(run).toMatchObject({ status: 'done', found: 2, episodes: { read: 240, used: 240, skipped: [] } })
  const by = await serve(scope, 240, 480)
  expect(by.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 'turn'))
  expect(by.slice(-30)).toEqual(Array.from({ length: 30 }, () => 'reflex'))
  // The model changes its mind: audits notice it, and the scope learns from what it decides now.
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events.at(-1) as never)
    await ask(deps, text)
    return text.startsWith('disk full') ? deps.call('act_once', { text: `page ${text.slice(-8)}` }) : null
  })
  await stubOf(scope).configure({ learning: { audit_share: 1 } }, 'ops')
  await serve(scope, 720, 60)
  const drift = await until(async () => {
    const { items } = (await call(`/v1/learn/runs?scope=${encodeURIComponent(scope)}`)).body
    return items.find(({ started_by }: { started_by: string }) => started_by === 'drift')
  }, 'a drift starts a run')
  expect(drift).toMatchObject({ by: 'audits' })
  const { entries } = await stubOf(scope).readLog(0, 1000, undefined, { kinds: ['certificate-changed'] })
  const changes = entries.map((text) => (JSON.parse(text) as { change: string }).change)
  expect(changes).toEqual(expect.arrayContaining(['issued', 'proven', 'drifted']))
}, 300_000)

test('a model that slips in one of thirty answers, and says otherwise if asked again, is taken over all the same', async () => {
  const scope = freshScope()
  const asked = new Set<string>()
  behaviours.set(scope, async (context, deps) => {
    const text = textOf(context.events.at(-1) as never)
    const slips = Number(/\d+$/.exec(text)?.[0]) % 30 === 7 && !asked.has(text)
    asked.add(text)
    await ask(deps, text)
    const host = /disk full on (\S+)/.exec(text)?.[1]
    return (host === undefined) === slips ? deps.call('act_once', { text: `clean ${host ?? 'all'}` }) : null
  })
  await stubOf(scope).configure({ learning: { mode: 'auto' } }, 'ops')
  await serve(scope, 0, 240)
  expect(await learned(scope)).toMatchObject({ status: 'done', found: 2 })
  const by = await serve(scope, 240, 600)
  expect(by.slice(-30)).toEqual(Array.from({ length: 30 }, () => 'reflex'))
}, 300_000)
