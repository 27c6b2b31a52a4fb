import { backoff, pauses } from '../../../base/backoff.ts'
import { setSkillState } from '../../../artifacts/kinds.ts'
import { byteLength, sameJson, type Json, type JsonFields } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { warn } from '../../../base/warn.ts'
import { editedInputs, verdictOf, type ApprovalRequest, type ApprovalVerdict, type WaitingStep } from '../../../contract/approval.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import { emptyBlackboard, seedBlackboard, type Blackboard } from '../../../skills/plan/blackboard.ts'
import { directsAs, type Sources } from '../../../tools/origins/origin-of.ts'
import { fieldsIn, WholeWords } from '../../../tools/origins/values.ts'
import { parkedBefore } from '../../../skills/session/decide.ts'
import type { Parked, ParkedRun } from '../../../skills/session/ports.ts'
import { expireApprovals, findApprovals, type Withdrawal } from '../store/approvals.ts'
import { storeOf } from '../../../store/store.ts'
import type { AskedCall } from '../../../contract/held-call.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import { approvalHead } from '../../../traces/ids.ts'
import { editFlaw, type EditParts } from './edits.ts'
import { tellApproval, type HeldRun } from './approved-runs.ts'
import { callHead, decideCall, inputsOf, logCallAsked, questionsOf, toolsOf, type HeldCall } from './held-calls.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { ProofInScope } from '../../proof/scope/in-scope.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { inBackground } from '../../../engine/log/failures.ts'
import type { AnchoredCall } from '../../../contract/settings/anchors.ts'
import { jsonHash, SHORT_HASH } from '../../../base/hash.ts'
import type { StateMove, PromotionQuestion, WaitingPromotion } from '../../proof/scope/promotions.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'

/** The inputs of a caller whose key may direct are its words. */
function wordsOfCaller({ proposer, roles, inputs }: HeldRun, settings: Settings): Sources['trusted'] {
  const directs = proposer !== null && directsAs({ sender: `key:${proposer.key_id}`, roles }, settings)
  const words = new WholeWords(directs ? Array.from(fieldsIn(inputs), ({ value }) => String(value)).join('\n') : '')
  return (value) => (words.has(value) ? { from: 'user' } : null)
}

/** Poll interval for decisions, in case a notification was lost. */
const POLL_MS = 60_000
const MOST_WAITING = 100
/** Calls of one question, which is a row. */
const MOST_CALLS = 100
const GONE = 'the scope no longer asks this'
const ANSWER_WITHIN_MS = 7 * 86_400_000

/** A proven action of a reflex that a person must allow. */
type HeldPromotion = { promotion: StateMove; expires_at: number }
/** A mined skill that passed its tests. */
export type Activation = { id: string; version: string; hash: string }
type HeldActivation = { activation: Activation; expires_at: number }
type Held = HeldRun | HeldPromotion | HeldActivation | HeldCall
type CallPlace = { trace_id: string; span_id: string }
type GatheredCall = { call: AnchoredCall; why: string; head: EntryHead }
type Gathered = { approval_id: string; calls: GatheredCall[]; bytes: number }
type WaitingRow = { approval_id: string; run: string; expires_at: number }
type ApprovalParts = Lanes & EditParts & Pick<ProofInScope, 'promotions' | 'judgements'>

/**
 * Runs and other questions that wait for an approval: first a row here, then the question
 * in D1, where exactly one decision is taken and handed on (`decided`). The row goes in the unit
 * that logs the decision; if it is an approval of a run, the unit also adds the job that begins it.
 *
 * If the process dies before D1 has the question, it is asked again. A decision that did not arrive
 * is found by the next poll.
 */
export class ParkedRuns implements ScopeFeature {
  readonly name = 'approvals'
  readonly #parts: ApprovalParts
  #poll_at: number | null
  #polling = false
  #poll_again = false
  /** Calls of running turns, which are asked about once the turns end. */
  readonly #gathered = new Map<string, Gathered>()
  #sending: Promise<unknown> = Promise.resolve()

  constructor(parts: ApprovalParts) {
    this.#parts = parts
    this.#poll_at = this.#any() ? parts.now() : null
    parts.promotions.onAsk({
      ask: (unit, question) => this.#askPromotion(unit, question),
      waiting: (of) => this.#promotions(of),
      withdraw: (unit, approval_id, reason) => this.#withdraw(unit, approval_id, reason),
    })
  }

  due(): number | null {
    return this.#poll_at
  }

  runDue(): Promise<void> | false {
    return this.#poll_at !== null && this.#poll_at <= this.#parts.now() && this.poll()
  }

  /** Reuses the request of the same key or agent. `record` is called in the unit that parks. */
  async park(run: HeldRun, record: (unit: Unit, approval_id: string) => void): Promise<Parked> {
    const { unit } = this.#parts
    const held = this.#waiting().map(({ run: parked, approval_id }) => ({ ...(JSON.parse(parked) as Held), approval_id }))
    const waiting = held.flatMap((one) => ('skill_id' in one ? [one] : []))
    const known = parkedBefore(waiting, run, this.#parts.now())
    if (known) return known
    const approval_id = crypto.randomUUID()
    unit((parking) => {
      const sql = 'INSERT INTO parked_runs (approval_id, run, expires_at, parked_at) VALUES (?, ?, ?, ?)'
      parking.all(sql, approval_id, JSON.stringify(run), run.expires_at, parking.now)
      this.#ask(parking, approval_id, run)
      record(parking, approval_id)
    })
    this.#pollIn(POLL_MS)
    await this.#parts.outbox.push('approvals')
    return { ok: true, approval_id, asked_before: false }
  }

  /** Applies a decision that D1 took. One that arrives again finds no row. */
  async decided(approval_id: string, verdict: ApprovalVerdict): Promise<void> {
    const { unit, jobs, alarm } = this.#parts
    const asked = this.#row(approval_id)
    if (!asked) return
    await this.#activate(asked, verdict)
    unit((deciding) => {
      const row = this.#row(approval_id)
      if (row) this.#apply(deciding, row, verdict)
    })
    jobs.run()
    if (!this.#any()) this.#poll_at = null
    alarm.rearm()
  }

  /** Applies decisions that were missed. Calls during a poll share the next one. */
  async poll(): Promise<void> {
    this.#poll_again = true
    if (this.#polling) return
    this.#polling = true
    const { scope, jobs } = this.#parts
    try {
      while (this.#poll_again) {
        this.#poll_again = false
        await this.#pollOnce()
        jobs.run()
      }
    } catch (error) {
      warn({ message: 'failed to poll approvals; will retry', scope, error })
    } finally {
      this.#polling = false
    }
  }

  async #pollOnce(): Promise<void> {
    const { env, outbox, unit, jobs, alarm, now } = this.#parts
    this.#poll_at = now() + POLL_MS
    // If D1 accepts no request, skip the query: a second timeout would outlast the next poll.
    if (!(await outbox.push('approvals'))) return this.#pollIn(backoff(pauses.read))
    const [waiting, at] = [this.#waiting(), now()]
    const ids = waiting.map(({ approval_id }) => approval_id)
    // D1 must know it before the run is dropped: by another clock a person could still approve it.
    if (waiting.some(({ expires_at }) => expires_at <= at)) await expireApprovals(storeOf(env), at, ids)
    const found = ids.length === 0 ? [] : await findApprovals(storeOf(env), ids, at)
    const verdicts = new Map(found.map((approval) => [approval.id, verdictOf(approval)]))
    for (const row of this.#waiting()) await this.#activate(row, verdicts.get(row.approval_id) ?? null)
    unit((deciding) => {
      for (const row of this.#waiting()) {
        const verdict = verdicts.has(row.approval_id) ? verdicts.get(row.approval_id) : this.#unasked(row)
        if (verdict) this.#apply(deciding, row, verdict)
      }
      // Each poll retries an approved run that waits for another one.
      jobs.hurry(deciding, 'approved-run')
    })
    if (!this.#any()) this.#poll_at = null
    alarm.rearm()
  }

  #apply(unit: Unit, { approval_id, run }: WaitingRow, verdict: ApprovalVerdict): void {
    const { status, by, reason, edits, traceparent } = verdict
    const parked = JSON.parse(run) as Held
    unit.all('DELETE FROM parked_runs WHERE approval_id = ?', approval_id)
    if ('promotion' in parked) {
      if (status === 'approved' || status === 'rejected')
        this.#parts.promotions.decided(unit, parked.promotion, { approval_id, person: by ?? '', allows: status === 'approved', reason })
      return
    }
    if ('activation' in parked) return
    // A question that was withdrawn is not waited for: only promotions are.
    if (status === 'withdrawn') return
    if ('payment' in parked || 'call' in parked || 'calls' in parked)
      return decideCall(this.#parts, unit, parked, { ...verdict, approval_id, status })
    if (status === 'approved') {
      if (edits) this.#parts.effects.origins.noteEdit(editedInputs(parked.inputs, edits))
      const payload: HeldRun = { ...parked, decided: { by, reason }, ...(edits && { edits }) }
      this.#parts.jobs.add(unit, { kind: 'approved-run', key: approval_id, payload })
    }
    if (status === 'rejected' && parked.from === 'reflex')
      this.#parts.judgements.rejected(unit, parked, { by, ...(reason !== null && { reason }) })
    if (status !== 'approved') tellApproval(unit, this.#parts, { ...parked, approval_id }, { decision: status, by, reason })
    const { proposal_id, skill_id, version, head, parked_at } = parked
    const span = { ...approvalHead(head, { proposal_id, approval_id }), duration_ms: unit.now - parked_at }
    const edited = edits && { edits: this.#parts.log.clean(editedInputs(parked.inputs, edits), head.trace_id) }
    unit.log({ ...span, kind: 'approval-decided', approval_id, skill_id, version, status, by, reason, traceparent, ...edited })
  }

  #waiting(): WaitingRow[] {
    return this.#parts.database.all<WaitingRow>('SELECT approval_id, run, expires_at FROM parked_runs ORDER BY parked_at')
  }

  #row(approval_id: string): WaitingRow | undefined {
    return this.#parts.database.first<WaitingRow>('SELECT approval_id, run, expires_at FROM parked_runs WHERE approval_id = ?', approval_id)
  }

  #any(): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM parked_runs LIMIT 1') !== undefined
  }

  /** Asks once for each proven action. Null if the question waits already. */
  #askPromotion(unit: Unit, question: PromotionQuestion): string | null {
    const { promotion, says, why } = question
    const { id, version, hash, chooses, ...proven } = promotion
    const inputs = { ...proven, ...(chooses && { says }) }
    const of = { kind: 'promotion', skill_id: id, version: String(version), manifest_hash: hash, inputs, why } as const
    return this.#askOnce(unit, { promotion }, of)
  }

  #promotions({ id, version }: Pick<StateMove, 'id' | 'version'>): WaitingPromotion[] {
    const sql = `SELECT approval_id, run->>'$.promotion' AS promotion FROM parked_runs
      WHERE run->>'$.promotion.id' = ? AND run->>'$.promotion.version' = ? ORDER BY parked_at`
    const rows = this.#parts.database.all<{ approval_id: string; promotion: string }>(sql, id, version)
    return rows.map(({ approval_id, promotion }) => ({ approval_id, promotion: JSON.parse(promotion) as StateMove }))
  }

  /** The reason why this question about a proven action is outdated; null: it is not. */
  outdated(approval_id: string): string | null {
    const row = this.#row(approval_id)
    if (!row) return GONE
    const held = JSON.parse(row.run) as Held
    return 'promotion' in held ? this.#parts.promotions.outdated(held.promotion) : null
  }

  /** The reason why this question cannot be answered with these inputs; null: it can. */
  async flaw(approval_id: string, edits: JsonFields): Promise<string | null> {
    const row = this.#row(approval_id)
    if (!row) return GONE
    const held = JSON.parse(row.run) as Held
    if ('skill_id' in held || 'call' in held || 'calls' in held) return editFlaw(this.#parts, held, edits)
    return 'only the inputs of a run and of calls can be changed'
  }

  /** The steps of a run that waits, with what named their arguments; none for other questions. */
  async steps(approval_id: string): Promise<WaitingStep[]> {
    const { skill_cache, settings, effects } = this.#parts
    const row = this.#row(approval_id)
    const held = row ? (JSON.parse(row.run) as Held) : null
    if (!held || !('skill_id' in held)) return []
    const skill = await skill_cache.find(held.skill_id, held.version)
    if (!skill) return []
    const seeded = seedBlackboard({ settings: settings().blackboard as Partial<Blackboard> })
    const blackboard = seeded.ok ? seeded.blackboard : emptyBlackboard()
    return effects.origins.ofSteps(
      { manifest: skill.manifest, inputs: held.inputs, blackboard },
      held.from === 'caller' ? wordsOfCaller(held, settings()) : null,
    )
  }

  /** Takes back a question. A decision that D1 has already taken finds no row here. */
  #withdraw(unit: Unit, approval_id: string, reason: string): void {
    unit.all('DELETE FROM parked_runs WHERE approval_id = ?', approval_id)
    const withdrawal: Withdrawal = { id: approval_id, withdrawn: { at: unit.now, reason } }
    this.#parts.outbox.put(unit, 'approvals', approval_id, withdrawal)
  }

  /** Asks once whether a mined skill becomes active. */
  async askActivation(activation: Activation, { run_id, why }: { run_id: string; why: string }): Promise<void> {
    const { unit, outbox } = this.#parts
    const { id: skill_id, version, hash: manifest_hash } = activation
    unit((asking) =>
      this.#askOnce(asking, { activation }, { kind: 'activation', skill_id, version, manifest_hash, inputs: { learn_run: run_id }, why }),
    )
    await outbox.push('approvals')
  }

  /** Asks once for a call that waits. Null if it waits already. */
  async askCall(held: AskedCall, why: string, place?: CallPlace): Promise<string | null> {
    const { unit, outbox } = this.#parts
    this.#demandRoom(why)
    const asked = unit((asking) => this.#askCalls(asking, held, why, { head: callHead(place), approval_id: crypto.randomUUID() }))
    await outbox.push('approvals')
    return asked
  }

  #demandRoom(why: string): void {
    if (this.#waiting().length >= MOST_WAITING) throw new Error(`${why}; ${MOST_WAITING} approvals wait already`)
  }

  #askCalls(unit: Unit, held: AskedCall, why: string, place: { head: EntryHead; approval_id: string }): string | null {
    const inputs = this.#parts.log.clean(inputsOf(held)) as ApprovalRequest['inputs']
    const kind = 'payment' in held ? 'payment' : 'call' in held ? 'call' : 'calls'
    const of = { kind, skill_id: toolsOf(held), version: '', manifest_hash: '', inputs, why } as const
    const approval_id = this.#askOnce(unit, held, of, place)
    if (approval_id !== null) logCallAsked(unit, { ...held, head: place.head }, { approval_id, reason: why })
    return approval_id
  }

  /** Keeps a call until its turn ends. Null if an equal one waits already. */
  gather(turn_id: string, one: GatheredCall): string | null {
    this.#demandRoom(one.why)
    const { approval_id, calls, bytes } = this.#gathered.get(turn_id) ?? { approval_id: crypto.randomUUID(), calls: [], bytes: 0 }
    const [question] = questionsOf(one)
    const waiting = [...this.#questions(), ...calls.flatMap(questionsOf)]
    if (waiting.some((other) => sameJson(other, question))) return null
    const size = bytes + byteLength(JSON.stringify(one.call))
    if (calls.length === MOST_CALLS || size > limits.sql_json_bytes) throw new Error(`${one.why}; one question has no room for it`)
    this.#gathered.set(turn_id, { approval_id, calls: [...calls, one], bytes: size })
    return approval_id
  }

  /** Asks one question about all calls that a turn left to a person. */
  endTurn(unit: Unit, turn_id: string, asks: boolean): void {
    const gathered = this.#gathered.get(turn_id)
    this.#gathered.delete(turn_id)
    const [first, ...more] = gathered?.calls ?? []
    if (!gathered || !first || !asks) return
    const all = [first, ...more]
    const held = more.length === 0 ? { call: first.call } : { calls: all.map(({ call }) => call) }
    const { approval_id } = gathered
    this.#askCalls(unit, held, all.map(({ why }) => why).join('; '), { head: first.head, approval_id })
    // The row is there once the unit has ended.
    this.#sending = Promise.resolve().then(() => this.#parts.outbox.push('approvals'))
    inBackground(this.#sending)
  }

  /** Resolves once the questions of ended turns were sent to D1, whether it took them or not. */
  async sent(): Promise<void> {
    await this.#sending
  }

  #questions(): object[] {
    return this.#waiting().flatMap(({ run }) => {
      const { expires_at: _at, head: _head, ...one } = JSON.parse(run) as Held & { head?: EntryHead }
      return questionsOf(one)
    })
  }

  /** Idempotent. The row stays until this has succeeded, and then goes with the decision. */
  async #activate({ run }: WaitingRow, verdict: ApprovalVerdict | null): Promise<void> {
    const parked = JSON.parse(run) as Held
    if (!('activation' in parked) || (verdict?.status !== 'approved' && verdict?.status !== 'rejected')) return
    const { env, scope, now } = this.#parts
    const { status, by, reason: said } = verdict
    const reason = `${by} ${status} it in scope ${scope}${said === null ? '' : `: ${said}`}`
    const state = status === 'approved' ? 'active' : 'deprecated'
    const changed = await setSkillState(storeOf(env), { ...parked.activation, from: 'candidate', state, reason, now: now() })
    if (changed.ok && changed.version.state === state) return
    warn({ message: 'a decision about a mined skill had no effect', scope, skill: parked.activation, status })
  }

  #askOnce(
    unit: Unit,
    held: Pick<HeldPromotion, 'promotion'> | Pick<HeldActivation, 'activation'> | AskedCall,
    of: Pick<ApprovalRequest, 'kind' | 'skill_id' | 'version' | 'manifest_hash' | 'inputs' | 'why'>,
    { approval_id = crypto.randomUUID(), ...place }: { head?: EntryHead; approval_id?: string } = {},
  ): string | null {
    const { scope, agent } = this.#parts
    const waiting = this.#questions()
    if (questionsOf(held).every((question) => waiting.some((one) => sameJson(one, question)))) return null
    const expires_at = unit.now + ANSWER_WITHIN_MS
    const sql = 'INSERT INTO parked_runs (approval_id, run, expires_at, parked_at) VALUES (?, ?, ?, ?)'
    unit.all(sql, approval_id, JSON.stringify({ ...held, ...place, expires_at }), expires_at, unit.now)
    const asked = { requested_by: `agent:${agent().name}`, requested_key: null, self_approval: false }
    const inputs_hash = jsonHash(of.inputs, SHORT_HASH)
    this.#put(unit, { id: approval_id, scope, ...of, inputs_hash, ...asked, created_at: unit.now, expires_at })
    this.#pollIn(POLL_MS)
    return approval_id
  }

  /** Puts the request that a reviewer reads into the outbox. */
  #ask(unit: Unit, approval_id: string, run: ParkedRun): void {
    const { scope, log, agent } = this.#parts
    const { skill_id, version, manifest_hash, inputs_hash, inputs, why, proposer, self_approval, parked_at, expires_at } = run
    const asked = { requested_by: proposer?.name ?? `agent:${agent().name}`, requested_key: proposer?.key_id ?? null, self_approval }
    const of = { skill_id, version, manifest_hash, inputs_hash, inputs: log.clean(inputs) as ParkedRun['inputs'], why }
    this.#put(unit, { id: approval_id, scope, kind: 'run', ...of, ...asked, created_at: parked_at, expires_at })
  }

  #put(unit: Unit, request: ApprovalRequest): void {
    this.#parts.outbox.put(unit, 'approvals', request.id, request)
    const { id, scope: _scope, requested_key: _key, created_at, expires_at, ...asked } = request
    const times = { created_at: new Date(created_at).toISOString(), expires_at: new Date(expires_at).toISOString() }
    const data = { approval_id: id, ...asked, ...times } as Record<string, Json>
    for (const feature of this.#parts.features) feature.told?.(unit, { type: 'approval.requested', data, at: unit.now })
  }

  #pollIn(ms: number): void {
    const { alarm, now } = this.#parts
    this.#poll_at = Math.min(this.#poll_at ?? Number.POSITIVE_INFINITY, now() + ms)
    alarm.by(this.#poll_at)
  }

  /** The end of a question that D1 received and no longer has: it cannot be answered. */
  #unasked({ approval_id, expires_at }: WaitingRow): ApprovalVerdict | null {
    const { outbox, now } = this.#parts
    return expires_at <= now() && outbox.get('approvals', approval_id) === undefined
      ? { status: 'expired', by: null, reason: null, traceparent: null }
      : null
  }
}
