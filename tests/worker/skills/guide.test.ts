import { expect, test } from 'vitest'
import { parseAsp } from '../../../src/skills/asp/parse.ts'
import { call, keyFor, scopePath } from '../../support/http.ts'
import { stubOf, until } from '../../support/scopes.ts'

const { default: guide }: { default: string } = await import('../../../docs/skills.md?raw')
const { default: notes }: { default: string } = await import('../../../examples/skills/notes.ts?raw')

/** The fenced blocks of one language, in their order. */
const blocks = (language: string): string[] =>
  Array.from(guide.matchAll(new RegExp(`^ *\`\`\`${language}\n([^]*?)^ *\`\`\`$`, 'gm')), ([, text = '']) => text)
const [manifest = ''] = blocks('jsonc')
const [proposal = '', to_pass = ''] = blocks('json')
const [answer = ''] = blocks('text')

test("the guide's manifest is registered, gated, refused as it says, approved and run", async () => {
  const registered = await call('/v1/skills', { json: JSON.parse(manifest.replaceAll(/^ *\/\/.*$/gm, '')) })
  expect(registered).toMatchObject({ status: 201, body: { id: 'attacker.block', state: 'candidate' } })
  expect((await call('/v1/skills/attacker.block/state', { json: { state: 'active' } })).status).toBe(200)
  await stubOf('ssh/guide').configure({ blackboard: { ctx: { friends: ['192.0.2.7'] } } }, 'ops')
  const key = await keyFor(['operator'])
  const propose = async (json: unknown) => (await call(scopePath('ssh/guide', '/skills/propose'), { json, key })).body

  expect(await propose(JSON.parse(proposal))).toMatchObject({
    status: 'refused',
    decision: {
      verdict: 'refused',
      stages: [{}, { stage: 'preconditions', verdict: 'failed' }, {}, {}],
      to_pass: JSON.parse(to_pass),
    },
  })
  const [block] = parseAsp(answer)
  const { skill_id, inputs, why } = block?.kind === 'propose' ? block : { skill_id: '', inputs: {}, why: '' }
  expect(await propose({ skill_id, inputs, why })).toMatchObject({ status: 'ok', outputs: { blocked: '203.0.113.9' } })
  const parked = await propose({ skill_id, inputs: { ...inputs, address: '198.51.100.9' }, why })
  expect(parked).toMatchObject({ status: 'needs_approval' })
  const approval = `/v1/approvals/${parked.approval_id}`
  expect((await call(`${approval}/approve`, { method: 'POST', key: await keyFor(['operator'], ['*'], 'another') })).status).toBe(200)
  await until(async () => (await call(approval)).body.run?.status === 'ok', 'the approved run ends well')
  expect((await call(approval)).body.run.outputs).toEqual({ blocked: '198.51.100.9' })
  const elsewhere = await call(scopePath('misc', '/skills/propose'), { json: { skill_id, inputs, why }, key })
  expect(elsewhere.body).toMatchObject({ status: 'refused', reason: expect.stringContaining('the tool block must be available') })
  expect(await propose({ skill_id, inputs: { address: '203.0.113.9' }, why })).toMatchObject({
    status: 'clarify',
    questions: [{ slot: 'reason' }],
  })
  expect(await propose({ skill_id, inputs: { ...inputs, address: '10.0.0.1' }, why })).toMatchObject({
    status: 'refused',
    decision: { verdict: 'deny' },
  })
})

test("the guide's snippet is the example", () => {
  expect(blocks('ts')).toEqual([notes])
})
