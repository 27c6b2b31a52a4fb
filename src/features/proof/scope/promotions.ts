import type { ReflexState, ReflexVersion } from '../../../contract/reflex.ts'
import type { Stratum } from '../../../contract/certificate.ts'
import type { Risk } from '../../../contract/risk.ts'
import { type Spoken, spokenIn } from '../../../contract/words.ts'
import { tooManyFailedRuns } from '../../../reflexes/promotion.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import { actsIn, doubtIn, isRefuted, why } from '../../../evidence/certificate.ts'
import { isSame } from '../../../evidence/strata.ts'
import type { Certificates, Observed, PersonDecision } from './certificates.ts'
import type { ProvenActs } from './proven-acts.ts'
import type { TeacherWatch } from './teacher-watch.ts'
import type { Turn } from '../../../engine/turns/turn.ts'
import type { ReflexSync } from '../../../engine/reflexes/sync.ts'
import type { Move, ReflexVersions } from '../../../engine/reflexes/versions.ts'

type PromotionsParts = Pick<Ground, 'records' | 'settings' | 'features' | 'log'> & {
  programs: ReflexVersions
  reflex_sync: Pick<ReflexSync, 'moved'>
  certificates: Certificates
  proven_acts: Pick<ProvenActs, 'heldBack' | 'unproven'>
  teacher_watch: TeacherWatch
}
type Compared = Omit<Extract<Observed, { kind: 'compared' | 'audited' }>, 'kind'>

/**
 * A proven action of a version: what a person may allow. `agreed` of `compared` decisions prove it;
 * `proof` is the place of the last of their events, which another proof does not share. `chooses`:
 * it says words of its own choice.
 */
export type StateMove = {
  id: string
  version: number
  hash: string
  event_type: string
  risk: Risk
  act: string
  compared: number
  agreed: number
  proof: number
  chooses?: boolean
}
/** `why`: the evidence. `says`: the words that it chose last. */
export type PromotionQuestion = { promotion: StateMove; says: readonly Spoken[]; why: string }
export type WaitingPromotion = { approval_id: string; promotion: StateMove }
/** Asks people. `ask` returns null if the question waits already. */
type Questions = {
  ask: (unit: Unit, question: PromotionQuestion) => string | null
  waiting: (version: MovedName) => readonly WaitingPromotion[]
  withdraw: (unit: Unit, approval_id: string, reason: string) => void
}
type MovedName = Pick<ReflexVersion, 'id' | 'version'>

/** Moves versions between shadow mode and acting, by their certificates. */
export class Promotions {
  readonly #parts: PromotionsParts
  #questions: Questions = { ask: () => null, waiting: () => [], withdraw: () => {} }

  constructor(parts: PromotionsParts) {
    this.#parts = parts
    parts.certificates.onLapse((unit, version) => this.review(unit, version))
  }

  /** Counts a comparison, and promotes the version if it may act. */
  compared(unit: Unit, version: ReflexVersion, compared: Compared): void {
    this.#parts.certificates.observe(unit, version, { kind: 'compared', ...compared })
    this.judge(unit, version)
  }

  onAsk(questions: Questions): void {
    this.#questions = questions
  }

  /**
   * Promotes an agent's version once its certificate lets it act somewhere, and asks a person about
   * proven actions that one must allow. A person's version waits for its owner. A version that
   * nothing proves any more, and that nothing may prove, acts no longer.
   */
  judge(unit: Unit, judged: ReflexVersion): void {
    const { programs, records, certificates, proven_acts } = this.#parts
    this.review(unit, judged)
    // An earlier comparison of the same decision may have changed its state.
    const version = programs.find(judged) ?? judged
    const certificate = certificates.of(version)
    if (!certificate || certificate.lapsed || version.provenance.scope === null || !programs.governs(version)) return
    // Only a person can promote a demoted version.
    const waits = version.state === 'shadow' && (version.state_reason?.startsWith(TAKEN_BACK) ?? true)
    if (!waits && !(version.state === 'active' && version.by_proof)) return
    // A reason ends the trial: further agreement does not promote this version. After a lapse the
    // rejected strata may be the only ones so far, and others may still be proven.
    if (isRefuted(certificate) && actsIn(certificate).some(({ person }) => person === null)) {
      const reason = `${countsOf(actsIn(certificate))}${TOO_FEW}${waits ? 'activate it' : 'let it act on'}`
      return this.move(unit, version, { to: 'shadow', reason, by_proof: false })
    }
    if (proven_acts.heldBack(version) !== null || tooManyFailedRuns(records.of(version).metrics) !== null) return
    const proven = actsIn(certificate).filter(({ state }) => state === 'proven')
    const allowed = proven.filter((stratum) => proven_acts.unproven(version, stratum, unit.now) === null)
    for (const stratum of proven)
      if (!allowed.includes(stratum) && doubtIn(certificate, stratum) === null) this.#askFor(unit, version, stratum)
    if (waits && allowed.length > 0) this.move(unit, version, { to: 'active', reason: countsOf(allowed), by_proof: true })
  }

  /** Compares a version again that was refuted by what the slow path has now taken back. */
  takenBack(unit: Unit, version: ReflexVersion): void {
    const certificate = this.#parts.certificates.of(version)
    const wasRefuted = version.state === 'shadow' && version.state_reason?.includes(TOO_FEW) === true
    if (!certificate || !wasRefuted || isRefuted(certificate) || !this.#parts.programs.governs(version)) return
    this.move(unit, version, { to: 'shadow', reason: TAKEN_BACK, by_proof: false })
  }

  /** Withdraws the questions about a version whose evidence is no longer what was shown. */
  review(unit: Unit, version: MovedName): void {
    for (const { approval_id, promotion } of this.#questions.waiting(version)) {
      const reason = this.outdated(promotion)
      if (reason === null) continue
      this.#questions.withdraw(unit, approval_id, reason)
      const { event_type, risk, act } = promotion
      this.#parts.certificates.withdrawn(unit, version, { event_type, risk, act, approval_id, reason })
    }
  }

  /** The reason why the evidence that was shown no longer holds; null: it does. */
  outdated({ id, version, event_type, risk, act, proof, chooses = false }: StateMove): string | null {
    const certificate = this.#parts.certificates.of({ id, version })
    if (!certificate) return 'its certificate is no longer kept'
    if (certificate.lapsed) return certificate.lapsed.reason
    const stratum = certificate.strata.find((one) => isSame(one, { event_type, risk, act }))
    if (stratum?.state !== 'proven') return `its proof for ${act} on ${event_type} has ended: ${countsOf(stratum ? [stratum] : [])}`
    const doubted = doubtIn(certificate, stratum)
    if (doubted !== null) return `for ${act} on ${event_type} ${doubted}`
    if (chooses !== (stratum.says !== undefined)) return `its action ${act} on ${event_type} has said words of its own choice since`
    return stratum.to.seq === proof ? null : `its action ${act} on ${event_type} was proven again by other decisions`
  }

  /** Applies a person's decision about a proven action. */
  decided(unit: Unit, promotion: StateMove, decision: PersonDecision): void {
    const { certificates, programs } = this.#parts
    const { id, version: number, event_type, risk, act } = promotion
    if (decision.allows && this.outdated(promotion) !== null) return
    if (!certificates.decide(unit, { id, version: number }, { event_type, risk, act, ...decision })) return
    const version = programs.find({ id, version: number })
    const certificate = certificates.of({ id, version: number })
    if (!version || !certificate) return
    if (decision.allows || !isRefuted(certificate)) return this.judge(unit, version)
    const reason = `${decision.person} rejected its action ${act} on ${event_type}`
    if (programs.governs(version) && version.state !== 'retired') this.move(unit, version, { to: 'shadow', reason, by_proof: false })
  }

  #askFor(unit: Unit, version: ReflexVersion, { event_type, risk, act, says, n: compared, k: agreed, to: { seq: proof } }: Stratum): void {
    const { certificates, log } = this.#parts
    const { id, version: number, hash } = version
    const certificate = certificates.of(version)
    if (!certificate) return
    const promotion = {
      id,
      version: number,
      hash,
      event_type,
      risk,
      act,
      compared,
      agreed,
      proof,
      ...(says !== undefined && { chooses: true }),
    }
    const entry = typeof says === 'number' ? log.entry(says) : null
    const said = entry?.kind === 'reflex-compared' || entry?.kind === 'reflex-fired' ? spokenIn(entry.action) : []
    const approval_id = this.#questions.ask(unit, { promotion, says: said, why: why(certificate).join(' ') })
    if (approval_id !== null) certificates.asked(unit, version, { event_type, risk, act, approval_id })
  }

  /** True if anything here depends on the slow path being what it was. */
  get watches(): boolean {
    const { certificates, settings, programs } = this.#parts
    return settings().learning.mode !== 'off' || programs.links.length > 0 || certificates.any
  }

  /** Notes what a turn showed of the slow path. Certificates of another one lapse. */
  taught(unit: Unit, shown: Turn['shown']): void {
    const { teacher_watch, certificates, settings } = this.#parts
    const logs = settings().learning.mode !== 'off' || certificates.any
    if (teacher_watch.shown(unit, shown, { logs })) certificates.expireAll(unit)
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
    for (const feature of this.#parts.features) feature.lapsed?.(unit, version)
    this.#log(unit, version, 'suspended', reason)
  }

  #log(unit: Unit, { id, version, state }: ReflexVersion, to: ReflexState | 'suspended', reason: string): void {
    unit.log({ ...scopeHead(), kind: 'reflex-moved', reflex_id: id, version, from: state, to, reason })
  }
}

/** The reason of a version that is refuted, and of one that is compared again since it is not. */
const TOO_FEW = ': too few to '
const TAKEN_BACK = 'the slow path took back what refuted it'

const sumOf = (all: readonly Stratum[], field: 'n' | 'k'): number => all.reduce((sum, one) => sum + one[field], 0)
const countsOf = (all: readonly Stratum[]): string => `${sumOf(all, 'k')} of ${sumOf(all, 'n')} compared fires in shadow agreed`
