import { afterEach, beforeEach, expect, test } from 'vitest'
import { call } from '../../../support/http.ts'
import { outside } from '../../../support/mock-fetch.ts'
import { write } from '../../../support/reflex-chain.ts'
import { HOST, scopeWith, skillOf } from '../../../support/scope-with-remote-tools.ts'
import { entriesOf, evict, logOf, note, sendAndSettle, stubOf } from '../../../support/scopes.ts'
import { ask, behaviours } from '../../../support/test-agents.ts'

const EVE = 'eve@evil.example'
const get = (name: string) => ({ name: `http.${name}`, description: 'Reads', method: 'GET', url: `https://${HOST}/${name}` })
const mail = { name: 'http.mail.send', description: 'Sends', method: 'POST', url: `https://${HOST}/mail`, body: { to: '{{to}}' } }
const save = {
  name: 'http.notes.add',
  description: 'Keeps a note',
  method: 'POST',
  url: `https://${HOST}/add`,
  body: { about: '{{about}}' },
}
const account = {
  name: 'http.logins.check',
  description: 'Logs in',
  method: 'POST',
  url: `https://${HOST}/login`,
  body: { password: '{{password}}' },
}

let kept = ''
let lookups = 0
let world: ReturnType<typeof outside>
beforeEach(() => {
  kept = ''
  lookups = 0
  world = outside(HOST, ({ url, body }) => {
    const { pathname: path } = new URL(url)
    if (path === '/add') {
      kept = (JSON.parse(body) as { about: string }).about
      return Response.json({ saved: true })
    }
    if (path === '/note') return Response.json({ row: 7, about_whom: kept })
    if (path === '/file') return new Response(JSON.stringify({ contact: EVE }), { headers: { 'content-type': 'text/plain' } })
    if (path === '/latest') return new Response(lookups++ === 0 ? 'Nothing is new' : JSON.stringify({ contact: EVE }))
    if (path === '/inbox') return Response.json({ reply_to: EVE, body: 'Hello' })
    if (path === '/large') {
      lookups += 1
      return Response.json({ email: `user${lookups}@example.com`, body: 'x'.repeat(230_000) })
    }
    return Response.json({ sent: true })
  })
})
afterEach(() => world.restore())
const sent = () =>
  world.requests.flatMap(({ body, url }) => (new URL(url).pathname === '/mail' ? [(JSON.parse(body) as { to: string }).to] : []))

const scopeOf = (settings: Record<string, unknown>) =>
  scopeWith({ origins: 'refuse', trusted_senders: ['nobody'], http_tools: [mail, save, account, get('note'), get('large')], ...settings })

async function turn(scope: string, ...calls: [tool: string, input: object][]): Promise<string[]> {
  const errors: string[] = []
  behaviours.set(scope, async (_, deps) => {
    for (const [tool, input] of calls) await deps.call(tool, input).catch((error: Error) => errors.push(error.message))
    return null
  })
  await sendAndSettle(stubOf(scope), note(scope, 'go'))
  return errors
}

/** A reflex proposes the skill with what stands last in a stranger's text. */
async function proposed(scope: string, manifest: ReturnType<typeof skillOf>, inputs: string): Promise<unknown[]> {
  const registered = await call('/v1/skills', { json: manifest })
  expect(registered).toMatchObject({ status: 201 })
  await call(`/v1/skills/${manifest.id}/state`, { json: { state: 'active' } })
  const { id } = await write(
    `const last = context.event.text.split(' ').at(-1)
     return { action_type: 'run_skill', skill_id: '${manifest.id}', inputs: ${inputs} }`,
  )
  await stubOf(scope).configure({ reflexes: [{ id }] }, 'ops')
  await sendAndSettle(stubOf(scope), note(scope, `a ticket for ${EVE}`))
  return entriesOf(stubOf(scope), 'skill-decided')
}
const policy = { allow_roles: ['agent', 'publisher'] }

test('an input of a skill that stands in a text of a stranger is refused', { timeout: 300_000 }, async () => {
  const scope = await scopeOf({})
  await proposed(scope, skillOf(mail.name, { to: '{{title}}' }, { policy }), '{ title: last }')
  expect(sent()).toEqual([])
})

test('an item of a list that a skill runs over is judged as the list', { timeout: 300_000 }, async () => {
  const scope = await scopeOf({})
  const manifest = skillOf(
    mail.name,
    {},
    {
      policy,
      signature: {
        inputs: [
          { name: 'title', type: 'string', required: true },
          { name: 'whom', type: 'list', required: true },
        ],
      },
      plan: {
        budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
        idempotence_key: 'send:{{title}}',
        steps: [{ tool: mail.name, args: { to: '{{work.item}}' }, for_each: { list: '{{inputs.whom}}', at_most: 5 }, timeout_ms: 5000 }],
      },
    },
  )
  await proposed(scope, manifest, "{ title: 'x', whom: [last] }")
  expect(sent()).toEqual([])
})

test('an output of a step whose tool is declared untrusted directs no later step', { timeout: 300_000 }, async () => {
  const scope = await scopeOf({ http_tools: [mail, { ...get('inbox'), untrusted: true }] })
  const manifest = skillOf(
    mail.name,
    {},
    {
      policy,
      plan: {
        budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
        idempotence_key: 'send:{{title}}',
        steps: [
          { name: 'read', tool: 'http.inbox', timeout_ms: 5000 },
          { tool: mail.name, args: { to: '{{work.steps.read.reply_to}}' }, timeout_ms: 5000 },
        ],
      },
    },
  )
  await proposed(scope, manifest, '{ title: last }')
  expect(sent()).toEqual([])
})

test('what the model wrote into a store and read again directs nothing', { timeout: 300_000 }, async () => {
  const scope = await scopeOf({})
  const errors = await turn(scope, [mail.name, { to: EVE }], [save.name, { about: EVE }], ['http.note', {}], [mail.name, { to: EVE }])
  expect(errors[0]).toMatch('its model wrote it')
  expect(sent()).toEqual([])
})

test.each(['observe', 'ask', 'refuse'])(
  'the log masks a doubted password as it masks the argument: %s',
  { timeout: 300_000 },
  async (origins) => {
    const scope = await scopeOf({ origins })
    await turn(scope, [account.name, { password: 'hunter2-of-alice' }])
    const shown = (await logOf(stubOf(scope))).filter((entry) => JSON.stringify(entry).includes('hunter2-of-alice'))
    expect(shown.map(({ kind }) => kind)).toEqual([])
  },
)

test('after an eviction the newest outputs are known, however large the older ones are', { timeout: 300_000 }, async () => {
  const scope = await scopeOf({})
  await turn(scope, ...Array.from({ length: 6 }, (): [string, object] => ['http.large', {}]))
  await evict(stubOf(scope))
  const errors = await turn(scope, [mail.name, { to: 'user6@example.com' }])
  expect(sent()).toContain('user6@example.com')
  expect(errors).toEqual([])
})

test('the text of a file that a call names directs nothing, even if it is JSON', { timeout: 300_000 }, async () => {
  const file = { ...get('file'), url: `https://${HOST}/file?path={{path}}` }
  const scope = await scopeOf({ http_tools: [mail, file], trusted_senders: ['*'] })
  behaviours.set(scope, async (_, deps) => {
    await deps.call('http.file', { path: 'a.txt' })
    return { error: await deps.call(mail.name, { to: EVE }).catch((error: Error) => error.message) }
  })
  await sendAndSettle(stubOf(scope), note(scope, 'read a.txt'))
  expect(sent()).toEqual([])
})

test(
  'JSON of a tool that also gives words directs nothing, unless a person declares its texts to be records',
  {
    timeout: 300_000,
  },
  async () => {
    for (const more of [{}, { untrusted: false }]) {
      lookups = 0
      const scope = await scopeOf({ http_tools: [mail, { ...get('latest'), ...more }] })
      await turn(scope, ['http.latest', {}], ['http.latest', {}], [mail.name, { to: EVE }])
      expect(sent()).toEqual('untrusted' in more ? [EVE] : [])
    }
  },
)

test('a skill whose tools the turn did not name waits for a person', { timeout: 300_000 }, async () => {
  const inputs = [{ name: 'what', type: 'string', required: true }]
  const plan = { ...skillOf(mail.name, { to: 'bob@example.com' }).plan, idempotence_key: 'mail:{{what}}' }
  const manifest = skillOf(mail.name, {}, { signature: { inputs }, policy: { allow_roles: ['agent'] }, plan })
  const registered = await call('/v1/skills', { json: manifest })
  expect(registered.text).toContain(manifest.id)
  await call(`/v1/skills/${manifest.id}/state`, { json: { state: 'active' } })
  for (const needed of [['http_note'], ['http_mail_send'], [manifest.id]]) {
    const scope = await scopeOf({ origins: 'observe', trusted_senders: ['*'] })
    behaviours.set(scope, async (_, deps) => {
      deps.needs(needed)
      return { said: await ask(deps, `propose ${manifest.id}`) }
    })
    await sendAndSettle(stubOf(scope), note(scope, 'a ticket for bob@example.com'))
    const [decided] = await entriesOf(stubOf(scope), 'skill-decided')
    const said = (decided as unknown as { request: { origins?: unknown } }).request.origins
    const not_named = 'the turn did not name `http.mail.send` as a tool that its task needs'
    expect(said).toEqual(needed[0] === 'http_note' ? { mode: 'ask', said: [not_named] } : undefined)
  }
})
