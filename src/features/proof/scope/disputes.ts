import { v7 as uuidv7 } from 'uuid'
import { actNameOf } from '../../../contract/act-name.ts'
import type { Words } from '../../../contract/reflex.ts'
import type { DryView } from '../../../contract/dry-turn.ts'
import type { EntryHead } from '../../../contract/log-entry.ts'
import { isAnsweredBeside } from '../../../contract/model-asked.ts'
import { riskIn } from '../../../agent/risk.ts'
import type { Toolbox } from '../../../agent/toolbox.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { Job } from '../../../engine/jobs.ts'
import type { Unit } from '../../../kernel/unit.ts'
import { agreedIn } from '../../../reflexes/agreement.ts'
import { type DryAnswer, type DryTurns, isDecided } from '../../../engine/turns/dry/dry-turn.ts'
import { MOST_DEATHS } from '../../../engine/upkeep/guard.ts'
import { childAt, spanOf } from '../../../traces/ids.ts'
import type { OwnAct, Judgements } from './judgements.ts'
import { pauseBefore, termsOf } from './dry-answers.ts'

/**
 * A job has this of a disagreement with one answer of the slow path. `of`: how it was counted.
 * `answers_of`: the turn, or the acts, whose calls answer for a dry turn. `repeats`: answers
 * since then that were as the reflex decided.
 */
type Dispute = Pick<OwnAct, 'event_type' | 'seq' | 'own' | 'signs'> & {
  reflex_id: string
  version: number
  of: 'comparison' | 'audit'
  view: DryView
  head: EntryHead
  answers_of: readonly string[]
  words?: Words
  /** The time of the unit that counted it, in ms. */
  counted_at: number
  repeats: number
}

/** Disputes that may wait; further disagreements count as they are. */
const MOST_WAITING = 50
/** So many of three answers have to be as the reflex decided. */
const REPEATS = 2

type AddingParts = Pick<Ground, 'agent' | 'settings' | 'jobs' | 'database'>

/**
 * Has the slow path asked again about a disagreement, which was counted: a model that errs in one
 * answer of fifty would else end each proof. Where nobody can be asked, the disagreement stands.
 */
export const disputing =
  ({ agent, settings, jobs, database }: AddingParts): Disputing =>
  (unit, given) => {
    if (settings().learning.mode === 'off' || (agent().trigger === null && !isAnsweredBeside({ type: given.event_type }))) return
    const waiting = database.first<{ n: number }>(`SELECT count(*) AS n FROM jobs WHERE kind = 'dispute'`)?.n ?? 0
    if (waiting < MOST_WAITING)
      jobs.add(unit, { kind: 'dispute', key: uuidv7(), payload: { ...given, counted_at: unit.now, repeats: 0 } satisfies Dispute })
  }
export type Disputing = (unit: Unit, given: Omit<Dispute, 'counted_at' | 'repeats'>) => void

type SettlingParts = Pick<Lanes, 'jobs' | 'unit' | 'now' | 'programs'> & { dry_turns: DryTurns; judgements: Judgements; toolbox: Toolbox }

/**
 * Settles disputes, one at a time. If the object dies before the unit that records an answer, the
 * job asks again. A job that is given up leaves the disagreement as it was counted.
 */
export function handleDisputes(parts: SettlingParts): void {
  const { jobs, unit } = parts
  jobs.handle<Dispute>('dispute', {
    work: 'audit',
    at_once: 1,
    attempts: MOST_DEATHS,
    run: (job) => settle(job, parts),
    giveUp: ({ key }) => unit((ending) => void jobs.done(ending, 'dispute', key)),
  })
}

async function settle({ key, payload }: Job<Dispute>, parts: SettlingParts): Promise<{ again_ms: number } | void> {
  const { jobs, unit, now, programs, dry_turns } = parts
  for (let given = payload; ; given = { ...given, repeats: given.repeats + 1 }) {
    const { reflex_id, version: number, view, answers_of } = given
    const version = programs.find({ id: reflex_id, version: number })
    if (!version) return unit((ending) => void jobs.done(ending, 'dispute', key))
    // Its span is derived, so that all tries have the same one.
    const head = childAt(given.head, spanOf(`dispute:${key}:${given.repeats}`))
    const asked = { turn_id: uuidv7(), head, view, answers_of }
    const answer = await dry_turns.ask(asked)
    const again_ms = pauseBefore(answer, { decided_at: view.decided_at, now: now() })
    if (again_ms !== null) {
      unit((waiting) => jobs.progressed(waiting, 'dispute', key))
      return { again_ms }
    }
    const isRepeated = isDecided(answer) && agrees(answer, given, parts.toolbox)
    const isOpen = isRepeated && given.repeats + 1 < REPEATS
    unit((ending) => {
      dry_turns.log(ending, asked, answer, 'asked-again')
      if (isOpen) return jobs.advanced(ending, 'dispute', key, { ...given, repeats: given.repeats + 1 } satisfies Dispute)
      jobs.done(ending, 'dispute', key)
      if (!isRepeated) return
      const { event_type, seq, own, signs, of, counted_at } = given
      const where = { event_type, risk: riskIn(parts.toolbox, own), act: actNameOf(own) }
      parts.judgements.retracted(ending, version, { ...where, seq, signs, of, counted_at, head })
    })
    if (!isOpen) return undefined
  }
}

function agrees(answer: DryAnswer, given: Dispute, { keyOf }: Toolbox): boolean {
  const { reflex_id: id, version, own: action } = given
  const decision = { by: 'turn' as const, acts: answer.acts }
  return agreedIn({ version: { id, version }, action, decision, seen: new Map(), ...termsOf(answer, given) }, keyOf).agreed === true
}
