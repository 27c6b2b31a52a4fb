import { env } from 'cloudflare:workers'
import { beforeEach, expect, test } from 'vitest'
import { withDefaults, type Event } from '../../../../src/core/event.ts'
import { sha256 } from '../../../../src/base/json.ts'
import { createVersion, freshId } from '../../../support/reflexes.ts'
import { crash, entriesOf, evict, freshScope, sendAndSettle, stubOf } from '../../../support/scopes.ts'

const { default: code }: { default: string } = await import('../../../../examples/reflexes/ssh-brute-force.js?raw')
const address = '203.0.113.7'
const frees = `function reflex(context) {
  const found = /Accepted .* from (\\S+) port/.exec(context.event.line)
  return found && { action_type: 'call_tool', tool: 'unblock', args: { address: found[1] } }
}`

let [scope, guard] = ['', '']
beforeEach(async () => {
  scope = freshScope('ssh')
  guard = (await createVersion({ id: freshId('guard'), code, hash: await sha256(code) })).id
  const free = await createVersion({ id: freshId('free'), code: frees, hash: await sha256(frees) })
  await stubOf(scope).configure({ reflexes: [{ id: guard }, { id: free.id }] }, 'ops')
})

let lines = 0
function said(message: string): Event {
  lines += 1
  const at = new Date(Date.UTC(2026, 2, 9, 6) + lines * 1000).toISOString()
  const line = `Mar  9 ${at.slice(11, 19)} web-1 sshd[${1000 + lines}]: ${message}`
  return withDefaults({ type: 'log.line', host: 'web-1', line, timestamp: at }, { now: Date.now(), source: 'test', scope }) as Event
}
const guesses = (count: number, from = address, user = 'root') =>
  Array.from({ length: count }, () => said(`Failed password for ${user} from ${from} port 4242 ssh2`))
const login = (from = address) => said(`Accepted password for root from ${from} port 4242 ssh2`)
const blocked = async () =>
  (await env.DB.prepare('SELECT address FROM blocks WHERE scope = ?').bind(scope).all<{ address: string }>()).results.map(
    (row) => row.address,
  )
const decidedBy = async (...events: Event[]) => (await sendAndSettle(stubOf(scope), ...events)).map(({ outcome }) => outcome?.by)

test('a burst is blocked by the reflex, and no model is asked, then or later', async () => {
  expect(await decidedBy(...guesses(5))).toEqual(['turn', 'turn', 'turn', 'turn', 'reflex'])
  expect(await blocked()).toEqual([address])
  expect(await decidedBy(...guesses(2), said(`Connection closed by authenticating user root ${address} port 1 [preauth]`))).toEqual([
    'reflex',
    'reflex',
    'turn',
  ])
  expect((await stubOf(scope).state()).counters).toMatchObject({ model_calls: 0, effects: 1 })
  expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([
    { tool: 'block', status: 'ok', idempotence_key: `block:${address}` },
  ])
})

test('guesses at users that do not exist weigh double', async () => {
  expect(await decidedBy(...guesses(3, address, 'invalid user oracle'))).toEqual(['turn', 'turn', 'reflex'])
})

test.each([
  ['a private address', () => guesses(6, '10.0.0.7')],
  ['an address whose login worked', () => [...guesses(2), login('203.0.113.7'), ...guesses(4)]],
  [
    'guesses that are far apart',
    () => guesses(6).map((event, index) => ({ ...event, timestamp: new Date(Date.UTC(2026, 2, 9 + index)).toISOString() })),
  ],
])('%s is left to the slow path', async (_, events) => {
  await decidedBy(...events())
  expect((await entriesOf(stubOf(scope), 'reflex-fired')).filter(({ reflex_id }) => reflex_id === guard)).toEqual([])
  expect(await entriesOf(stubOf(scope), 'reflex-passed')).not.toContainEqual(expect.objectContaining({ reason: 'error' }))
})

test.each([
  ['', async () => {}],
  [', also after an eviction', async () => evict(stubOf(scope))],
  [', also after a crash', async () => void (await crash(scope))],
])('an address that was freed is blocked again, as often as it takes%s', async (_, meanwhile) => {
  // The slow path still sees the old lines and would block the address again, which is unrelated.
  await stubOf(scope).configure({ parameters: { failures: 1000 } }, 'ops')
  for (let round = 0; round < 3; round += 1) {
    await decidedBy(...guesses(5))
    expect(await blocked()).toEqual([address])
    await meanwhile()
    expect(await decidedBy(login())).toEqual(['reflex'])
    expect(await blocked()).toEqual([])
    await meanwhile()
    // Evidence in favour of the address has left the reflex's window.
    await decidedBy(...guesses(10, '10.0.0.7'))
  }
  const done = await entriesOf(stubOf(scope), 'effect-ended')
  expect(done.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
    'block ok',
    'unblock ok',
    'block ok',
    'unblock ok',
    'block ok',
    'unblock ok',
  ])
})

test('blocking an address twice without freeing it is one effect', async () => {
  await decidedBy(...guesses(5))
  await crash(scope)
  await decidedBy(...guesses(5))
  expect(await entriesOf(stubOf(scope), 'effect-started')).toHaveLength(1)
})
