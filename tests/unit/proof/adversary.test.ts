import { describe, expect, test } from 'vitest'
import type { Certificate, Teacher } from '../../../src/contract/certificate.ts'
import type { AuditPace } from '../../../src/contract/reports/reflex-report.ts'
import { actsIn, doubtIn, openCertificate, proceed } from '../../../src/evidence/certificate.ts'
import { countAct, countAnswer, isAwaited, occasionOf } from '../../../src/evidence/draw.ts'
import { noveltyOf, type EventTraits } from '../../../src/evidence/novelty.ts'
import { seededRandom } from '../../support/random.ts'

const teacher: Teacher = { by: 'model', agent_version: '1', model: 'm', prompt_hash: '', tools_hash: '', settings_revision: 1 }
const place = { event_type: 'mail', risk: 'outside', act: 'refund' } as const

/** The proof of a rule that refunds up to 100 euro, by 400 decisions of one sender. */
const PROVEN = ((): Certificate => {
  let certificate = openCertificate({ kind: 'reflex', id: 'r', version: '1', hash: 'h' }, { teacher, at: 0 })
  for (let seq = 1; seq <= 400; seq += 1)
    ({ certificate } = proceed(certificate, {
      ...place,
      kind: 'compared',
      agreed: true,
      traits: asks((seq * 7) % 96),
      seq,
      at: 0,
      teacher,
    }))
  return certificate
})()

function asks(amount: number, sender = 'key:desk'): EventTraits {
  return { sender, numbers: [{ place: 'text of', value: amount }] }
}

type Sent = { traits: EventTraits; wrong: boolean }
/** `late`: events before an audit is answered. `most`: wrong acts, where nothing hides them. */
type Adversary = { sends: (place: number, random: () => number) => Sent; late?: number; most?: number }
const usual: Sent = { traits: asks(50), wrong: false }

const adversaries: Record<string, Adversary> = {
  'raises the amounts beyond what the proof saw, where the rule does not ask for them': {
    sends: (at) => ({ traits: asks(150 + at), wrong: true }),
    most: 1,
  },
  'finds an amount within the range that the model decides otherwise': { sends: () => ({ traits: asks(42), wrong: true }), most: 20 },
  'sends them all at once, before an audit is answered': { sends: () => ({ traits: asks(42), wrong: true }), late: 1000, most: 20 },
  'counts, and sends a right one where an audit is due': { sends: (at) => (at % 20 === 19 ? usual : { ...usual, wrong: true }) },
  'hides one wrong in ten that are right': { sends: (at) => ({ ...usual, wrong: at % 10 === 3 }) },
  'hides among others at random': { sends: (_, random) => ({ ...usual, wrong: random() < 0.05 }) },
}

const MOST_SENT = 5000

/** The wrong acts outside until the reflex stops, long after its proof. */
function wrongActs({ sends, late = 0 }: Adversary, life: number): number {
  const random = seededRandom(life)
  let certificate = PROVEN
  const unaudited = Math.floor(random() * 20)
  let pace: AuditPace = { proof: 400, acts: 500, unaudited, judged: 500 - unaudited }
  const waiting: { due: number; act: number; sent: Sent }[] = []
  let wrong = 0
  for (let at = 0; at < MOST_SENT; at += 1) {
    for (let [one] = waiting; one && one.due <= at; [one] = waiting) {
      const seen = { ...place, traits: one.sent.traits, agreed: !one.sent.wrong, seq: 500, at: 0, teacher }
      certificate = proceed(certificate, { ...seen, kind: 'audited' }).certificate
      pace = countAnswer(pace, one.act, seen.agreed)
      waiting.shift()
    }
    const [proven] = actsIn(certificate)
    if (proven?.state !== 'proven' || doubtIn(certificate, proven) !== null) return wrong
    if (isAwaited(pace) && waiting.length > 0) continue
    const sent = sends(at, random)
    const { values } = certificate.shapes
    const is_new = values !== undefined && noveltyOf(values, sent.traits) !== null
    const drawn = occasionOf(pace, { event_id: `${life} ${at}`, salt: 'a secret', share: 0.02, risk: 'outside', is_new })
    pace = countAct(pace, drawn)
    if (sent.wrong) wrong += 1
    if (drawn !== null) waiting.push({ due: at + 1 + late, act: pace.acts, sent })
  }
  return wrong
}

const LIVES = 300
const meanOf = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length

describe('of a sender who picks what it sends after the proof, and knows all but the secret', () => {
  test.each(Object.entries(adversaries))('that %s, a reflex does at most 20 wrong acts', { tags: ['simulation'] }, (_, adversary) => {
    const all = Array.from({ length: LIVES }, (__, life) => wrongActs(adversary, life))
    expect(Math.max(...all)).toBeLessThanOrEqual(adversary.most ?? MOST_SENT)
    // On average, and three standard errors of a geometric distribution.
    expect(meanOf(all)).toBeLessThanOrEqual(20 + (3 * 20) / Math.sqrt(LIVES))
  })
})
