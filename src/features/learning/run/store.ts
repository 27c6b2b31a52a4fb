import { hasTable, layTables } from '../../../kernel/lay-tables.ts'
import { Database } from '../../../kernel/unit.ts'
import type { Drift } from '../contract/learner-api.ts'
import type { StoredRun } from '../contract/runs.ts'
import type { Agreement } from '../../../contract/agreement.ts'
import type { Replies } from '../../../contract/words.ts'
import type { Episode, EpisodeAct } from '../episode.ts'
import { corrected, type Correction } from '../episodes/people.ts'
import { evidenceParts, type EvidencePart, type ReadPlace, type Rejected } from '../contract/runs.ts'
import type { Ask, Find, Grounds, RegisteredReflex } from './findings.ts'
import { FIRST } from './policy.ts'
import type { MinedSkill } from './skills.ts'

/** A run with the state that its learner continues from. */
export type LearningRun = StoredRun & {
  trusted_sources: string[]
  /** The part of them that the setting has; missing in runs that an earlier version began. */
  set_sources?: string[]
  /** Missing in runs that an earlier version began. */
  replies?: Replies
  min_agreement?: Agreement
  drifted: Drift[]
  /** The number of times that it has learned again after asking again. */
  round: number
  /** The number of times that learning began in this round: it may kill its object each time. */
  begun: number
  /** Consecutive failures of its current step. */
  failures: number
  /** True until a scheduled run finds that it is due: D1 does not list it. */
  quiet: boolean
  /** True where nobody has agreed to pay for asking again. */
  asks_nothing?: boolean
  /** Events to ask about again; how many were, and how many of these have another decision now. */
  asks: Ask[]
  settled: number
  changed: number
}

type Values = {
  run: LearningRun
  /** The watermark of the reader. */
  position: number
  /** The entry from which another reader begins to read again. */
  lead: number
  registered: (Omit<RegisteredReflex, 'strata'> & { strata?: readonly string[]; stratum?: string })[]
  /** Sequences of the run that became no skills. */
  unmined: Rejected[]
  /** Decisions read so far, the number at which to learn again, and what was covered each time. */
  policy: { decisions: number; next: number }
  /** The fields that the scope masked when the episodes were read. */
  masked: string
  /** Grows with each change of the run; `reported` is the one that D1 has. */
  revision: number
  reported: number
}

/** Bytes of episodes that are kept: learning holds all of them in memory. */
const MOST_BYTES = 24_000_000

const GROUNDED_RUNS = 10

const TABLES = [
  `CREATE TABLE IF NOT EXISTS episodes (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, log_seq INTEGER NOT NULL, at INTEGER NOT NULL,
    body TEXT NOT NULL, settled INTEGER NOT NULL DEFAULT 0)`,
  `CREATE TABLE IF NOT EXISTS grounds (run_id TEXT NOT NULL, decision TEXT NOT NULL, part TEXT NOT NULL, places TEXT NOT NULL,
    PRIMARY KEY (run_id, decision, part))`,
  'CREATE TABLE IF NOT EXISTS skills (place INTEGER PRIMARY KEY, body TEXT NOT NULL)',
  'CREATE TABLE IF NOT EXISTS finds (place INTEGER PRIMARY KEY, body TEXT NOT NULL)',
]

/** Holds the episodes that a learner has read so far, and its run. */
export class LearnerStore {
  readonly #storage: DurableObjectStorage
  readonly #database: Database

  /** The storage stays empty until the first insertion. */
  constructor(storage: DurableObjectStorage) {
    const lay = () => layTables(storage.sql, 'learner', TABLES)
    const laid = hasTable(storage.sql, 'episodes')
    this.#storage = storage
    this.#database = new Database(storage, { laid, lay })
    if (laid) lay()
  }

  get<Name extends keyof Values>(name: Name): Values[Name] | undefined {
    return this.#storage.kv.get<Values[Name]>(name)
  }

  put<Name extends keyof Values>(name: Name, value: Values[Name]): void {
    this.#storage.kv.put(name, value)
  }

  get run(): LearningRun | undefined {
    return this.get('run')
  }

  get policy(): Values['policy'] {
    return this.get('policy') ?? { decisions: 0, next: FIRST }
  }

  get revision(): number {
    return this.get('revision') ?? 0
  }

  get unreported(): boolean {
    return this.revision > (this.get('reported') ?? 0)
  }

  /** Versions of earlier runs; an earlier release stored one stratum each. */
  get registered(): RegisteredReflex[] {
    const stored = this.get('registered') ?? []
    return stored.map(({ stratum, ...one }) => ({ ...one, strata: one.strata ?? (stratum === undefined ? [] : [stratum]) }))
  }

  /** Writes the run, which D1 then lacks. */
  write(run: LearningRun): void {
    this.put('run', run)
    this.put('revision', this.revision + 1)
  }

  /** D1 has the run as of this revision. */
  reported(revision: number): void {
    this.put('reported', Math.max(revision, this.get('reported') ?? 0))
  }

  /** All of it is written, or nothing. */
  unit<Result>(work: () => Result): Result {
    return this.#database.transaction(work)
  }

  /** Replaces the reflexes that the run has found and not registered yet. */
  putFinds(found: readonly Find[]): void {
    this.#putAll('finds', found)
  }

  get finds(): Find[] {
    return this.#all('finds') as Find[]
  }

  /** Replaces the skills that the run has found and not registered yet. */
  putSkills(found: readonly MinedSkill[]): void {
    this.#putAll('skills', found)
  }

  get skills(): MinedSkill[] {
    return this.#all('skills') as MinedSkill[]
  }

  /** A row for each, since the code of all of them may be more than a value can hold. */
  #putAll(table: 'skills' | 'finds', found: readonly unknown[]): void {
    this.#database.all(`DELETE FROM ${table}`)
    for (const one of found) this.#database.all(`INSERT INTO ${table} (body) VALUES (?)`, JSON.stringify(one))
  }

  #all(table: 'skills' | 'finds'): unknown[] {
    const rows = this.#database.all<{ body: string }>(`SELECT body FROM ${table} ORDER BY place`)
    return rows.map(({ body }): unknown => JSON.parse(body))
  }

  /** Adds episodes, and returns how many are new. A later decision on an event replaces it. */
  add(episodes: readonly Episode[]): number {
    let added = 0
    for (const episode of episodes) {
      const { id, log_seq, at } = episode
      const [known] = this.#database.all('SELECT log_seq FROM episodes WHERE id = ?', id)
      if (known && Number(known['log_seq']) >= log_seq) continue
      if (!known) added += 1
      this.#database.all(
        `INSERT INTO episodes (id, log_seq, at, body) VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT (id) DO UPDATE SET log_seq = ?2, at = ?3, body = ?4, settled = 0`,
        id,
        log_seq,
        at,
        JSON.stringify(episode),
      )
    }
    return added
  }

  /** Replaces decisions that somebody has judged since they were read. */
  correct(corrections: readonly Correction[]): void {
    const known = corrections.flatMap((one) => {
      const episode = this.episode(one.id)
      return episode ? [corrected(episode, one)] : []
    })
    this.add(known)
  }

  /** Keeps the newest. */
  trim(window: number): void {
    this.#database.all(
      `DELETE FROM episodes WHERE place <= coalesce((SELECT max(place) FROM
        (SELECT place, row_number() OVER (ORDER BY place DESC) AS newer, sum(length(CAST(body AS BLOB))) OVER (ORDER BY place DESC) AS bytes FROM episodes)
        WHERE newer > ?1 OR bytes > ?2), 0)`,
      window,
      MOST_BYTES,
    )
  }

  /** The newest episodes, oldest first. */
  newest(window: number): Episode[] {
    const sql = 'SELECT body FROM (SELECT place, body FROM episodes ORDER BY place DESC LIMIT ?) ORDER BY place'
    return Array.from(this.#database.each<{ body: string }>(sql, window), ({ body }) => JSON.parse(body) as Episode)
  }

  episode(id: string): Episode | null {
    const row = this.#database.first<{ body: string }>('SELECT body FROM episodes WHERE id = ?', id)
    return row ? (JSON.parse(row.body) as Episode) : null
  }

  /** The slow path has decided again on an event: it is not asked about this event any more. */
  settle(id: string, acts: EpisodeAct[]): void {
    const episode = this.episode(id)
    if (episode) this.#database.all('UPDATE episodes SET body = ?, settled = 1 WHERE id = ?', JSON.stringify({ ...episode, acts }), id)
  }

  settled(): Set<string> {
    const rows = this.#database.all<{ id: string }>('SELECT id FROM episodes WHERE settled = 1')
    return new Set(rows.map(({ id }) => id))
  }

  /** Replaces the grounds of a run. The grounds of its predecessors are kept for a while. */
  ground(run_id: string, grounds: readonly Grounds[]): void {
    const database = this.#database
    database.all('DELETE FROM grounds WHERE run_id = ?', run_id)
    for (const one of grounds) {
      for (const part of evidenceParts)
        database.all(
          'INSERT INTO grounds (run_id, decision, part, places) VALUES (?, ?, ?, ?)',
          run_id,
          one.decision,
          part,
          JSON.stringify(one[part]),
        )
    }
    database.all(
      'DELETE FROM grounds WHERE run_id NOT IN (SELECT DISTINCT run_id FROM grounds ORDER BY run_id DESC LIMIT ?)',
      GROUNDED_RUNS,
    )
  }

  /** Null if the grounds of the run are no longer kept. */
  groundsOf({ run_id, decision, part }: { run_id: string; decision: string; part: EvidencePart }): ReadPlace[] | null {
    const sql = 'SELECT places FROM grounds WHERE run_id = ? AND decision = ? AND part = ?'
    const row = this.#database.first<{ places: string }>(sql, run_id, decision, part)
    return row ? (JSON.parse(row.places) as ReadPlace[]) : null
  }

  /** The time of the oldest episode (ms). */
  get oldest(): number | null {
    const row = this.#database.first<{ at: number | null }>('SELECT min(at) AS at FROM episodes')
    return row?.at ?? null
  }

  forgetBefore(at: number): void {
    this.#database.all('DELETE FROM episodes WHERE at < ?', at)
  }

  /** Forgets all that was read, and what was found in it, so that the log is read again. */
  forgetAll(): void {
    for (const table of ['episodes', 'skills', 'finds']) this.#database.all(`DELETE FROM ${table}`)
    for (const name of ['position', 'lead', 'unmined', 'policy'] satisfies (keyof Values)[]) this.#storage.kv.delete(name)
  }

  forget(ids: readonly string[]): void {
    this.#database.all('DELETE FROM episodes WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(ids))
  }
}
