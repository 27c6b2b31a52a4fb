import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, call, eventually, scopePath, temporaryState, wholeLog } from './api.ts'

const SCOPE = 'ssh/approvals'
const state = await temporaryState()
/** Calls that the firewall received, by idempotency key. */
const told = new Map<string, number>()
const firewall = createServer((request, response) => {
  const key = String(request.headers['idempotency-key'])
  told.set(key, (told.get(key) ?? 0) + 1)
  request.resume().on('end', () => response.end('{}'))
})
let server: LocalServer

async function start(): Promise<LocalServer> {
  const { port } = firewall.address() as AddressInfo
  const vars = { REFLEX_ADMIN_KEY: ADMIN_KEY, BLOCK_WEBHOOK_URL: `http://127.0.0.1:${port}/block` }
  return startServer({ persist_to: state.directory, migrated: true, vars })
}
async function killAndStart(): Promise<void> {
  await server.kill9()
  server = await start()
}

beforeAll(async () => {
  await new Promise<void>((resolve) => firewall.listen(0, '127.0.0.1', resolve))
  server = await start()
})
afterAll(async () => {
  await server.stop()
  firewall.close()
  await state.remove()
})

test('a run that waits for an approval survives kill -9, and so does the approval: it runs once', async () => {
  const manifest: unknown = JSON.parse(await readFile('examples/skills/network-block.json', 'utf8'))
  await ask(server.url, '/v1/skills', { body: manifest })
  await ask(server.url, '/v1/skills/network.block/state', { body: { state: 'active' } })
  const proposal = { skill_id: 'network.block', inputs: { network: '203.0.113.0/24', reason: 'a test' }, why: 'networks that attack' }
  const { status, approval_id } = await ask<{ status: string; approval_id: string }>(server.url, `${scopePath(SCOPE)}/skills/propose`, {
    body: proposal,
  })
  expect(status).toBe('needs_approval')

  await killAndStart()
  const { items } = await ask<{ items: object[] }>(server.url, '/v1/approvals?status=pending')
  expect(items).toMatchObject([{ id: approval_id, scope: SCOPE, inputs: proposal.inputs }])
  const { key } = await ask<{ key: string }>(server.url, '/v1/keys', { body: { name: 'olga', roles: ['operator'], scopes: ['ssh/*'] } })
  await ask(server.url, `/v1/approvals/${approval_id}/approve`, { method: 'POST', key })

  // At whatever place of its way: it was approved.
  await killAndStart()
  await eventually(async () => (await wholeLog(server.url, SCOPE)).some(({ kind }) => kind === 'skill-applied'), 'it has run')
  const log = await wholeLog(server.url, SCOPE)
  expect(log.filter(({ kind }) => kind === 'approval-decided')).toMatchObject([{ status: 'approved', by: 'olga' }])
  expect(log.filter(({ kind }) => kind === 'skill-applied')).toMatchObject([{ status: 'ok' }])
  // The calls share a key: a call that was cut off may come again under it.
  expect(Array.from(told.keys())).toEqual([expect.stringContaining(`${SCOPE} block:203.0.113.0/24`)])
  expect(await call(server.url, `/v1/approvals/${approval_id}/reject`, { method: 'POST', key })).toMatchObject({ status: 409 })
})
