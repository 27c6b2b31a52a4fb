import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { framesOf } from '../../../support/socket-frames.ts'
import { call, fetchRaw, keyFor, scopePath } from '../../../support/http.ts'
import { evict, freshScope, stubOf, until } from '../../../support/scopes.ts'
import { effects } from '../../../support/test-agents.ts'
import { propose, skill } from '../../../support/two-step-skill.ts'

type Frame = {
  type: string
  id?: string
  status?: string
  errors?: { path: string; message: string }[]
  entry?: { kind: string; status?: string; by?: string; reason?: string }
}

async function connect(scope: string, query: string, key?: string) {
  const headers = { Upgrade: 'websocket' }
  const { webSocket: socket, status } = await fetchRaw(scopePath(scope, `/ws${query}`), { headers, ...(key === undefined ? {} : { key }) })
  if (!socket) throw new Error(`no socket: ${status}`)
  const say = (message: object) => socket.send(JSON.stringify(message))
  return { say, ...framesOf<Frame>(socket) }
}

const as = async (roles: string[], scope: string, name?: string) => connect(scope, '', await keyFor(roles, ['*'], name))

async function parked(key?: string) {
  const scope = freshScope()
  const id = await skill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } })
  const { approval_id } = await propose(scope, id, {}, key)
  return { scope, id: approval_id ?? '' }
}
const ran = (scope: string) => effects.filter((effect) => effect.scope === scope).length

describe('a decision over the socket', () => {
  test.each([
    ['approve', 'approved', 2],
    ['reject', 'rejected', 0],
  ] as const)('to %s is acknowledged, told to all who watch, and kept to', async (type, status, effects) => {
    const { scope, id } = await parked()
    const [olga, viewer] = [await as(['operator'], scope, 'olga'), await as(['viewer'], scope)]
    olga.say({ type, approval_id: id, reason: 'looked at it' })
    expect(await olga.frame('ack')).toEqual({ type: 'ack', id, status })
    const decided = await viewer.frame('log', ({ entry }) => entry?.kind === 'approval-decided')
    expect(decided.entry).toMatchObject({ approval_id: id, status, by: 'olga', reason: 'looked at it' })
    if (effects > 0) await viewer.frame('log', ({ entry }) => entry?.kind === 'skill-applied')
    expect(ran(scope)).toBe(effects)
  })

  test('may change the inputs, if they fit', async () => {
    const { scope, id } = await parked()
    const olga = await as(['operator'], scope, 'olga')
    olga.say({ type: 'approve', approval_id: id, edits: { what: 7 } })
    expect(await olga.frame('error')).toMatchObject({ id, errors: [{ message: 'the edit is refused: what must be of type string' }] })
    olga.say({ type: 'approve', approval_id: id, edits: { what: 'y' } })
    expect(await olga.frame('ack')).toEqual({ type: 'ack', id, status: 'approved' })
    await until(async () => ran(scope) === 2, 'it has run')
    expect(effects.filter((effect) => effect.scope === scope).map(({ text }) => text)).toEqual(['first y', 'second y'])
  })

  test('is taken after hibernation, and with a ticket', async () => {
    const { scope, id } = await parked()
    const { body } = await call(scopePath(scope, '/tickets'), { method: 'POST', key: await keyFor(['operator'], ['*'], 'olga') })
    const headers = { Upgrade: 'websocket' }
    const { webSocket: socket } = await fetchRaw(scopePath(scope, `/ws?ticket=${body.ticket}`), { key: null, headers })
    if (!socket) throw new Error('no socket')
    socket.accept()
    await evict(stubOf(scope))
    socket.send(JSON.stringify({ type: 'approve', approval_id: id }))
    await until(async () => ran(scope) === 2, 'it has run')
    expect((await call(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'approved', decided_by: 'olga', reason: null })
  })

  test('is one of those over HTTP: exactly one wins', async () => {
    const { scope, id } = await parked()
    const [olga, peter] = [await as(['operator'], scope), await as(['operator'], scope)]
    olga.say({ type: 'approve', approval_id: id })
    peter.say({ type: 'reject', approval_id: id })
    const over = await call(`/v1/approvals/${id}/approve`, { json: {} })
    const answers = await Promise.all(
      [olga, peter].map(({ frames }) => until(async () => frames.find(({ type }) => type === 'ack' || type === 'error'), 'an answer')),
    )
    const won = answers.filter(({ type }) => type === 'ack').length + (over.status === 200 ? 1 : 0)
    expect(won).toBe(1)
    const lost = answers.filter(({ type }) => type === 'error').map(({ errors }) => errors?.[0]?.message)
    expect(lost.filter((message) => !/^It was (approved|rejected) by /.test(message ?? ''))).toEqual([])
  })

  test.each([
    ['a publisher', ['publisher'], 'deciding on approvals needs the role operator'],
    ['a viewer', ['viewer'], 'this key may only receive here'],
  ])('of %s is refused', async (_, roles, message) => {
    const { scope, id } = await parked()
    const { say, frame } = await as(roles, scope)
    say({ type: 'approve', approval_id: id })
    expect((await frame('error')).errors?.[0]?.message).toContain(message)
    expect((await call(`/v1/approvals/${id}`)).body.status).toBe('pending')
  })

  test('by the proposer is refused: the four-eyes principle applies here, too', async () => {
    const key = await keyFor(['operator'], ['*'], 'olga')
    const { scope, id } = await parked(key)
    const { say, frame } = await connect(scope, '', key)
    say({ type: 'approve', approval_id: id })
    expect(await frame('error')).toMatchObject({ id, errors: [{ message: expect.stringContaining('another key') }] })
  })

  test.each([
    ['was deleted', (id: string) => call(`/v1/keys/${id}`, { method: 'DELETE' })],
    ['has expired', (id: string) => env.DB.prepare('UPDATE keys SET expires_at = 1 WHERE id = ?').bind(id).run()],
  ])('of a key that %s meanwhile is refused', async (_, end) => {
    const { scope, id } = await parked()
    const { body } = await call('/v1/keys', { json: { name: 'olga', roles: ['operator', 'publisher'], scopes: ['*'] } })
    const { say, frame } = await connect(scope, '', body.key)
    // The check that closes sockets is then due in a minute.
    say({ content: 'here' })
    await frame('ack')
    await end(body.id)
    say({ type: 'approve', approval_id: id })
    expect((await frame('error')).errors).toMatchObject([{ message: 'the key of this socket was deleted or has expired' }])
    expect((await call(`/v1/approvals/${id}`)).body.status).toBe('pending')
  })

  test.each([
    ['without an id', { type: 'approve' }, 'approval_id'],
    ['with more than there is', { type: 'approve', approval_id: 'a', because: 'x' }, ''],
    ['with an empty reason', { type: 'reject', approval_id: 'a', reason: '' }, 'reason'],
  ])('%s is answered with what is wrong', async (_, message, path) => {
    const { say, frame } = await as(['operator'], freshScope())
    say(message)
    expect((await frame('error')).errors).toMatchObject([{ path }])
  })

  test('does not find an approval of another scope', async () => {
    const { id } = await parked()
    const { say, frame } = await as(['operator'], freshScope())
    say({ type: 'approve', approval_id: id })
    expect((await frame('error')).errors).toMatchObject([{ message: `there is no approval ${id} in this scope` }])
    expect((await call(`/v1/approvals/${id}`)).body.status).toBe('pending')
  })

  test('while D1 is away is answered, and can be sent again', async () => {
    const { scope, id } = await parked()
    const { say, frame } = await as(['operator'], scope)
    await env.DB.exec('ALTER TABLE approvals RENAME TO approvals_away')
    say({ type: 'approve', approval_id: id })
    expect((await frame('error')).errors).toMatchObject([{ message: expect.stringContaining('send it again') }])
    await env.DB.exec('ALTER TABLE approvals_away RENAME TO approvals')
    say({ type: 'approve', approval_id: id })
    expect(await frame('ack')).toMatchObject({ status: 'approved' })
    await until(async () => ran(scope) === 2, 'it has run')
  })
})
