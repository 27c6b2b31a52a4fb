import type { Journal, JournalEntry, Phase, StepBegin, StepEnd } from '../../skills/runner/ports.ts'
import type { SessionEntry } from '../../skills/session/ports.ts'
import type { Database } from '../database.ts'
import type { Guard } from '../guard.ts'
import type { UnitOfWork } from '../unit.ts'

type Row = { phase: Phase; place: number; begun: string | null; ended: string | null }

type Parts = { database: Database; unit: UnitOfWork; guard: Guard; append: (told: SessionEntry) => void }

/**
 * The durable journal of a plan's steps. If the process dies before `begin` is written, the step was not begun; before `end`, it may have happened, and the
 * runner decides by its key; after `end`, which is logged in the same transaction, it is never run again (G8). `end` waits until it is on disk: a death in the next
 * step would take back what waits there to be written with it.
 */
export class RunJournal implements Journal<SessionEntry> {
  readonly #database: Database
  readonly #unit: UnitOfWork
  readonly #guard: Guard
  readonly #append: (told: SessionEntry) => void

  constructor({ database, unit, guard, append }: Parts) {
    this.#guard = guard
    this.#database = database
    this.#unit = unit
    this.#append = append
  }

  async load(run_id: string): Promise<JournalEntry[]> {
    return this.#database
      .all<Row>('SELECT phase, place, begun, ended FROM skill_steps WHERE run_id = ? ORDER BY phase DESC, place', run_id)
      .map((row) => ({
        phase: row.phase,
        index: row.place,
        begun: row.begun === null ? null : (JSON.parse(row.begun) as StepBegin),
        end: row.ended === null ? null : (JSON.parse(row.ended) as StepEnd),
      }))
  }

  async begin(run_id: string, begin: StepBegin): Promise<void> {
    this.#unit(
      () =>
        this.#database.all(
          `INSERT INTO skill_steps (run_id, phase, place, begun) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET begun = ?4`,
          run_id,
          begin.phase,
          begin.index,
          JSON.stringify(begin),
        ),
      { kind: 'run', id: run_id },
    )
  }

  async end(run_id: string, { phase, index }: { phase: Phase; index: number }, end: StepEnd, told: SessionEntry): Promise<void> {
    this.#unit(
      () => {
        this.#database.all(
          `INSERT INTO skill_steps (run_id, phase, place, ended) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET ended = ?4`,
          run_id,
          phase,
          index,
          JSON.stringify(end),
        )
        this.#append(told)
        // The run has come further: deaths before are no deaths at the same work.
        this.#guard.done({ kind: 'run', id: run_id })
      },
      { kind: 'run', id: run_id },
    )
    await this.#database.sync()
  }
}
