import { actNameOf } from '../../../contract/act-name.ts'
import type { Action } from '../../../contract/action.ts'
import type { Outcome } from '../../../contract/event-record.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import type { Decision, ReflexVersion, ComparisonTerms } from '../../../contract/reflex.ts'
import type { AuditEntry, AuditOccasion, JudgedBy } from '../../../contract/feedback.ts'
import type { Event } from '../../../core/event.ts'
import type { Risk } from '../../../contract/risk.ts'
import { isAudited } from '../../../evidence/draw.ts'
import { isLeft } from '../../../evidence/branches.ts'
import type { EventTraits, TaughtValues } from '../../../evidence/novelty.ts'
import { stratumOf } from '../../../evidence/strata.ts'
import { shapeOf } from '../../../evidence/shape.ts'
import { comparedWords, type Replies } from '../../../contract/words.ts'
import type { Toolbox } from '../../../agent/toolbox.ts'
import { agreedIn } from '../../../reflexes/agreement.ts'
import { eventHead, headOf, scopeHead } from '../../../engine/log/spans.ts'
import { childHead } from '../../../traces/ids.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { CertificateMove } from '../../../evidence/certificate.ts'
import type { Certificates, Observed } from './certificates.ts'
import { riskIn } from '../../../agent/risk.ts'
import type { ReflexVersions } from '../../../engine/reflexes/versions.ts'

/** An act of a reflex. `log_seq`: its entry `reflex-fired`. `occasion`: why it is audited. */
export type OwnAct = {
  event_type: string
  seq: number
  own: Action
  log_seq: number
  occasion?: AuditOccasion
  traits?: EventTraits
  /** Unknown of what people say, and in jobs of an earlier version. */
  signs?: string[]
}
/** A proof that reaches an act. `seq`: the place of the event that completed it. */
type Reached = { seq: number; risk: Risk; values: TaughtValues | undefined }
export type JudgedAct = {
  head: EntryHead
  judged_by: JudgedBy
  by: string | null
  decided: Decision | null
  agreed: boolean | null
  reason?: string
  usage?: Extract<AuditEntry, { kind: 'reflex-audited' }>['usage']
  /** The setting by which the words of an audit were compared. */
  replies?: Replies | undefined
}
type JudgementsParts = Pick<Ground, 'log' | 'database' | 'settings' | 'jobs' | 'records'> & {
  programs: ReflexVersions
  certificates: Certificates
  toolbox: Toolbox
  /** Moves the version as its certificate says. */
  judge: (unit: Unit, version: ReflexVersion) => void
  /** Compares a version again that only disagreements refuted which are taken back. */
  takenBack: (unit: Unit, version: ReflexVersion) => void
}
type JudgedVersion = Pick<ReflexVersion, 'id' | 'version'>

/** The state key of the places in the log since which audits of a version disagree. */
const SINCE = 'disagreed_since'

/**
 * Logs judgements of the slow path and of people about acts of reflexes, for their certificates.
 * An alarm sends the event type back to shadow mode and has the Learner learn again.
 */
export class Judgements {
  readonly #parts: JudgementsParts

  constructor(parts: JudgementsParts) {
    this.#parts = parts
  }

  /** True if the version is proven on such an event. */
  isProven(version: JudgedVersion, act: Pick<OwnAct, 'event_type' | 'own'>): boolean {
    return this.proofOf(version, act) !== null
  }

  /** True if a comparison of such an act counts: of what is refuted or has drifted, none does. */
  counts(version: JudgedVersion, { event_type, own, signs = [] }: Pick<OwnAct, 'event_type' | 'own' | 'signs'>): boolean {
    const certificate = this.#parts.certificates.of(version)
    if (!certificate || certificate.lapsed) return true
    const stratum = stratumOf(certificate, this.#placeOf(event_type, own))
    return stratum !== null && stratum.state !== 'refuted' && !isLeft(stratum, signs)
  }

  /** The proof of a version that reaches such an act; null if none does. */
  proofOf(version: JudgedVersion, { event_type, own }: Pick<OwnAct, 'event_type' | 'own'>): Reached | null {
    const certificate = this.#parts.certificates.of(version)
    if (!certificate || certificate.lapsed) return null
    const place = this.#placeOf(event_type, own)
    const stratum = stratumOf(certificate, place)
    return stratum?.state === 'proven' ? { seq: stratum.to.seq, risk: place.risk, values: certificate.shapes.values } : null
  }

  /** The place by which certificates are asked about such an act. */
  #placeOf(event_type: string, own: OwnAct['own']) {
    return { event_type, risk: riskIn(this.#parts.toolbox, own), act: actNameOf(own), seq: 0, at: 0 }
  }

  /** Compares an act with the slow path's decision in a dry turn; null if it cannot be compared. */
  audited(
    unit: Unit,
    version: ReflexVersion,
    { decided, terms, ...given }: OwnAct & Pick<JudgedAct, 'head' | 'decided' | 'usage' | 'replies'> & { terms: ComparisonTerms },
  ): boolean | null {
    const { keyOf } = this.#parts.toolbox
    const agreed = decided && agreedIn({ version, action: given.own, decision: decided, seen: new Map(), ...terms }, keyOf).agreed
    this.judged(unit, version, { ...given, judged_by: 'audit', by: null, decided, agreed })
    return agreed
  }

  judged(
    unit: Unit,
    version: ReflexVersion,
    { event_type, seq, own, log_seq, head, traits, signs, replies, ...verdict }: OwnAct & JudgedAct,
  ): void {
    const { log, certificates } = this.#parts
    const { id: reflex_id, version: number } = version
    const { decided, agreed } = verdict
    const shown = log.clean({ own, decided }, head.trace_id) as Pick<JudgedAct, 'decided'> & { own: Action }
    unit.log({ ...head, kind: 'reflex-audited', reflex_id, version: number, event_type, ...verdict, ...shown })
    if (agreed === null) return
    const since = this.#since(unit, version, { agreed, log_seq })
    const before = certificates.of(version)
    const changes = certificates.observe(unit, version, {
      kind: 'audited',
      event_type,
      risk: riskIn(this.#parts.toolbox, own),
      act: actNameOf(own),
      agreed,
      seq,
      traits,
      signs,
      words: replies && comparedWords(own, replies, log_seq),
      head,
    })
    this.#follow(unit, version, { stands: !agreed && certificates.of(version) !== before, changes, since })
  }

  /** Counts a comparison in shadow mode after a proof, as an audit. */
  compared(
    unit: Unit,
    version: ReflexVersion,
    { log_seq, ...seen }: Omit<Extract<Observed, { agreed: boolean }>, 'kind'> & { log_seq: number },
  ): void {
    const { certificates } = this.#parts
    const since = this.#since(unit, version, { agreed: seen.agreed, log_seq })
    const before = certificates.of(version)
    const changes = certificates.observe(unit, version, { kind: 'compared', ...seen })
    this.#follow(unit, version, { stands: !seen.agreed && certificates.of(version) !== before, changes, since })
  }

  /** Takes back a disagreement that the slow path did not repeat. */
  retracted(unit: Unit, version: ReflexVersion, seen: Omit<Extract<Observed, { kind: 'retracted' }>, 'kind'>): void {
    this.#parts.certificates.observe(unit, version, { kind: 'retracted', ...seen })
    this.#parts.takenBack(unit, version)
    this.#parts.judge(unit, version)
  }

  /** A slow path that decides one act otherwise may have changed others. `stands`: it counted. */
  #follow(
    unit: Unit,
    version: ReflexVersion,
    { stands, changes, since }: { stands: boolean; changes: readonly CertificateMove[]; since: number },
  ): void {
    if (stands) this.#parts.records.auditNext(version)
    this.#parts.judge(unit, version)
    if (changes.some(({ kind }) => kind === 'drifted')) this.learnAgain(unit, version, since)
  }

  /** Counts a judgement of a person or a later turn; false if the version has no proof. */
  said(unit: Unit, version: ReflexVersion, given: OwnAct & Omit<JudgedAct, 'decided'>): boolean {
    if (!this.isProven(version, given)) return false
    this.judged(unit, version, { ...given, decided: null })
    return true
  }

  /** Counts that a later turn or a person overruled what a version did about an event. */
  overruled(unit: Unit, version: ReflexVersion, event_id: string, said: Pick<JudgedAct, 'judged_by' | 'by' | 'reason'>): void {
    const { database, log } = this.#parts
    const row = database.first<JudgementRow>('SELECT seq, scope, type, trace_id, outcome FROM events WHERE id = ?', event_id)
    const outcome = row?.outcome ? (JSON.parse(row.outcome) as Outcome) : null
    if (!row || outcome?.by !== 'reflex' || outcome.reflex_id !== version.id || outcome.version !== version.version) return
    const { log_seq } = outcome
    const fired = log.entry(log_seq)
    if (fired?.kind !== 'reflex-fired') return
    const head = childHead(eventHead({ ...row, id: event_id }))
    this.said(unit, version, { ...said, event_type: row.type, seq: row.seq, own: fired.action, log_seq, head, agreed: false })
  }

  /** Logs that acts of reflexes were overruled that no longer act, so that it is learned from. */
  overruledLater(
    unit: Unit,
    { acting, ...said }: { acting: readonly string[]; turn_id: string | null; reason: string },
    fits: (action: Action, event_id: string) => boolean,
  ): void {
    const { records } = this.#parts
    for (const reflex_id of records.acted().filter((id) => !acting.includes(id))) {
      const { event_id, version } = records.overrule(reflex_id, fits) ?? {}
      if (event_id === undefined || version === undefined) continue
      unit.log({ ...scopeHead(), event_ids: [event_id], kind: 'reflex-overruled', reflex_id, version, ...said })
    }
  }

  /** Counts that a person rejected a run that a reflex had asked for. */
  rejected(unit: Unit, { why, head }: { why: string; head: EntryHead }, said: Pick<JudgedAct, 'by' | 'reason'>): void {
    const [, id, number] = ASKED_BY.exec(why) ?? []
    const version = id === undefined ? undefined : this.#parts.programs.find({ id, version: Number(number) })
    const [event_id] = head.event_ids
    if (version && event_id !== undefined) this.overruled(unit, version, event_id, { ...said, judged_by: 'rejected' })
  }

  /**
   * Guards a version that has a proof: if many of the events that it decides on have a shape that
   * its proof has not seen, it goes back to shadow mode and is learned again. Known shapes are
   * sampled, so that few events write.
   */
  guarded(unit: Unit, version: ReflexVersion, event: Event, seq: number): void {
    const { certificates, settings } = this.#parts
    if (settings().learning.mode === 'off') return
    const certificate = certificates.of(version)
    if (!certificate || certificate.bound === null || Object.keys(certificate.shapes.taught).length === 0) return
    const unseen = !Object.hasOwn(certificate.shapes.taught, shapeOf(event))
    if (!unseen && !isAudited(event.id, { share: 1 / SAMPLED, salt: 'shape' })) return
    const head = childHead(headOf(event))
    const changes = certificates.observe(unit, version, { kind: 'shape', unseen, weight: unseen ? 1 : SAMPLED, seq, head })
    // Its earlier decisions are still right: none is forgotten.
    if (changes.some(({ kind }) => kind === 'shapes_changed')) this.learnAgain(unit, version, 0)
  }

  /** Has the Learner replace what a version decided since a place in the log. */
  learnAgain(unit: Unit, { id, version }: Pick<ReflexVersion, 'id' | 'version'>, since_seq: number): void {
    const { settings, jobs } = this.#parts
    if (settings().learning.mode === 'off') return
    jobs.add(unit, { kind: 'learn-again', key: `${id}@${version}:${since_seq}`, payload: { id, version, since_seq } })
  }

  /** The place of the first disagreement since the last hundred that agreed. */
  #since(unit: Unit, { id, version }: ReflexVersion, { agreed, log_seq }: { agreed: boolean; log_seq: number }): number {
    const all = this.#parts.database.read<Record<string, { seq: number; agreed: number }>>(SINCE, {})
    const name = `${id}@${version}`
    const known = all[name]
    if (agreed && !known) return log_seq
    if (agreed && known && known.agreed >= MOST_AGREED) {
      const { [name]: _gone, ...rest } = all
      unit.write(SINCE, rest)
      return log_seq
    }
    const since = { seq: known?.seq ?? log_seq, agreed: agreed ? (known?.agreed ?? 0) + 1 : 0 }
    unit.write(SINCE, { ...all, [name]: since })
    return since.seq
  }
}

type JudgementRow = { seq: number; scope: string; type: string; trace_id: string; outcome: string | null }

/** The reason of a reflex's proposal, as `perform-action` words it. */
const ASKED_BY = /^reflex (.+)@(\d+)$/

/** The certificate counts one event in so many of known shapes. */
const SAMPLED = 8

/** Agreements in a row after which an earlier disagreement was an exception. */
const MOST_AGREED = 100
