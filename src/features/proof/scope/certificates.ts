import type { EntryHead } from '../../../contract/log-entry.ts'
import type { Certificate, CertificateChange, Foreseen, Teacher } from '../../../contract/certificate.ts'
import { firstGenerationOf } from '../../../contract/reflex.ts'
import type { Risk } from '../../../contract/risk.ts'
import {
  allow,
  expiry,
  type CertificateMove,
  type Observation,
  openCertificate,
  proceed,
  reject,
  rejectedStrata,
  teacherChange,
} from '../../../evidence/certificate.ts'
import { countsOfOthers, isSame, REST, type StratumPlace } from '../../../evidence/strata.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { Unit } from '../../../kernel/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'

/** Versions whose certificates a scope keeps; those that were issued first are deleted. */
const MOST = 1000

type CertifiedVersion = { id: string; version: number; hash: string }
type CertifiedName = Pick<CertifiedVersion, 'id' | 'version'>
type CertificateRow = { reflex_id: string; version: number; certificate: string }
/** An observation by the scope's own clock, of the slow path as it is now. `head`: its span. */
export type Observed = (Observation extends infer One
  ? One extends Observation
    ? Omit<One, 'teacher' | 'at' | 'least' | 'others' | 'again'>
    : never
  : never) & {
  head?: EntryHead
}

export type PersonDecision = { person: string; allows: boolean; reason: string | null; approval_id: string }

/** `learned`: the versions in the chain that learning wrote. */
type CertificatesParts = Pick<Ground, 'database' | 'settings'> & { teacher: () => Teacher; learned: () => readonly CertifiedName[] }
type Beside = Pick<Observation, 'others'> & { again?: boolean }
type OnLapse = (unit: Unit, version: CertifiedName) => void

/**
 * The evidence for versions of reflexes in this scope, one certificate for each. A change is
 * written and logged in the unit of the decision that it follows from.
 */
export class Certificates {
  readonly #parts: CertificatesParts
  #all: Map<string, Certificate> | null = null
  readonly #onLapse: OnLapse[] = []
  /** Names of those that D1 may lack: all of them, on waking. */
  readonly untold = new Set<string>()

  constructor(parts: CertificatesParts) {
    this.#parts = parts
  }

  /** Null if the version was never compared with a decision here. */
  of(version: CertifiedName): Certificate | null {
    return this.#known.get(nameOf(version)) ?? null
  }

  /** Registers what follows the end of a certificate, in its unit. */
  onLapse(follow: OnLapse): void {
    this.#onLapse.push(follow)
  }

  /** The slow path as it is now. */
  get teacher(): Teacher {
    return this.#parts.teacher()
  }

  /** The bounds that the settings demand now. */
  get least(): Certificate['least'] {
    const { min_agreement: agreement, min_support: support } = this.#parts.settings().learning
    return { agreement, support }
  }

  get any(): boolean {
    return this.#known.size > 0
  }

  all(): Certificate[] {
    return Array.from(this.#known.values())
  }

  /**
   * Opens the certificate of a version, unless it has one that holds. Rejections by persons outlive
   * the certificate.
   */
  open(
    unit: Unit,
    version: CertifiedVersion,
    { head, ...given }: Partial<Pick<Parameters<typeof openCertificate>[1], 'foreseen' | 'shapes'>> & { head?: EntryHead | undefined } = {},
  ): Certificate {
    const known = this.of(version)
    if (known && !known.lapsed) return known
    const before = known && { noise: known.noise, baseline: known.shapes.baseline, shapes: known.shapes, strata: rejectedStrata(known) }
    const certificate = openCertificate(
      { kind: 'reflex', id: version.id, version: String(version.version), hash: version.hash },
      { teacher: this.teacher, at: unit.now, least: this.least, ...before, ...given },
    )
    this.#write(unit, version, certificate)
    this.#log(unit, version, { change: 'issued', reason: known ? 'its last certificate lapsed' : 'it is compared with decisions', head })
    return certificate
  }

  /** Opens the certificate of a learned version with what was foreseen, by the same teacher. */
  begin(unit: Unit, version: CertifiedVersion, { teacher, acts: foreseen, shapes }: Foreseen): void {
    if (teacherChange(teacher, this.teacher) === null) this.open(unit, version, { foreseen, shapes })
  }

  /** Counts an observation. The changes are logged; the caller follows them up. */
  observe(unit: Unit, version: CertifiedVersion, { head, ...seen }: Observed): CertificateMove[] {
    this.expire(unit, version)
    // Only a comparison begins a proof: what is not proven is neither audited nor guarded.
    const before = seen.kind === 'compared' ? this.open(unit, version, { head }) : this.of(version)
    if (!before) return []
    const beside = seen.kind === 'shape' ? {} : this.#beside(version, before, { ...seen, at: unit.now })
    const { certificate, changes } = proceed(before, { ...seen, ...beside, at: unit.now, teacher: this.teacher, least: this.least })
    if (certificate !== before) this.#write(unit, version, certificate)
    for (const { kind, reason, ...where } of changes) this.#log(unit, version, { change: kind, reason, ...where, head })
    return changes
  }

  /**
   * The counts of the other learned reflexes, and if one was compared with this decision: rules
   * share a proof as the acts of a table do. Other versions of a reflex, and what follows it, have
   * the same decisions and never count. A version that learning did not write has no others.
   */
  #beside(version: CertifiedName, { noise, others }: Certificate, { at, seq, risk }: { at: number; seq: number; risk: Risk }): Beside {
    const learned = this.#parts.learned()
    const isLearned = learned.some((one) => nameOf(one) === nameOf(version))
    if (!isLearned && !others) return {}
    const { replies } = this.#parts.settings().learning
    const newest = isLearned ? newestBeside(learned, version.id) : []
    const inForce = newest
      .flatMap((one) => this.of(one) ?? [])
      .filter((one) => expiry(one, { at, teacher: this.teacher, replies }) === null)
    const again = inForce.some(({ strata }) => strata.some((one) => one.act !== REST && one.n > 0 && one.to.seq === seq))
    return { others: countsOfOthers(inForce, risk, { least: this.least, noise }), again }
  }

  /** Replicates those that changed, for the outbox. */
  async report(send: (certificates: readonly Certificate[]) => Promise<void>): Promise<void> {
    const known = this.#known
    const names = Array.from(this.untold)
    if (names.length === 0) return
    this.untold.clear()
    try {
      await send(names.flatMap((name) => known.get(name) ?? []))
    } catch (error) {
      for (const name of names) this.untold.add(name)
      throw error
    }
  }

  /** Ends a certificate: the version is compared with decisions again. */
  lapse(unit: Unit, version: CertifiedName, reason: string): void {
    const known = this.of(version)
    if (!known || known.lapsed) return
    this.#write(unit, version, { ...known, lapsed: { at: unit.now, reason }, n: 0, k: 0, bound: null })
    this.#log(unit, version, { change: 'lapsed', reason })
  }

  /** Ends a certificate that has expired, or of which the slow path or the setting has changed. */
  expire(unit: Unit, version: CertifiedName): void {
    const known = this.of(version)
    if (!known || known.lapsed) return
    const { replies } = this.#parts.settings().learning
    const reason = expiry(known, { at: unit.now, teacher: this.teacher, replies })
    if (reason !== null) this.lapse(unit, version, reason)
  }

  expireAll(unit: Unit): void {
    for (const { subject } of this.all()) this.expire(unit, { id: subject.id, version: Number(subject.version) })
  }

  /** A person's decision about a proven action. False if the proof has ended in the meantime. */
  decide(unit: Unit, version: CertifiedName, { person, allows, reason, approval_id, ...where }: StratumPlace & PersonDecision): boolean {
    this.expire(unit, version)
    const known = this.of(version)
    const isProven = known?.strata.some((one) => isSame(one, where) && one.state === 'proven')
    if (!known || known.lapsed || !isProven) return false
    this.#write(unit, version, (allows ? allow : reject)(known, where, person))
    const change = allows ? 'allowed' : 'rejected'
    const said = `${person} ${change} its action ${where.act} on ${where.event_type}${reason === null ? '' : `: ${reason}`}`
    this.#log(unit, version, { change, ...where, approval_id, reason: said })
    return true
  }

  asked(unit: Unit, version: CertifiedName, { approval_id, ...where }: StratumPlace & { approval_id: string }): void {
    this.#log(unit, version, {
      change: 'asked',
      ...where,
      approval_id,
      reason: `a person must allow its action ${where.act} on ${where.event_type}`,
    })
  }

  withdrawn(unit: Unit, version: CertifiedName, about: StratumPlace & { approval_id: string; reason: string }): void {
    this.#log(unit, version, { change: 'withdrawn', ...about })
  }

  get #known(): Map<string, Certificate> {
    if (this.#all) return this.#all
    const rows = this.#parts.database.all<CertificateRow>('SELECT reflex_id, version, certificate FROM certificates ORDER BY issued_at')
    this.#all = new Map(rows.map((row) => [nameOf({ ...row, id: row.reflex_id }), JSON.parse(row.certificate) as Certificate]))
    for (const name of this.#all.keys()) this.untold.add(name)
    return this.#all
  }

  #write(unit: Unit, { id, version }: CertifiedName, certificate: Certificate): void {
    const known = this.#known
    const before = known.get(nameOf({ id, version }))
    known.set(nameOf({ id, version }), certificate)
    this.untold.add(nameOf({ id, version }))
    const sql = `INSERT INTO certificates (reflex_id, version, certificate, issued_at) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT DO UPDATE SET certificate = ?3, issued_at = ?4`
    unit.all(sql, id, version, JSON.stringify(certificate), certificate.issued_at)
    if (certificate.lapsed && before?.lapsed == null) for (const follow of this.#onLapse) follow(unit, { id, version })
    if (!before && known.size > MOST) this.#forgetFirst(unit)
  }

  #forgetFirst(unit: Unit): void {
    const sql = `DELETE FROM certificates WHERE (reflex_id, version) IN
      (SELECT reflex_id, version FROM certificates ORDER BY issued_at LIMIT 1) RETURNING reflex_id AS id, version`
    for (const gone of unit.all<CertifiedName>(sql)) this.#known.delete(nameOf(gone))
  }

  #log(
    unit: Unit,
    { id, version }: CertifiedName,
    { change, reason, event_type = null, risk = null, act = null, approval_id, head }: Logged,
  ): void {
    const certificate = this.of({ id, version })
    if (!certificate) return
    const about = {
      reflex_id: id,
      version,
      change,
      event_type,
      risk,
      act,
      reason,
      ...(approval_id !== undefined && { approval_id }),
      certificate,
    }
    unit.log({ ...(head ?? scopeHead()), kind: 'certificate-changed', ...about })
  }
}

type Logged = {
  change: CertificateChange
  reason: string
  event_type?: string | null
  risk?: Risk | null
  act?: string | null
  approval_id?: string
  head?: EntryHead | undefined
}

const nameOf = ({ id, version }: CertifiedName): string => `${id}@${version}`

/** The newest version of each reflex that is no generation of this id. */
function newestBeside(learned: readonly CertifiedName[], id: string): CertifiedName[] {
  const first = firstGenerationOf(id)
  const newest = new Map<string, CertifiedName>()
  for (const one of learned) if (one.version > (newest.get(one.id)?.version ?? 0)) newest.set(one.id, one)
  return Array.from(newest.values()).filter((one) => firstGenerationOf(one.id) !== first)
}
