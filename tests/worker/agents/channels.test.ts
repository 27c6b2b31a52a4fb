import { describe, expect, test } from 'vitest'
import { escapedName } from '../../../src/contract/scope.ts'
import { OfflineModel } from '../../../src/models/offline-model.ts'
import { DecisionContext, type Agent, type AgentDeps } from '../../../src/package.ts'
import { assumedDestinations } from '../../../src/tools/origins/destinations.ts'
import { github } from '../../../templates/channels/github.ts'
import { slack } from '../../../templates/channels/slack.ts'
import { telegram } from '../../../templates/channels/telegram.ts'
import { buildEvent } from '../../support/build-event.ts'

const env = { REFLEX_TOOL_GITHUB: 'Bearer gh', REFLEX_TOOL_SLACK: 'Bearer xoxb', REFLEX_TOOL_TELEGRAM: '42:abc' }
/** As the hook names it. */
const ISSUE = `github/${escapedName('acme/shop')}:7`
const model = new OfflineModel([{ name: 'hello', verbatim: true, answer: () => ({ text: 'Hello.' }) }])

/** The requests of a turn of the agent in a scope, which this response answers. */
async function requestsOf(agent: Agent, scope: string, response: () => Response) {
  const requests: { url: string; authorization: string | null; body: unknown }[] = []
  const fetch = async (url: string, init: { headers: HeadersInit; body: string }) => {
    requests.push({ url, authorization: new Headers(init.headers).get('authorization'), body: JSON.parse(init.body) })
    return response()
  }
  const signal = new AbortController().signal
  const call = (name: string, input: never) => agent.tools[name]?.execute(input, { env, fetch, signal, scope } as never)
  const context = new DecisionContext({ scope, events: [buildEvent({ content: 'Is the shop open?' })] })
  await agent.trigger?.(context, { model, signal, call } as unknown as AgentDeps)
  return requests
}

describe('the agent of a channel', () => {
  // A reply with such an argument would wait for a person, and each message end as a dead letter.
  test.each([github, slack, telegram])('has no argument that says where its reply goes: $name', (agent) => {
    const [name = '', tool] = Object.entries(agent.tools)[0] ?? []
    expect({ name, assumed: tool && assumedDestinations(tool) }).toEqual({ name: `${agent.name}_reply`, assumed: [] })
  })

  test('of GitHub comments on the issue of its scope, under a mark', async () => {
    const url = 'https://api.github.com/repos/acme/shop/issues/7/comments'
    const asked = [{ url, authorization: 'Bearer gh', body: { body: '<!-- reflex -->\nHello.' } }]
    expect(await requestsOf(github, ISSUE, () => Response.json({}))).toEqual(asked)
    await expect(requestsOf(github, ISSUE, () => new Response('', { status: 403 }))).rejects.toThrow('GitHub answered 403.')
  })

  test('of Slack posts to the thread of its scope, and fails where Slack refuses', async () => {
    const body = { channel: 'C1', thread_ts: '12.5', text: 'Hello.' }
    const asked = [{ url: 'https://slack.com/api/chat.postMessage', authorization: 'Bearer xoxb', body }]
    expect(await requestsOf(slack, 'slack/C1/12.5', () => Response.json({ ok: true }))).toEqual(asked)
    const refused = () => Response.json({ ok: false, error: 'not_in_channel' })
    await expect(requestsOf(slack, 'slack/C1/12.5', refused)).rejects.toThrow('Slack refused the message: not_in_channel')
  })

  test('of Telegram sends to the chat of its scope', async () => {
    const body = { chat_id: '-100', text: 'Hello.' }
    const asked = [{ url: 'https://api.telegram.org/bot42:abc/sendMessage', authorization: null, body }]
    expect(await requestsOf(telegram, 'telegram/-100', () => Response.json({ ok: true }))).toEqual(asked)
  })
})
