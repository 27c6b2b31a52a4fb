import { describe, expect, test } from 'vitest'
import { authorOf } from '../../../src/features/decisions/agent/middle.ts'
import type { Action, SequenceAct } from '../../../src/contract/action.ts'
import type { Certificate, Teacher } from '../../../src/contract/certificate.ts'
import type { ReflexVersion } from '../../../src/contract/reflex.ts'
import { defaultSettings, type Settings } from '../../../src/contract/settings/settings.ts'
import type { ComparedWords } from '../../../src/contract/words.ts'
import { allow, openCertificate, proceed, reject } from '../../../src/evidence/certificate.ts'
import { actNameOf } from '../../../src/contract/act-name.ts'
import { MayAct } from '../../../src/engine/reflexes/may-act.ts'
import type { Database } from '../../../src/kernel/unit.ts'
import type { Records } from '../../../src/engine/reflexes/stats.ts'
import type { AuditPace } from '../../../src/contract/reports/reflex-report.ts'
import { ProvenActs } from '../../../src/features/proof/scope/proven-acts.ts'

const teacher: Teacher = { by: 'model', agent_version: '1', model: 'a', prompt_hash: 'p', tools_hash: 't', settings_revision: 3 }
const least = { agreement: 0.95, support: 0 }
const where = { event_type: 'note', risk: 'inside', act: 'reply' } as const
const reply: Action = { action_type: 'reply', content: 'hello' }
const act = { event_type: 'note', action: reply }
const version: ReflexVersion = { ...authorOf({ name: 'x' } as never, 1, 'h'), id: 'greet', by_proof: true }

function proven(agreed = 100, words?: ComparedWords, act: string = where.act): Certificate {
  let certificate = openCertificate({ kind: 'reflex', id: 'greet', version: '1', hash: 'h' }, { teacher, at: 0, least })
  for (let seq = 1; seq <= agreed; seq += 1)
    ({ certificate } = proceed(certificate, { kind: 'compared', ...where, act, agreed: true, seq, at: 1, teacher, words }))
  return certificate
}

/** A scope in which everything lets the version act, except for what `given` says. */
type Given = {
  licence?: string
  mode?: Settings['learning']['mode']
  replies?: Settings['learning']['replies']
  certificate?: Certificate | null
  now?: Teacher
  pace?: Partial<AuditPace>
  waiting?: number
  suspended?: boolean
  chain?: ReflexVersion | null
}
function partsWith({
  licence,
  mode = 'auto',
  replies = 'heard',
  certificate = proven(),
  now = teacher,
  pace = {},
  waiting = 1,
  suspended = false,
  chain = version,
}: Given): { may_act: MayAct; proofs: ProvenActs } {
  const settings = () => ({ ...defaultSettings, learning: { ...defaultSettings.learning, mode, replies } })
  const database = { first: () => ({ n: waiting }) } as unknown as Database
  const records = { pace: (_: object, __: string, proof: number) => ({ proof, acts: 0, unaudited: 0, ...pace }) } as unknown as Records
  const proofs = new ProvenActs({ settings, certificates: { of: () => certificate, teacher: now, least }, records, database })
  const may_act = new MayAct({
    programs: { find: () => chain ?? undefined, isSuspended: () => suspended },
    features: [{}, { mayUse: () => licence ?? null }],
    toolbox: { all: {}, keyOf: () => null, isFinal: () => false },
    log: { clean: (value) => value },
  })
  may_act.proveBy(proofs)
  return { may_act, proofs }
}
const scopeWith = (given: Given): MayAct => partsWith(given).may_act

describe('a version that acts by proof', () => {
  const used_up = 'the licence of the deal d is used up: it was for 1 actions'
  const learned = { ...version, provenance: { ...version.provenance, run: 'r' } }
  const other = { ...teacher, model: 'b' }
  const reasons: [string, Given][] = [
    [used_up, { licence: used_up, mode: 'shadow', certificate: null }],
    ['the setting learning.mode is off', { mode: 'off', certificate: null, now: other }],
    ['it was never compared with a decision in this scope', { certificate: null, now: other }],
    ['the model of the slow path changed', { certificate: proven(1), now: other }],
    ['ann rejected its action reply on note', { mode: 'propose', certificate: reject(proven(), where, 'ann') }],
    ['its action reply on note is proven: a person must allow it', { mode: 'propose' }],
  ]

  test.each(reasons)('may not act for the first of its reasons: %s', (reason, given) => {
    expect(scopeWith(given).mayAct(learned, act, 1)).toBe(reason)
  })

  test.each(['outside', 'final'] as const)('is in doubt for the same reason before it is known what it does: %s', (risk) => {
    const at = { ...where, risk, act: 'refund', seq: 200, at: 1, teacher }
    let certificate = openCertificate({ kind: 'reflex', id: 'greet', version: '1', hash: 'h' }, { teacher, at: 0, least })
    for (let seq = 1; seq <= 100; seq += 1) ({ certificate } = proceed(certificate, { ...at, kind: 'compared', agreed: true, seq }))
    ;({ certificate } = proceed(certificate, { ...at, kind: 'audited', agreed: false }))
    expect(scopeWith({ certificate }).mayAct(learned, { ...act, action: null }, 1)).toMatch(/^for refund on note /)
  })

  test('waits for a person who approves its words, if the setting leaves them to one', () => {
    const noted: SequenceAct = { action_type: 'set_scratch', key: 'k', value: 1 }
    const spoken: Action = { action_type: 'sequence', acts: [noted, { action_type: 'reply', content: 'Done.' }] }
    const silent: Action = { action_type: 'sequence', acts: [noted] }
    const any: Action = { ...spoken, any_words: true }
    const certificate = proven(100, undefined, 'note + reply')
    const scope = scopeWith({ replies: 'by_person', certificate })
    for (const own of [version, learned]) {
      expect(scope.mayAct(own, { ...act, action: spoken }, 1)).toBe('its action note + reply on note is proven: a person must allow it')
      expect(scope.mayAct(own, { ...act, action: silent }, 1)).toMatch(/^0 of 0 decisions for note on note/)
      expect(scopeWith({ certificate }).mayAct(own, { ...act, action: spoken }, 1)).toBeNull()
      expect(scopeWith({ certificate }).mayAct(own, { ...act, action: any }, 1)).toMatch(/is proven: a person must allow it$/)
      expect(scopeWith({ replies: 'exact', certificate }).mayAct(own, { ...act, action: any }, 1)).toBeNull()
      const allowed = scopeWith({ mode: 'propose', certificate: allow(certificate, { ...where, act: 'note + reply' }, 'ann') })
      expect(allowed.mayAct(own, { ...act, action: spoken }, 1)).toBeNull()
      expect(allowed.mayAct(own, { ...act, action: any }, 1)).toMatch(/is proven: a person must allow it$/)
    }
  })

  test('waits for a person wherever its words were compared as any that will do', () => {
    const certificate = proven(100, { replies: 'by_person', says: 1 })
    const scope = scopeWith({ replies: 'by_person', certificate })
    expect(scope.mayAct(version, act, 1)).toBe('its action reply on note is proven: a person must allow it')
    expect(scopeWith({ replies: 'by_person', certificate: allow(certificate, where, 'ann') }).mayAct(version, act, 1)).toBeNull()
  })

  test('is not proven by decisions that were compared under another setting of replies', () => {
    const certificate = proven(100, { replies: 'ignore', says: null })
    expect(scopeWith({ replies: 'ignore', certificate }).mayAct(version, act, 1)).toBeNull()
    const changed = scopeWith({ replies: 'exact', certificate })
    expect(changed.mayAct(version, act, 1)).toBe('the setting learning.replies changed')
    expect(changed.expired(version, 1)).toBe('the setting learning.replies changed')
  })

  test('may act where none of them holds', () => {
    expect(scopeWith({}).mayAct(learned, act, 1)).toBeNull()
    expect(scopeWith({}).mayAct(learned, { ...act, action: null }, 1)).toBeNull()
  })

  test('waits for verdicts on twenty acts outside, while an audit may give one; a queued one does not', () => {
    const block: Action = { action_type: 'emit', event: { type: 'blocked' } } as never
    const outside = { event_type: 'note', risk: 'outside', act: actNameOf(block) } as const
    let certificate = proven(0)
    for (let seq = 1; seq <= 100; seq += 1)
      ({ certificate } = proceed(certificate, { kind: 'compared', ...outside, agreed: true, seq, at: 1, teacher }))
    const given = { certificate, pace: { acts: 25, judged: 5 } }
    const may = (more: Given) => scopeWith({ ...given, ...more }).mayAct(learned, { event_type: 'note', action: block }, 1)
    expect(may({})).toBe('20 of its acts wait for the answer to an audit')
    expect(may({ pace: { acts: 20 } })).toBe('20 of its acts wait for the answer to an audit')
    expect([may({ pace: { acts: 25, judged: 6 } }), may({ waiting: 0 })]).toEqual([null, null])
    expect(scopeWith(given).mayStillAct(learned, outside, 1)).toBeNull()
    expect(scopeWith({ pace: { acts: 25 } }).mayAct(learned, act, 1)).toBeNull()
  })

  test('runs as long as some action of it may happen: before it is known, any risk will do', () => {
    const { may_act, proofs } = partsWith({ certificate: proven(1) })
    expect(may_act.mayAct(learned, { ...act, action: null }, 1)).toBe(proofs.unproven(learned, { event_type: 'note', risk: 'inside' }, 1))
  })
})

test('a version that acts by proof does not act where nothing proves it', () => {
  const may_act = new MayAct({
    programs: { find: () => version, isSuspended: () => false },
    features: [],
    toolbox: { all: {}, keyOf: () => null, isFinal: () => false },
    log: { clean: (value) => value },
  })
  const answers = [may_act.mayAct(version, act, 1), may_act.mayStillAct(version, where, 1), may_act.expired(version, 1)]
  expect(new Set(answers)).toEqual(new Set(['this deployment proves no reflexes']))
})

describe('a queued action', () => {
  test('is counted on its licence already, and asks the chain and the proof again', () => {
    const still = (given: Given) => scopeWith(given).mayStillAct(version, where, 1)
    expect(still({ licence: 'used up' })).toBeNull()
    expect(still({ chain: null, certificate: null })).toBe('reflex greet@1 has left the chain')
    expect(still({ chain: { ...version, state: 'shadow' }, certificate: null })).toBe('reflex greet@1 no longer acts')
    expect(still({ suspended: true, certificate: null })).toBe('reflex greet@1 no longer acts')
    expect(still({ certificate: null })).toBe('it was never compared with a decision in this scope')
  })
})

test('a version that a person activated needs neither licence nor proof', () => {
  const own = { ...version, by_proof: false }
  const scope = scopeWith({ licence: 'used up', mode: 'shadow', certificate: null, chain: own })
  const answers = [scope.mayAct(own, act, 1), scope.mayStillAct(own, where, 1), scope.expired(own, 1), scope.idle(own, 1)]
  expect(answers).toEqual([null, null, null, null])
})
