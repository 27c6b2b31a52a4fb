import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import type { Certificate } from '../../../contract/certificate.ts'
import { tellCertificates } from '../store/certificates.ts'
import { handleAudits } from './audit-jobs.ts'
import { Audits } from './audits.ts'
import { Certificates } from './certificates.ts'
import { Judgements } from './judgements.ts'
import { Promotions } from './promotions.ts'
import { ProvenActs } from './proven-acts.ts'
import { ShadowTrials } from './shadow.ts'
import { TeacherWatch } from './teacher-watch.ts'

export type ProofInScope = ReturnType<typeof proofOf>

/** The certificates of a scope, and what moves versions by them. */
export const proofOf = inEachScope((scope: Collaborators) => {
  const { programs, features } = scope
  const teacher_watch = new TeacherWatch(scope)
  const certificates = new Certificates({ ...scope, teacher: () => teacher_watch.current() })
  certificates.onLapse((unit, name) => {
    const version = programs.find(name)
    if (version) for (const feature of features) feature.lapsed?.(unit, version)
  })
  const proven_acts = new ProvenActs({ ...scope, certificates })
  const promotions = new Promotions({ ...scope, certificates, teacher_watch, proven_acts })
  const judgements = new Judgements({ ...scope, certificates, judge: (unit, version) => promotions.judge(unit, version) })
  const shadow_trials = new ShadowTrials({ ...scope, judgements, promotions })
  return { certificates, proven_acts, promotions, judgements, shadow_trials }
})

/** Trials in shadow mode, audits of what acts by proof, and the certificates that both change. */
export function proofInScope(scope: Collaborators): readonly ScopeFeature[] {
  const proof = proofOf(scope)
  const { certificates, proven_acts: proofs, judgements, shadow_trials } = proof
  const { outbox, db, now } = scope
  const tell = (all: readonly Certificate[]) => tellCertificates(db, scope.scope, all, now())
  outbox.source('certificates', { send: certificates.report.bind(certificates, tell) })
  handleAudits({ ...scope, judgements })
  const metrics = (version: { id: string; version: number }) => ({ certificate: certificates.of(version) })
  return [new Audits({ ...scope, judgements }), shadow_trials, { name: 'certificates', proofs, metrics }]
}
