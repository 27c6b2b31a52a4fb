import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../../../cli/reflex/main.ts'

const place = (n: number) => ({ seq: n, trace_id: `trace-${n}`, event_id: `e${n}` })
const candidate = { kind: 'reflex', id: 'learned.a', version: '2', state: 'active', decision: 'nothing', examples: [], code: 'CODE' }
const run = { run_id: 'r1', scope: 's', status: 'done', candidates: [candidate], rejected: [] }
const proof = (version: number) => ({ scope: 's', version, certificate: {}, why: [`version ${version} is proven`] })
const reach = {
  act: 'reply',
  bound: 0.99,
  decisions: 60,
  error: null,
  error_by: null,
  must_leave: null,
  decides: 0,
  needs: null,
  saves_usd: 0,
}
const nothing = {
  ...run,
  candidates: [],
  progress: { phase: 'done', done: 1, of: 1 },
  episodes: { read: 60, used: 60, asked_again: 0, skipped: [], from: null, to: null },
  answer: 'Nothing was learned from 60 decisions: it varies (60 decisions).',
  rejected: [
    { what: 'all decisions', reason: 'it varies (60 decisions)' },
    { what: 'reply', reason: 'it is rare' },
  ],
  reach: [reach],
}
const rare = Array.from({ length: 80 }, (_, index) => ({
  what: `reply "${index}"`,
  reason: `it was taken fewer than 8 times (${7 - Math.min(6, index)} decisions)`,
}))
const crowd = { sender: 'key:1', n: 60, trusts: ['key:1'] }
const asked: { path: string; body: string }[] = []
const answers: Record<string, unknown> = {
  '/v1/learn/runs/r1': run,
  '/v1/learn/runs/varies': nothing,
  '/v1/learn/runs/rare': { ...nothing, rejected: [...rare, ...nothing.rejected] },
  '/v1/learn/runs/crowd': { ...nothing, episodes: { ...nothing.episodes, crowd } },
  '/v1/reflexes/learned.a': { certificates: [proof(1), proof(2)] },
  '/v1/learn/runs/r1/evidence?candidate=learned.a&part=train&limit=5': { items: [place(1), place(2)], next_cursor: '2' },
  '/v1/learn/runs/r1/evidence?candidate=learned.a&part=agreed&limit=5': { items: [place(3)], next_cursor: null },
  '/v1/scopes/s/events/e1/feedback': { decided: { by: 'reflex', reflex_id: 'learned.a', version: 2 }, counted: true },
}
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    asked.push({ path: request.url ?? '', body: Buffer.concat(chunks).toString() })
    const answer = answers[request.url ?? '']
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer ?? { detail: 'not there' }))
  })
})
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

async function printed(...of: string[]): Promise<{ code: number; text: string }> {
  const written: string[] = []
  const spies = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, 'write').mockImplementation((text) => written.push(String(text)) > 0),
  )
  const code = await main(['--url', url, '--key', 'k', ...of])
  for (const spy of spies) spy.mockRestore()
  return { code, text: written.join('') }
}

test('a learned candidate is shown with its certificate and the traces behind its numbers', async () => {
  const { code, text } = await printed('learn', 'show', 'r1', 'learned.a')
  expect(code).toBe(0)
  for (const part of ['version 2 is proven', 'trace trace-1', 'trace trace-2', '--evidence train lists all', 'trace trace-3', 'CODE'])
    expect(text).toContain(part)
  expect(text).not.toContain('version 1 is proven')
})

test('a run that found nothing tells each cause once, and does not say that nothing can be proved where trust is missing', async () => {
  const { text: varies } = await printed('learn', 'show', 'varies')
  expect(varies.match(/it varies/g)).toHaveLength(1)
  expect(varies).toContain('“reply”: it is rare')
  expect(varies).toContain('reply: 0.0 % of 60 decisions at a bound of 0.99; nothing that was learned decides it yet')
  const { text: untrusted } = await printed('learn', 'show', 'crowd')
  expect(untrusted).toContain('reply: not known before key:1 is trusted, of 60 decisions at a bound of 0.99')
  expect(untrusted).not.toContain('0.0 %')
})

test('feedback says that a decision was right or wrong, and by which reply', async () => {
  const { code, text } = await printed('events', 'feedback', 's', 'e1', '--wrong', '--reply', 'at nine')
  expect({ code, text }).toMatchObject({ code: 0, text: expect.stringContaining('reflex learned.a@2') })
  expect(asked.at(-1)).toEqual({ path: '/v1/scopes/s/events/e1/feedback', body: JSON.stringify({ right: false, reply: 'at nine' }) })
  expect((await printed('events', 'feedback', 's', 'e1')).code).not.toBe(0)
})

test('a run of learning shows a few of the refusals that are alike, and counts the rest', async () => {
  const { text } = await printed('learn', 'show', 'rare')
  expect(text.match(/reply "\d+"/g)).toEqual(['reply "0"', 'reply "1"', 'reply "2"'])
  expect(text).toContain('… and 77 more: it was taken fewer than 8 times (--json has all)')
  expect(text).toContain('“reply”: it is rare')
})
