import { APICallError } from '@ai-sdk/provider'
import { RetryError } from 'ai'
import { describe, expect, test } from 'vitest'
import { isPlatformFault, isRetryable, isTransient, modelFaultOf } from '../../src/base/faults.ts'

const now = Date.parse('2026-11-21T05:00:00.000Z')

function callError(
  fields: { statusCode?: number; message?: string; responseHeaders?: Record<string, string>; responseBody?: string } = {},
) {
  return new APICallError({ message: 'the server is sad', url: 'https://model.test', requestBodyValues: {}, ...fields })
}

describe('a status of the model provider', () => {
  test.each([400, 401, 402, 403, 404, 405, 413, 422])('%i is a refused request', (statusCode) => {
    expect(modelFaultOf(callError({ statusCode }), { now })).toMatchObject({ fault: 'refused', status: statusCode })
  })

  test.each([408, 409, 425, 429, 500, 502, 503, 504, 529])('%i is a provider that is not available', (statusCode) => {
    expect(modelFaultOf(callError({ statusCode }), { now })).toMatchObject({ fault: 'unavailable', status: statusCode })
  })

  test('200 with an answer that cannot be read is none of its faults', () => {
    expect(modelFaultOf(callError({ statusCode: 200 }), { now, asked: true })).toBeNull()
  })
})

describe('an error of the provider is found', () => {
  const inner = callError({ statusCode: 429 })
  test.each([
    ['in a chain of causes', new Error('outer', { cause: new Error('middle', { cause: inner }) })],
    [
      'in the RetryError of the AI SDK',
      new RetryError({ message: 'gave up', reason: 'maxRetriesExceeded', errors: [new Error('x'), inner] }),
    ],
    ['in an AggregateError', new AggregateError([new Error('x'), inner])],
    ['as a copy without its prototype', { name: 'AI_APICallError', message: 'slow down', statusCode: 429 }],
    ['as an error of the AI gateway', Object.assign(new Error('slow down'), { name: 'GatewayRateLimitError', statusCode: 429 })],
    ['as an error of Workers AI', Object.assign(new Error('slow down'), { name: 'WorkersAIGatewayError', status: 429 })],
  ])('%s', (_, error) => {
    expect(modelFaultOf(error, { now })).toMatchObject({ fault: 'unavailable', status: 429 })
  })

  test('also in a cycle of causes', () => {
    const error = new Error('outer')
    error.cause = new Error('inner', { cause: error })
    expect(modelFaultOf(error, { now, asked: true })).toBeNull()
  })
})

describe('a connection that failed', () => {
  test.each([
    ['a lost connection', new Error('Network connection lost.')],
    ['a refused one', new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) })],
    ['one that workerd could not make', new Error('internal error; reference = hem5p8s1abc')],
    ['a timeout of its own', new DOMException('The operation timed out.', 'TimeoutError')],
  ])('is the provider when the model was asked, and no fault of a model elsewhere: %s', (_, error) => {
    expect(modelFaultOf(error, { now, asked: true })).toMatchObject({ fault: 'unavailable', status: null })
    expect(modelFaultOf(error, { now })).toBeNull()
  })

  test("a tool's own status is no fault of a model", () => {
    expect(modelFaultOf(Object.assign(new Error('the ticket system is busy'), { statusCode: 503 }), { now })).toBeNull()
  })
})

describe('Retry-After', () => {
  test.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'Retry-After': ' 2.5 ' }, 2500],
    [{ 'retry-after': 'Sat, 21 Nov 2026 05:00:30 GMT' }, 30_000],
    [{ 'retry-after': 'Sat, 21 Nov 2026 04:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '1500', 'retry-after': '2' }, 1500],
    [{ 'retry-after': 'soon' }, null],
    [{}, null],
  ])('%j is %j ms', (responseHeaders, retry_after_ms) => {
    expect(modelFaultOf(callError({ statusCode: 429, responseHeaders }), { now })).toMatchObject({ retry_after_ms })
  })
})

test("the provider's text is included, even if its client could not parse it, and is never long", () => {
  const detailOf = (message: string, responseBody: string) =>
    modelFaultOf(callError({ statusCode: 401, message, responseBody }), { now })?.detail
  expect(detailOf('Incorrect API key', '{"error":{"message":"Incorrect API key"}}')).toBe('Incorrect API key')
  expect(detailOf('Unauthorized', '<html>no such customer</html>')).toBe('Unauthorized: <html>no such customer</html>')
  expect(detailOf('x'.repeat(5000), '')).toHaveLength(1000)
})

describe('the other classes', () => {
  test.each([
    'Network connection lost.',
    'Durable Object reset because its code was updated.',
    'This script has been upgraded. Please send a new request to connect to the new version.',
    "The Durable Object's code has been updated, this version can no longer access storage.",
  ])('the platform: %s', (message) => {
    expect(isPlatformFault(new Error('outer', { cause: new Error(message) }))).toBe(true)
    expect(isPlatformFault(new Error(`my own: ${message}`))).toBe(false)
    expect(isTransient(new Error(message))).toBe(true)
  })

  test('a reset of the object is no fault of the model, whatever it was asked', () => {
    const reset = new Error('Durable Object reset because its code was updated.')
    expect(modelFaultOf(reset, { now, asked: true })).toBeNull()
  })

  test('a tool says itself whether it may be repeated, or by its status', () => {
    expect(isRetryable(Object.assign(new Error(), { retryable: true }))).toBe(true)
    expect(isRetryable(Object.assign(new Error(), { status: 503, retryable: false }))).toBe(false)
    expect(isRetryable(Object.assign(new Error(), { statusCode: 429 }))).toBe(true)
    expect(isRetryable(Object.assign(new Error(), { statusCode: 504 }))).toBe(false)
    expect(isRetryable(Object.assign(new Error(), { statusCode: 504 }), { keyed: true })).toBe(true)
    expect(isRetryable(new Error('no'))).toBe(false)
  })
})
