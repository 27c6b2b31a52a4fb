import { authorOf } from '../agent/middle.ts'
import { riskIn } from '../../../agent/risk.ts'
import { actNameOf } from '../../../contract/act-name.ts'
import type { Agreement } from '../../../contract/agreement.ts'
import { jsonHash } from '../../../base/hash.ts'
import type { Action } from '../../../contract/action.ts'
import type { Left } from '../contract/entry.ts'
import type { Act, ReflexVersion } from '../../../contract/reflex.ts'
import type { Risk } from '../../../contract/risk.ts'
import type { DecisionModelSetting } from '../contract/setting.ts'
import type { Event } from '../../../core/event.ts'
import { decisionModelName } from '../models/resolve.ts'
import { isAudited, shareFor } from '../../../evidence/draw.ts'
import { learnThenTest, type Scored } from '../../../evidence/learn-then-test.ts'
import { barAt, boundsOf } from '../../../evidence/e-process.ts'
import { agreedIn } from '../../../reflexes/agreement.ts'
import { eventHead } from '../../../engine/log/spans.ts'
import type { ProofInScope } from '../../proof/scope/in-scope.ts'
import type { Reflexes } from '../../../engine/reflexes/wiring.ts'
import type { Claimed } from '../../../engine/inbox/inbox.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Unit } from '../../../kernel/unit.ts'

/** Candidate thresholds, fixed in advance: 0.50, 0.51, … 0.99. */
const GRID = Array.from({ length: 50 }, (_, cell) => (50 + cell) / 100)
const cellOf = (score: number): number => Math.min(GRID.length - 1, Math.max(0, Math.floor(score * 100) - 50))
/** Decisions before the first look at them. Each further look takes twice as many. */
const FIRST_LOOK = 100
const DELTA = 0.05
/** Decisions that wait for their turn. */
const MOST_WAITING = 1000
const KEY = 'decision_model'

/** `cells`: agreed and disagreed decisions by probability, until a threshold is chosen. */
type Proof = { hash: string; version: number; cells: [number, number][]; looks: number; threshold: number | null }
type Waiting = { event_type: string; score: number; action: Action; version: number; audited: boolean }
type MiddleProofParts = Pick<Reflexes, 'database' | 'env' | 'settings' | 'toolbox'> & Pick<ProofInScope, 'certificates' | 'proven_acts'>

/**
 * Proves the probability above which the decision model decides as the turn does. Each event that
 * is left to a turn is compared with what the turn did. Learn-then-Test chooses the threshold, with
 * a look at each doubling of the decisions; the looks share the error. Then the decisions above it,
 * on later events only, are evidence for a certificate, as for a reflex. After a refutation
 * the choice begins again. Once it acts, a share of the events is left to the turn, as an audit.
 */
export class MiddleProof implements ScopeFeature {
  readonly name = 'decision proof'
  readonly #parts: MiddleProofParts
  #proof: Proof
  /** By the place of the event. Lost in a crash: then its decision is not compared. */
  readonly #waiting = new Map<number, Waiting>()

  constructor(parts: MiddleProofParts) {
    this.#parts = parts
    this.#proof = parts.database.read<Proof>(KEY, fresh('', 0))
  }

  /** The version of the decision, which changes with its setting, its model or its threshold. */
  author(setting: DecisionModelSetting): ReflexVersion {
    const hash = this.#hashOf(setting)
    const { version } = this.#proof.hash === hash ? this.#proof : { version: this.#proof.version + 1 }
    return authorOf(setting, version, hash)
  }

  threshold(setting: DecisionModelSetting): number | null {
    return setting.threshold ?? (this.#proof.hash === this.#hashOf(setting) ? this.#proof.threshold : null)
  }

  /** The reason why a sure action is left to the turn; null if it may be carried out. */
  obstacle(setting: DecisionModelSetting, event: Event, action: Action, at: number): { left: Left; detail: string } | null {
    const risk = this.#riskOf(action)
    // A person chose the threshold, which allows no call that can be neither undone nor repeated.
    if (setting.threshold !== undefined && risk !== 'final') return null
    const { proven_acts, settings, env } = this.#parts
    const { mode, audit_share: share } = settings().learning
    if (mode === 'off') return { left: 'proof', detail: 'the setting learning.mode is off' }
    const author = this.author(setting)
    const detail = proven_acts.unproven(author, { event_type: event.type, risk, act: actNameOf(action) }, at)
    if (detail !== null) return { left: 'proof', detail }
    const salt = `${env.REFLEX_ADMIN_KEY ?? ''} ${author.hash}`
    return isAudited(event.id, { share: shareFor(risk, share), salt }) ? { left: 'audit', detail: 'drawn for an audit' } : null
  }

  /** Remembers what would have been done, until a turn has decided on the event. */
  wait(seq: number, waiting: Waiting): void {
    this.#waiting.set(seq, waiting)
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size > MOST_WAITING && oldest !== undefined) this.#waiting.delete(oldest)
  }

  /** Compares with the acts of a turn, unless it considered several events. */
  turned(unit: Unit, claimed: readonly Claimed[], acts: readonly Act[]): void {
    const found = claimed.flatMap(({ seq, event }) => {
      const waiting = this.#waiting.get(seq)
      this.#waiting.delete(seq)
      return waiting ? [{ seq, event, waiting }] : []
    })
    const [one] = found
    const setting = this.#parts.settings().decision_model
    if (!one || !setting || claimed.length > 1 || this.#parts.settings().learning.mode === 'off') return
    const author = this.author(setting)
    const { action, version } = one.waiting
    if (version !== author.version) return
    const decision = { by: 'turn' as const, acts: Array.from(acts) }
    const { agreed } = agreedIn({ version: author, action, decision, seen: new Map() }, this.#parts.toolbox.keyOf)
    if (agreed !== null) this.#observe(unit, setting, { ...one, author, agreed })
  }

  #observe(unit: Unit, setting: DecisionModelSetting, seen: Seen): void {
    const { author, waiting, event, seq, agreed } = seen
    const { event_type, score, action, audited } = waiting
    if (this.#proof.hash !== author.hash) this.#proof = fresh(author.hash, author.version)
    const { threshold } = this.#proof
    if (threshold === null) return this.#choose(unit, setting, score, agreed)
    if (score < threshold) return
    const { scope, id, meta } = event
    const about = {
      seq,
      event_type,
      risk: this.#riskOf(action),
      act: actNameOf(action),
      agreed,
      head: eventHead({ scope, id, trace_id: meta.trace_id }),
    }
    const changes = this.#parts.certificates.observe(unit, author, { ...about, kind: audited ? 'audited' : 'compared' })
    if (changes.some(({ kind }) => kind === 'refuted')) this.#keep(unit, fresh(author.hash, author.version + 1))
  }

  #choose(unit: Unit, setting: DecisionModelSetting, score: number, agreed: boolean): void {
    const { cells, looks, ...proof } = this.#proof
    const at = cellOf(score)
    const counted = cells.map(([yes, no], cell): [number, number] =>
      cell === at ? [yes + (agreed ? 1 : 0), no + (agreed ? 0 : 1)] : [yes, no],
    )
    const n = counted.reduce((sum, [yes, no]) => sum + yes + no, 0)
    if (n < FIRST_LOOK * 2 ** looks) return this.#keep(unit, { ...proof, cells: counted, looks })
    const alpha = alphaOf(setting, this.#parts.settings().learning.min_agreement)
    const found = learnThenTest(scoredIn(counted), { alpha, delta: DELTA / 2 ** (looks + 1), grid: GRID })
    this.#keep(unit, { ...proof, cells: counted, looks: looks + 1, threshold: found?.threshold ?? null })
  }

  #keep(unit: Unit, proof: Proof): void {
    this.#proof = proof
    unit.write(KEY, proof)
  }

  #riskOf(action: Action): Risk {
    return riskIn(this.#parts.toolbox, action)
  }

  #hashOf(setting: DecisionModelSetting): string {
    const model = setting.model ?? decisionModelName(this.#parts.env)
    return jsonHash([setting, model])
  }
}

type Seen = { seq: number; event: Event; waiting: Waiting; author: ReflexVersion; agreed: boolean }

const fresh = (hash: string, version: number): Proof => ({ hash, version, cells: GRID.map(() => [0, 0]), looks: 0, threshold: null })

/** A score in its cell is at least the threshold at the cell's lower end. */
const scoredIn = (cells: readonly [number, number][]): Scored[] =>
  cells.flatMap(([yes, no], cell) => [
    ...Array.from({ length: yes }, () => ({ score: GRID[cell] ?? 0, agreed: true })),
    ...Array.from({ length: no }, () => ({ score: GRID[cell] ?? 0, agreed: false })),
  ])

/** Between what a certificate refutes and what it proves, for the strictest of the actions. */
function alphaOf({ actions }: DecisionModelSetting, agreement: Agreement): number {
  const bounds = Object.values(actions).map((action) => {
    const { alone, together } = boundsOf(agreement, actNameOf(action))
    return together ?? alone
  })
  const { poor, good } = barAt(Math.max(...bounds))
  return 1 - (poor + good) / 2
}
