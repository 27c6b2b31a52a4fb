import { describe, expect, test } from 'vitest'
import { decide } from '../../../src/skills/gate/gate.ts'
import { deployManifest } from './deploy-manifest.ts'
import { gateRequest } from './gate-request.ts'

const blackboard = gateRequest().blackboard
const secretTag = { name: 'image_tag', type: 'string', required: true, secret: true }

describe('a value that looks like a secret', () => {
  test.each([
    ['a private key', '-----BEGIN RSA PRIVATE KEY-----\nMIIE', 'private_key'],
    ['an AWS key', 'use AKIAIOSFODNN7EXAMPLE please', 'token'],
    ['a GitHub token', 'https://x:ghp_0123456789abcdefghijABCDEFGHIJ012345@github.com', 'token'],
    ['a JWT', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN', 'token'],
    ['a bearer header', 'Authorization: Bearer abcdefghijklmnopqrstuvwx', 'token'],
    ['an API key', 'sk-proj-abcdefghijklmnopqrst', 'token'],
    ['a password', 'password=hunter22', 'password'],
    ['a password in a URL', 'postgres://me:hunter2@db/x', 'password'],
    ['a card number', 'pay with 4111 1111 1111 1111', 'card_number'],
    ['a card number with more behind it', '4111-1111-1111-1111 12/27', 'card_number'],
    ['a field of that name', { deep: [{ clientSecret: 'x' }] }, 'password'],
    ['a card number as a number', { n: 5555555555554444 }, 'card_number'],
  ])('is denied: %s, by the name of the slot alone', (_, value, looks_like) => {
    const manifest = deployManifest({ 'signature.inputs.1.type': typeof value === 'string' ? 'string' : 'object' })
    const decision = decide(gateRequest({ manifest, inputs: { app_name: 'a', image_tag: value } }))
    expect(decision).toMatchObject({ verdict: 'deny', needs: [{ need: 'slot_without_secret', slot: 'image_tag', looks_like }] })
    expect(JSON.stringify(decision)).not.toContain(JSON.stringify(value).slice(1, -1))
  })

  test.each([
    'acr.io/pay:abc',
    'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    '20250810123015123',
    '4111 1111 1111 1112',
    'the password policy',
    'token ring',
    '01993f2e-7c00-7000-8000-000000000001',
    'task-runner-configuration-file-of-the-team',
    'http://localhost:8787/a:b@c',
  ])('is not: %s', (value) => {
    expect(decide(gateRequest({ inputs: { app_name: 'a', image_tag: value } })).verdict).toBe('allow')
  })

  test('is an e-mail address only where the policy says so', () => {
    const request = gateRequest({ inputs: { app_name: 'mail <ann@example.org>', image_tag: 'a@b' } })
    expect(decide(request).verdict).toBe('allow')
    expect(decide({ ...request, manifest: deployManifest({ 'policy.pii': 'deny' }) })).toMatchObject({
      verdict: 'deny',
      needs: [{ need: 'slot_without_secret', slot: 'app_name', looks_like: 'email' }],
    })
  })

  test('is found in good time in a text that was made for the search', { tags: ['timed'] }, () => {
    const hostile = [
      'eyJ'.repeat(20_000),
      '1 '.repeat(30_000),
      'a@'.repeat(30_000),
      '://a:'.repeat(12_000),
      'password '.repeat(7000),
      'sk-'.repeat(20_000),
    ]
    const started = performance.now()
    for (const text of hostile) decide(gateRequest({ inputs: { app_name: 'a', image_tag: text } }))
    expect(performance.now() - started).toBeLessThan(2000)
  })

  test('does not come out of a decision: neither by an invariant, nor by a probe', () => {
    const manifest = deployManifest({
      'signature.inputs.1': secretTag,
      'preconditions.invariants': ["inputs.image_tag == 'x'", 'work[image_tag] == 1', 'scan(args)'],
    })
    const seen: unknown[] = []
    const scan = (args: unknown) => {
      seen.push(args)
      return JSON.stringify(args)
    }
    const bound = { ...blackboard, work: { image_tag: 'hush-hush' } }
    const decision = decide(gateRequest({ manifest, inputs: { app_name: 'a' }, blackboard: bound, probes: { scan } }))
    expect(seen).toEqual([{ app_name: 'a', image_tag: 'hush-hush' }])
    expect(decision).toMatchObject({ verdict: 'refused', probes: [{ args: [{ app_name: 'a', image_tag: '[secret]' }] }] })
    expect(JSON.stringify(decision)).not.toContain('hush')
  })
})
