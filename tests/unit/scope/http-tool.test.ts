import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { outsideTools } from '../../../src/contract/settings/outside-tools.ts'
import type { Env } from '../../../src/env.ts'
import { httpToolOf } from '../../../src/tools/http-tool.ts'

const refund = {
  name: 'http.refund',
  description: 'Refunds',
  method: 'POST',
  url: 'https://a.example/{{order}}?n={{amount}}',
  input: {
    type: 'object',
    properties: {
      order: { type: 'string' },
      amount: { type: 'number', minimum: 0 },
      now: { type: 'boolean', default: true },
      tags: { type: 'array', items: { type: 'string' } },
      to: { type: 'object', properties: { iban: { type: 'string' } }, required: ['iban'] },
      cc: { type: 'string' },
    },
    required: ['order', 'amount', 'tags', 'to'],
  },
  body: { amount: '{{amount}}', now: '{{now}}', tags: '{{tags}}', to: '{{to}}', cc: '{{cc?}}', note: 'refund {{amount}} {{cc?}}' },
} as const
const schema = outsideTools.http_tools
const whole = { order: 'a/1', amount: 12.5, tags: ['late', 'x'], to: { iban: 'DE1' } }

async function sent(input: Record<string, unknown>): Promise<{ url: string; body: unknown }> {
  const requests: { url: string; body: unknown }[] = []
  const definition = httpToolOf(schema.parse([refund])[0] ?? raise(), { allowed_hosts: ['a.example'] })
  const parsed = definition.input.parse(input)
  const send = (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
    requests.push({
      url: url instanceof Request ? url.url : String(url),
      body: typeof init?.body === 'string' ? JSON.parse(init.body) : null,
    })
    return Promise.resolve(Response.json({}))
  }
  await definition.execute(parsed, {
    env: {} as Env,
    fetch: send,
    scope: 'a',
    parameters: {},
    signal: new AbortController().signal,
    idempotence_key: null,
    now: () => 0,
  })
  return requests[0] ?? raise()
}
const raise = (): never => {
  throw new Error('nothing was there')
}

describe('an HTTP tool with a schema of its input', () => {
  test('sends values of their types, and leaves out what is absent', async () => {
    expect(await sent(whole)).toEqual({
      url: 'https://a.example/a%2F1?n=12.5',
      body: { amount: 12.5, now: true, tags: ['late', 'x'], to: { iban: 'DE1' }, note: 'refund 12.5 ' },
    })
    expect((await sent({ ...whole, now: false, cc: 'ada' })).body).toMatchObject({ now: false, cc: 'ada', note: 'refund 12.5 ada' })
  })

  test.each([
    ['a text for a number', { ...whole, amount: '12.5' }],
    ['a number below the least', { ...whole, amount: -1 }],
    ['an item of another type', { ...whole, tags: [1] }],
    ['an object without a required field', { ...whole, to: {} }],
    ['no value', { order: 'a' }],
    ['a field that nobody declared', { ...whole, more: 1 }],
  ])('takes no %s', async (_, input) => {
    await expect(sent(input)).rejects.toBeInstanceOf(z.ZodError)
  })

  test.each([
    ['a slot that is no property', { url: 'https://a.example/{{other}}' }, 'has no property other, which {{other}} stands for'],
    ['a slot that may be absent', { body: { cc: '{{cc}}' } }, 'cc may be absent: write {{cc?}}, which leaves it out then, or require it'],
    ['a schema of another type', { input: { type: 'array' } }, 'must describe an object'],
    ['a reference', { input: { type: 'object', properties: { a: { $ref: '#' } } } }, 'must not use the keyword $ref'],
    ['a key that may lack a part', { idempotence_key: 'refund:{{order}}:{{cc?}}' }, 'calls with and without it would have one key'],
  ])('is refused for %s', (_, change, message) => {
    const parsed = schema.safeParse([{ ...refund, ...change }])
    expect(parsed.error?.issues.map((issue) => issue.message)).toContainEqual(expect.stringContaining(message))
  })

  test('without one takes texts, of which those with ? may be absent', () => {
    const { input: _input, ...plain } = refund
    const { input } = httpToolOf({ ...plain, body: { to: '{{to}}', cc: '{{cc?}}' } }, { allowed_hosts: [] })
    const given = { order: 'a', amount: '1', to: 'x' }
    expect(input.parse(given)).toEqual(given)
    expect(input.safeParse({ ...given, amount: 1 }).success).toBe(false)
  })
})

test.each([
  [undefined, 30_000, 15_000],
  [undefined, 5000, 5000],
  [8000, 5000, 8000],
])(
  'an HTTP tool with the time limit %s, in a scope with %i ms, is cut off by the effect lane after %i ms',
  (timeout_ms, scope_ms, expected) => {
    const setting = {
      name: 'http.a',
      description: 'a',
      method: 'POST',
      url: 'https://a.example/',
      ...(timeout_ms ? { timeout_ms } : {}),
    } as const
    expect(httpToolOf(setting, { allowed_hosts: ['a.example'], effect_timeout_ms: scope_ms }).timeout_ms).toBe(expected)
  },
)
