import { expect, test } from 'vitest'
import type { Certificate, Foreseen } from '../../../src/contract/certificate.ts'
import { isRefuted, openCertificate, proceed } from '../../../src/evidence/certificate.ts'

const teacher = { by: 'model' as const, agent_version: '1', model: 'm', prompt_hash: 'p', tools_hash: 't', settings_revision: 1 }
const place = { seq: 1, at: 1 }
const where = { event_type: 'mail', risk: 'outside' as const, act: 'refund' }
const foreseen: Foreseen['acts'] = [{ event_type: 'mail', act: 'refund', n: 1000, k: 1000, from: place, to: place }]

/** The state of the act once a version with 1,000 foreseen agreements was compared. */
const after = (...agreed: boolean[]): string | undefined => compared(where, agreed).strata.find(({ act }) => act === 'refund')?.state

function compared(place_of: typeof where, agreed: readonly boolean[]): Certificate {
  let certificate: Certificate = openCertificate(
    { kind: 'reflex', id: 'learned', version: '1', hash: 'h' },
    { teacher, at: 1, least: { agreement: 0.99, support: 0 }, foreseen },
  )
  for (const [index, one] of agreed.entries())
    ({ certificate } = proceed(certificate, { ...place_of, kind: 'compared', agreed: one, seq: index + 2, at: 2, teacher }))
  return certificate
}

test('a version acts after its own first agreement, if enough was foreseen', () => {
  expect(after(true)).toBe('proven')
})

test('a version whose own comparisons disagree does not act on what was foreseen', () => {
  expect(after(false)).toBe('open')
  expect(after(false, ...Array.from({ length: 19 }, () => true))).toBe('open')
  expect(after(false, ...Array.from({ length: 20 }, () => true))).toBe('proven')
  expect(after(...Array.from({ length: 5 }, () => false))).toBe('refuted')
})

test('a version is not refuted by one act while another that was foreseen was never compared', () => {
  const others = Array.from({ length: 5 }, () => false)
  expect(isRefuted(compared({ ...where, act: 'nothing' }, others))).toBe(false)
  expect(isRefuted(compared(where, others))).toBe(true)
  const { foreseen: _none, ...alone } = compared({ ...where, act: 'nothing' }, others)
  expect(isRefuted(alone)).toBe(true)
})
