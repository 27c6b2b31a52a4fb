import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import type { Certificate, Risk, Stratum } from '../../contract/reports/certificate.ts'
import type { LicenceUse } from '../replication/licence-use.ts'
import { tooManyFailedRuns } from '../../reflexes/promotion.ts'
import { scopeHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import type { Ground } from '../storage/wiring.ts'
import { why } from '../../proof/certificate.ts'
import type { Certificates, Observed, PersonDecision } from './certificates.ts'
import type { Teachers } from './teachers.ts'
import type { Turn } from '../turns/turn.ts'
import type { ReflexSync } from './sync.ts'
import type { Move, ReflexVersions } from './versions.ts'

type Parts = Pick<Ground, 'records' | 'settings'> & {
  programs: ReflexVersions
  reflex_sync: Pick<ReflexSync, 'moved'>
  certificates: Certificates
  licence_use: Pick<LicenceUse, 'lapsed'>
  teachers: Teachers
}
type Compared = Omit<Extract<Observed, { kind: 'compared' | 'audited' }>, 'kind'>

/** A proven action of a version: what a person may allow. */
export type Promotion = { id: string; version: number; hash: string; event_type: string; risk: Risk }
/** `why`: the evidence. */
export type PromotionQuestion = { promotion: Promotion; why: string }

/** Moves versions between shadow mode and acting, by their certificates. */
export class Promotions {
  readonly #parts: Parts
  #ask: (unit: Unit, question: PromotionQuestion) => string | null = () => null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Counts a comparison, and promotes the version if it may act. */
  compared(unit: Unit, version: ReflexVersion, compared: Compared): void {
    this.#parts.certificates.observe(unit, version, { kind: 'compared', ...compared })
    this.judge(unit, version)
  }

  /** Registers what asks a person. It returns null if the question waits already. */
  onAsk(ask: (unit: Unit, question: PromotionQuestion) => string | null): void {
    this.#ask = ask
  }

  /**
   * Promotes an agent's version once its certificate lets it act somewhere, and asks a person about
   * proven actions that one must allow. A person's version waits for its owner.
   */
  judge(unit: Unit, judged: ReflexVersion): void {
    const { programs, records, certificates } = this.#parts
    // An earlier comparison of the same decision may have changed its state.
    const version = programs.find(judged) ?? judged
    const certificate = certificates.of(version)
    if (!certificate || certificate.lapsed || version.provenance.scope === null || !programs.governs(version)) return
    // Only a person can promote a demoted version.
    const waits = version.state === 'shadow' && version.state_reason === null
    if (!waits && !(version.state === 'active' && version.by_proof)) return
    const { metrics } = records.of(version)
    const { agreed, disagreed } = metrics.shadow
    const shown = `${agreed} of ${agreed + disagreed} compared fires in shadow agreed`
    // A reason ends the trial: further agreement does not promote this version. After a lapse the
    // rejected strata may be the only ones so far, and others may still be proven.
    if (waits && isRefuted(certificate) && certificate.strata.some(({ person }) => person === null))
      return this.move(unit, version, { to: 'shadow', reason: `${shown}: too few to activate it`, by_proof: false })
    if (certificates.heldBack(version) !== null || tooManyFailedRuns(metrics) !== null) return
    const proven = certificate.strata.filter(({ state }) => state === 'proven')
    const may_act = proven.filter((stratum) => certificates.obstacle(version, { ...stratum, at: unit.now }) === null)
    for (const stratum of proven) if (!may_act.includes(stratum)) this.#askFor(unit, version, stratum)
    if (waits && may_act.length > 0) this.move(unit, version, { to: 'active', reason: shown, by_proof: true })
  }

  /** Applies a person's decision about a proven action. */
  decided(unit: Unit, { id, version: number, event_type, risk }: Promotion, decision: PersonDecision): void {
    const { certificates, programs } = this.#parts
    if (!certificates.decide(unit, { id, version: number }, { event_type, risk, ...decision })) return
    const version = programs.find({ id, version: number })
    const certificate = certificates.of({ id, version: number })
    if (!version || !certificate) return
    if (decision.allows || !isRefuted(certificate)) return this.judge(unit, version)
    const reason = `${decision.person} rejected its action on ${event_type}`
    if (programs.governs(version) && version.state !== 'retired') this.move(unit, version, { to: 'shadow', reason, by_proof: false })
  }

  #askFor(unit: Unit, version: ReflexVersion, { event_type, risk }: Stratum): void {
    const { certificates } = this.#parts
    const { id, version: number, hash } = version
    const certificate = certificates.of(version)
    if (!certificate) return
    const approval_id = this.#ask(unit, { promotion: { id, version: number, hash, event_type, risk }, why: why(certificate).join(' ') })
    if (approval_id !== null) certificates.asked(unit, version, { event_type, risk, approval_id })
  }

  /** True if anything here depends on the slow path being what it was. */
  get watches(): boolean {
    const { certificates, settings, programs } = this.#parts
    return settings().learning.mode !== 'off' || programs.links.length > 0 || certificates.any
  }

  /** Notes what a turn showed of the slow path. Certificates of another one lapse. */
  taught(unit: Unit, shown: Turn['shown']): void {
    const { teachers, certificates, settings } = this.#parts
    const logs = settings().learning.mode !== 'off' || certificates.any
    if (teachers.shown(unit, shown, { logs })) certificates.expireAll(unit)
  }

  /** Logs that a certificate ended, at the first event that it would have decided on. */
  expire(unit: Unit, version: ReflexVersion): void {
    this.#parts.certificates.expire(unit, version)
  }

  move(unit: Unit, version: ReflexVersion, move: Move): void {
    const { programs, reflex_sync } = this.#parts
    programs.move(version, move)
    reflex_sync.moved(unit, version, move)
    this.#log(unit, version, move.to, move.reason)
  }

  /** Stops a version that this scope does not govern in this scope only. */
  suspend(unit: Unit, version: ReflexVersion, reason: string): void {
    this.#parts.programs.suspend(unit, version, reason)
    this.#parts.licence_use.lapsed(unit, version)
    this.#log(unit, version, 'suspended', reason)
  }

  #log(unit: Unit, { id, version, state }: ReflexVersion, to: ReflexState | 'suspended', reason: string): void {
    unit.log({ ...scopeHead(), kind: 'reflex-moved', reflex_id: id, version, from: state, to, reason })
  }
}

/** True if nothing of it is proven or may still be. */
const isRefuted = ({ strata }: Certificate): boolean => strata.length > 0 && strata.every(({ state }: Stratum) => state === 'refuted')
