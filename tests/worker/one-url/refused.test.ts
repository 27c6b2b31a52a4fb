import { expect, test } from 'vitest'
import { call } from '../../support/http.ts'
import { freshScope, inObject, stubOf } from '../../support/scopes.ts'

const CHAT = ['openai/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hello' }] }] as const
const RESPONSES = ['openai/responses', { model: 'm', input: 'hello' }] as const
const MESSAGES = ['anthropic/messages', { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'hello' }] }] as const

const asked = ([path, json]: typeof CHAT | typeof RESPONSES | typeof MESSAGES, more: object, scope = freshScope('answered')) =>
  call(`/v1/${path}`, { json: { ...json, ...more }, headers: { 'x-reflex-scope': scope } })

test.each([
  [CHAT, { n: 2 }, 'n must be 1'],
  [CHAT, { logprobs: true }, 'logprobs is not served'],
  [CHAT, { logit_bias: { 50256: -100 } }, 'logit_bias is not served'],
  [CHAT, { functions: [{ name: 'f' }] }, 'functions is not served: send tools'],
  [CHAT, { modalities: ['text', 'audio'] }, 'answers are text'],
  [CHAT, { reasoning_effort: 'huge' }, 'the effort of reasoning is one of none, minimal'],
  [RESPONSES, { top_logprobs: 3 }, 'top_logprobs is not served'],
  [RESPONSES, { include: ['message.output_text.logprobs'] }, 'no probabilities'],
  [RESPONSES, { prompt: { id: 'pmpt_1' } }, 'no prompts are stored here'],
  [MESSAGES, { mcp_servers: [{ url: 'https://mcp.example.com' }] }, 'mcp_servers is not served'],
])('%s with %o is refused in the form of the provider', async (of, more, why) => {
  const { status, body } = await asked(of, more)
  expect({ status, error: body.error }).toMatchObject({
    status: 400,
    error: { type: 'invalid_request_error', message: expect.stringContaining(why) },
  })
})

test.each([
  [CHAT, { n: 1, logprobs: false, logit_bias: {}, modalities: ['text'], top_logprobs: null }],
  [RESPONSES, { top_logprobs: 0, include: ['reasoning.encrypted_content'], prompt: null }],
  [MESSAGES, { mcp_servers: null, thinking: { type: 'adaptive' } }],
])('%s with the defaults %o of a client is answered', async (of, more) => {
  expect(await asked(of, more)).toMatchObject({ status: 200 })
})

test.each([
  [CHAT, { reasoning_effort: 'high' }, 'high'],
  [RESPONSES, { reasoning: { effort: 'minimal' } }, 'minimal'],
  [MESSAGES, { thinking: { type: 'enabled', budget_tokens: 8000 } }, 'medium'],
  [MESSAGES, { thinking: { type: 'disabled' } }, 'none'],
  [MESSAGES, { output_config: { effort: 'max' } }, 'xhigh'],
])('%s with %o reaches the model with the effort %s', async (of, more, reasoning) => {
  const scope = freshScope('answered')
  expect(await asked(of, more, scope)).toMatchObject({ status: 200 })
  const parts = await inObject(stubOf(scope), ({ storage: { sql } }) => sql.exec('SELECT value FROM parts').toArray())
  expect(JSON.stringify(parts)).toContain(String.raw`\"reasoning\":\"${reasoning}\"`)
})
