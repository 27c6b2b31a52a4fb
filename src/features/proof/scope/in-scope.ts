import { v7 as uuidv7 } from 'uuid'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import type { Certificate } from '../../../contract/certificate.ts'
import { tellCertificates } from '../../../store/artifacts/certificates.ts'
import { countAnswer } from '../../../evidence/draw.ts'
import { agentOwner, type Decision, type ReflexVersion } from '../../../contract/reflex.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { Audits, type Audit } from './audits.ts'
import { disputing, type Disputing, handleDisputes } from './disputes.ts'
import { AGAIN_MS, MOST_WAIT_MS, ownerIn, pauseBefore, termsOf } from './dry-answers.ts'
import { Certificates } from './certificates.ts'
import { Judgements } from './judgements.ts'
import { Promotions } from './promotions.ts'
import { ProvenActs } from './proven-acts.ts'
import { ShadowTrials } from './shadow.ts'
import { TeacherWatch } from './teacher-watch.ts'
import { actOwners, sequenceKey } from '../../../engine/effects/effect-journal.ts'
import { DECISION_ASKED } from '../../../contract/decision-asked.ts'
import type { Drift } from '../../learning/contract/learner-api.ts'
import type { Job } from '../../../engine/jobs.ts'
import { childAt, childHead, spanOf } from '../../../traces/ids.ts'
import { addedUsage } from '../../../traces/usage.ts'
import type { Usage } from '../../../contract/log-entry.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { type DryAnswer, type DryTurns, isDecided } from '../../../engine/turns/dry/dry-turn.ts'

type AuditJobsParts = Pick<Lanes, 'jobs' | 'unit' | 'now' | 'programs' | 'records' | 'features' | 'env' | 'scope'> & {
  dispute: Disputing
  dry_turns: DryTurns
  judgements: Judgements
}

/**
 * Audits decisions, one at a time. If the object dies before the unit that records the answer, the
 * job asks again: a dry turn may be repeated, and its usage counts each time.
 */
function handleAudits(parts: AuditJobsParts): void {
  const { jobs, unit } = parts
  jobs.handle<Audit>('audit', {
    work: 'audit',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: (job) => audit(job, parts),
    giveUp: ({ key }) => unit((ending) => void jobs.done(ending, 'audit', key)),
  })
  jobs.handle<Drift>('learn-again', {
    work: 'audit',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: (job) => learnAgain(job, parts),
    giveUp: ({ key }) => unit((ending) => void jobs.done(ending, 'learn-again', key)),
  })
}

/** Starts a run of the Learner. A run that is already in progress does not know of this drift. */
async function learnAgain({ key, payload }: Job<Drift>, { env, scope, jobs, unit }: AuditJobsParts): Promise<{ again_ms: number } | void> {
  const started = await env.LEARNER.getByName(scope).start({ scope, started_by: 'drift', by: 'audits', drifted: [payload] })
  if (started.already_running) {
    unit((waiting) => jobs.progressed(waiting, 'learn-again', key))
    return { again_ms: AGAIN_MS.unknown }
  }
  unit((ending) => void jobs.done(ending, 'learn-again', key))
  return undefined
}

async function audit({ key, payload }: Job<Audit>, parts: AuditJobsParts): Promise<{ again_ms: number } | void> {
  const { jobs, unit, now, programs, judgements, dry_turns, dispute } = parts
  const { reflex_id, version: number, view, head } = payload
  const version = programs.find({ id: reflex_id, version: number })
  // Without a proof there is nothing to audit, such as after an alarm.
  if (!version || !judgements.isProven(version, payload)) return unit((ending) => void jobs.done(ending, 'audit', key))
  if (payload.event_type === DECISION_ASKED) return auditAsked({ key, payload, version }, parts)
  // The outputs of a sequence, which answer the slow path, are known when it has ended.
  const acts = sequenceKey(payload.log_seq)
  if (payload.own.action_type === 'sequence' && (jobs.has('action', acts) || jobs.has('plan', acts))) {
    unit((waiting) => jobs.progressed(waiting, 'audit', key))
    return { again_ms: AGAIN_MS.least }
  }
  const owners = payload.own.action_type === 'sequence' ? actOwners(acts) : []
  const { asked, answer, usage } = await answerTo({ turn_id: key, head, view, answers_of: owners }, payload, parts)
  const again_ms = pauseBefore(answer, { decided_at: view.decided_at, now: now() })
  if (again_ms !== null) {
    unit((waiting) => jobs.progressed(waiting, 'audit', key))
    return { again_ms }
  }
  unit((ending) => {
    jobs.done(ending, 'audit', key)
    dry_turns.log(ending, asked, answer, 'audit')
    const decided: Decision | null = isDecided(answer) ? { by: 'turn', acts: answer.acts } : null
    const terms = termsOf(answer, payload)
    const agreed = answered(ending, version, { ...payload, head: childHead(head), decided, usage, terms }, parts)
    if (agreed !== false) return
    const { event_type, seq, own, signs, words } = payload
    const disputed = { reflex_id, version: number, event_type, seq, own, of: 'audit' as const, view: asked.view, head, answers_of: owners }
    dispute(ending, { ...disputed, ...(words && { words }), ...(signs && { signs }) })
  })
  return undefined
}

type AuditAsked = Parameters<DryTurns['ask']>[0]
/** `usage`: of all questions of the audit. */
type AuditAnswer = { asked: AuditAsked; answer: DryAnswer; usage: Usage }

/**
 * The answer of the slow path that is compared. Words that name nothing of the ignored event may be
 * about one that waited for its decision beside it: then the slow path is asked again without such
 * events, so that neither stands for the other. Its first answer is kept meanwhile.
 */
async function answerTo(asked: AuditAsked, audit: Audit, { dry_turns, jobs, unit }: AuditJobsParts): Promise<AuditAnswer> {
  if (audit.apart) return askApart(asked, audit.apart, dry_turns)
  const answer = await dry_turns.ask(asked)
  const { usage } = answer
  const view = ownerIn(answer, audit) === 'words' ? dry_turns.viewOf(audit.seq, asked.view) : null
  if (view === null) return { asked, answer, usage }
  const apart = { seqs: view.saw.seqs, usage }
  unit((keeping) => {
    dry_turns.log(keeping, asked, answer, 'audit')
    jobs.advanced(keeping, 'audit', asked.turn_id, { ...audit, apart } satisfies Audit)
  })
  return askApart(asked, apart, dry_turns)
}

/** Its span is derived, so that all tries have the same one: the last of them logs it. */
async function askApart(first: AuditAsked, { seqs, usage }: NonNullable<Audit['apart']>, dry_turns: DryTurns): Promise<AuditAnswer> {
  const head = childAt(first.head, spanOf(`apart:${first.turn_id}`))
  const view = { ...first.view, saw: { ...first.view.saw, seqs } }
  const asked = { ...first, turn_id: uuidv7(), head, view }
  const answer = await dry_turns.ask(asked)
  return { asked, answer, usage: addedUsage(usage, answer.usage) }
}

type Answered = Parameters<Judgements['audited']>[2] & Pick<Audit, 'pace'>

/** An answer that could not be compared leaves the acts before it without a verdict. */
function answered(unit: Unit, version: ReflexVersion, given: Answered, { judgements, records }: AuditJobsParts): boolean | null {
  const agreed = judgements.audited(unit, version, given)
  const { kind, proof, act } = given.pace ?? {}
  if (agreed === null || kind === undefined || proof === undefined || act === undefined) return agreed
  const pace = records.pace(version, kind, proof)
  // A later proof counts its own acts.
  if (act <= pace.acts) records.paced(version, kind, countAnswer(pace, act, agreed))
  return agreed
}

type Auditing = { key: string; payload: Audit; version: NonNullable<ReturnType<AuditJobsParts['programs']['find']>> }

/** A request for a decision is audited by the decision model, which would have answered it. */
async function auditAsked({ key, payload, version }: Auditing, parts: AuditJobsParts): Promise<{ again_ms: number } | void> {
  const { jobs, unit, now, features } = parts
  const deciding = features.find((feature) => feature.again)
  if (!deciding?.again) return unit((ending) => void jobs.done(ending, 'audit', key))
  const answer = await deciding.again(payload.seq)
  if (answer.waits && now() - payload.view.decided_at < MOST_WAIT_MS) {
    unit((waiting) => jobs.progressed(waiting, 'audit', key))
    return { again_ms: AGAIN_MS.unknown }
  }
  unit((ending) => {
    jobs.done(ending, 'audit', key)
    const { decided, usage } = answer
    answered(ending, version, { ...payload, head: childHead(payload.head), decided, usage, terms: {} }, parts)
  })
  return undefined
}

export type ProofInScope = ReturnType<typeof proofOf>

/** The certificates of a scope, and what moves versions by them. */
export const proofOf = inEachScope((scope: Collaborators) => {
  const { programs, features } = scope
  const teacher_watch = new TeacherWatch(scope)
  const owner = agentOwner(scope.scope)
  const isLearned = ({ owner_id, provenance, state }: ReflexVersion): boolean =>
    provenance.run !== undefined && owner_id === owner && (state === 'shadow' || state === 'active')
  const learned = () => programs.all.filter(isLearned)
  const certificates = new Certificates({ ...scope, learned, teacher: () => teacher_watch.current() })
  certificates.onLapse((unit, name) => {
    const version = programs.find(name)
    if (version) for (const feature of features) feature.lapsed?.(unit, version)
  })
  const proven_acts = new ProvenActs({ ...scope, certificates })
  const promotions = new Promotions({ ...scope, certificates, teacher_watch, proven_acts })
  const judge = promotions.judge.bind(promotions)
  const judgements = new Judgements({ ...scope, certificates, judge, takenBack: promotions.takenBack.bind(promotions) })
  const dispute = disputing(scope)
  const shadow_trials = new ShadowTrials({ ...scope, judgements, promotions, dispute })
  return { certificates, proven_acts, promotions, judgements, shadow_trials, dispute }
})

/** Trials in shadow mode, audits of what acts by proof, and the certificates that both change. */
export function proofInScope(scope: Collaborators): readonly ScopeFeature[] {
  const proof = proofOf(scope)
  const { certificates, proven_acts: proofs, judgements, shadow_trials, dispute } = proof
  const { outbox, db, now } = scope
  const tell = (all: readonly Certificate[]) => tellCertificates(db, scope.scope, all, now())
  outbox.source('certificates', { send: certificates.report.bind(certificates, tell), changed: () => certificates.untold.size > 0 })
  handleAudits({ ...scope, judgements, dispute })
  handleDisputes({ ...scope, judgements })
  const metrics = (version: { id: string; version: number }) => ({ certificate: certificates.of(version) })
  const secret = scope.env.REFLEX_ADMIN_KEY ?? ''
  return [new Audits({ ...scope, judgements, secret, sandbox: isolateSandbox }), shadow_trials, { name: 'certificates', proofs, metrics }]
}
