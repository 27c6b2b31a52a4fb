import { expect, test, vi } from 'vitest'
import { tracedFetch, traceContextOf } from '../../../src/events/traceparent.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const parent = '00f067aa0ba902b7'

test.each([
  ['a valid one', `00-${trace}-${parent}-01`, trace],
  ['a later version with more', `01-${trace}-${parent}-01-what-ever`, trace],
  ['none', null, undefined],
  ['version 00 with more', `00-${trace}-${parent}-01-x`, undefined],
  ['version ff', `ff-${trace}-${parent}-01`, undefined],
  ['upper case', `00-${trace.toUpperCase()}-${parent}-01`, undefined],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-${parent}-01`, undefined],
  ['a parent id of zeros', `00-${trace}-${'0'.repeat(16)}-01`, undefined],
  ['a short trace id', `00-${trace.slice(1)}-${parent}-01`, undefined],
  ['nonsense', 'nonsense', undefined],
])('the trace id of %s', (_name, header, expected) => {
  expect(traceContextOf(header)).toEqual(expected && { trace_id: expected, parent_id: parent, trace_flags: '01' })
})

test.each([
  ['the flags of this version', '00', '03', '03'],
  ['the first flag of a later version', '01', '0a', '00'],
])('%s are kept', (_name, version, flags, kept) => {
  expect(traceContextOf(`${version}-${trace}-${parent}-${flags}`)?.trace_flags).toBe(kept)
})

test('the state of the trace is kept and passed on, unless it is too long', async () => {
  const header = `00-${trace}-${parent}-00`
  expect(traceContextOf(header, 'vendor=1')).toMatchObject({ tracestate: 'vendor=1' })
  expect(traceContextOf(header, `vendor=${'1'.repeat(512)}`)).not.toHaveProperty('tracestate')
  expect(traceContextOf(header, 'vendor=1\n2')).not.toHaveProperty('tracestate')
  const send = vi.fn<typeof fetch>(async () => new Response())
  await tracedFetch(send, { trace_id: trace, span_id: parent }, () => ({ trace_flags: '00', tracestate: 'vendor=1' }))(
    'https://example.com/',
  )
  const [[, init] = []] = send.mock.calls
  expect(Object.fromEntries(new Headers(init?.headers))).toEqual({ traceparent: header, tracestate: 'vendor=1' })
})

const many = (count: number) => Array.from({ length: count }, (_, index) => `k${index}=1`).join(',')

test.each([
  ['a key with a space', 'foo =1,bar=2', 'bar=2'],
  ['a key in upper case', 'FOO=1,bar=2', 'bar=2'],
  ['a key that is too long', `${'k'.repeat(257)}=1,bar=2`, 'bar=2'],
  ['a value with =', 'foo=1=1,bar=2', 'bar=2'],
  ['no value', 'foo=,bar=2', 'bar=2'],
  ['no key', '=1,bar=2', 'bar=2'],
  ['a value beyond ASCII', 'foo=ü,bar=2', 'bar=2'],
  ['a key that came before', 'bar=2,bar=3', 'bar=2'],
])('a member with %s is left out of the state', (_name, given, kept) => {
  expect(traceContextOf(`00-${trace}-${parent}-00`, given)?.tracestate).toBe(kept)
})

test.each([
  ['spaces and tabs around members', ' foo=1 \t,\tbar=2 ', 'foo=1,bar=2'],
  ['empty members', 'foo=1,,  ,bar=2,', 'foo=1,bar=2'],
  ['keys of tenants, and spaces within values', 'fw529a3039@dt=a b,0/*=~', 'fw529a3039@dt=a b,0/*=~'],
  ['32 members', many(32), many(32)],
  ['33 members', many(33), undefined],
  ['no valid member', 'FOO', undefined],
])('a state with %s is read as W3C says', (_name, given, read) => {
  expect(traceContextOf(`00-${trace}-${parent}-00`, given)?.tracestate).toBe(read)
})

test('requests carry the span, unless they name one', async () => {
  const send = vi.fn<typeof fetch>(async () => new Response())
  const traced = tracedFetch(send, { trace_id: trace, span_id: parent })
  await traced('https://example.com/', { headers: { accept: 'text/plain' } })
  await traced('https://example.com/', { headers: { traceparent: 'own' } })
  await traced(new Request('https://example.com/', { headers: { accept: 'text/html' } }))
  const sent = send.mock.calls.map(([, init]) => Object.fromEntries(new Headers(init?.headers)))
  const traceparent = `00-${trace}-${parent}-01`
  expect(sent).toEqual([{ accept: 'text/plain', traceparent }, { traceparent: 'own' }, { accept: 'text/html', traceparent }])
})
