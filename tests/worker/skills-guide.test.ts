import { expect, test } from 'vitest'
import { parseAsp } from '../../src/skills/asp.ts'
import { call, keyFor, scopePath } from '../support/http.ts'
import { stubOf } from '../support/scopes.ts'

const { default: guide }: { default: string } = await import('../../docs/skills.md?raw')
const { default: notes }: { default: string } = await import('../../examples/skills/notes.ts?raw')

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
  expect(await propose({ skill_id, inputs: { ...inputs, address: '203.0.113.0/24' }, why })).toMatchObject({ status: 'needs_approval' })
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
