import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { Json, JsonFields } from '../../base/json.ts'
import type { JournalEntry } from '../../skills/runner/ports.ts'
import type { ApprovedRun, RunRecord } from '../../skills/session/ports.ts'
import type { LogEntry, LogStore } from '../log.ts'
import type { ApprovalStore, RunStore, Storage, StoredSkill } from '../storage.ts'

const SCHEMA = `
  PRAGMA journal_mode = WAL;
  CREATE TABLE IF NOT EXISTS skills (name TEXT PRIMARY KEY, skill TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY, skill_id TEXT NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER, status TEXT, record TEXT
  );
  CREATE INDEX IF NOT EXISTS runs_of_skills ON runs (skill_id, started_at);
  CREATE TABLE IF NOT EXISTS journal (
    run_id TEXT, phase TEXT, place INTEGER, begun TEXT, ended TEXT, PRIMARY KEY (run_id, phase, place)
  );
  CREATE TABLE IF NOT EXISTS outputs (name TEXT PRIMARY KEY, output TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS approvals (approval_id TEXT PRIMARY KEY, run TEXT NOT NULL, approved INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY AUTOINCREMENT, trace_id TEXT NOT NULL, entry TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS log_of_traces ON log (trace_id, seq);
`

type Row = Record<string, unknown>
type Query = (sql: string, ...values: SQLInputValue[]) => Row[]

/**
 * All in one SQLite file, so that a killed process goes on where it was. Each write is on disk when it returns, but the log's, which are with the system:
 * they outlive the process, and cost a call next to nothing.
 */
export function fileStorage(file: string): Storage {
  const database = opened(file, 'FULL')
  const told = opened(file, 'NORMAL')
  const query = queryOf(database)
  return {
    skills: {
      all: () => query('SELECT skill FROM skills ORDER BY name').map(({ skill }) => parsed<StoredSkill>(skill)),
      put: (skill) =>
        void query('INSERT OR REPLACE INTO skills VALUES (?, ?)', `${skill.manifest.id}@${skill.manifest.version}`, JSON.stringify(skill)),
    },
    journal: journalIn(query),
    runs: runsIn(query),
    outputs: {
      get: async (key) => parsedFirst<Json>(query('SELECT output AS value FROM outputs WHERE name = ?', key)),
      put: async (key, output) => void query('INSERT OR REPLACE INTO outputs VALUES (?, ?)', key, JSON.stringify(output)),
    },
    approvals: approvalsIn(query),
    log: logIn(queryOf(told)),
    close() {
      told.close()
      database.close()
    },
  }
}

function opened(file: string, synchronous: 'FULL' | 'NORMAL'): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA busy_timeout = 5000; PRAGMA synchronous = ${synchronous}; ${SCHEMA}`)
  return database
}

function queryOf(database: DatabaseSync): Query {
  const statements = new Map<string, StatementSync>()
  return (sql, ...values) => {
    const statement = statements.get(sql) ?? database.prepare(sql)
    statements.set(sql, statement)
    return statement.all(...values)
  }
}

function journalIn(query: Query): Storage['journal'] {
  return {
    load: async (run_id) =>
      query('SELECT phase, place, begun, ended FROM journal WHERE run_id = ? ORDER BY rowid', run_id).map(
        ({ phase, place, begun, ended }): JournalEntry => ({
          phase: phase as JournalEntry['phase'],
          index: Number(place),
          begun: begun === null ? null : parsed(begun),
          end: ended === null ? null : parsed(ended),
        }),
      ),
    begin: async (run_id, begun) =>
      void query('INSERT OR REPLACE INTO journal VALUES (?, ?, ?, ?, NULL)', run_id, begun.phase, begun.index, JSON.stringify(begun)),
    end: async (run_id, { phase, index }, end) =>
      void query(
        `INSERT INTO journal VALUES (?1, ?2, ?3, NULL, ?4) ON CONFLICT (run_id, phase, place) DO UPDATE SET ended = ?4`,
        run_id,
        phase,
        index,
        JSON.stringify(end),
      ),
  }
}

function runsIn(query: Query): RunStore {
  return {
    async begin(record) {
      const { run_id, skill_id, started_at, approval_id } = record
      query('BEGIN IMMEDIATE')
      try {
        query('INSERT INTO runs VALUES (?, ?, ?, NULL, NULL, ?)', run_id, skill_id, started_at, JSON.stringify(record))
        query('DELETE FROM approvals WHERE approval_id = ?', approval_id)
        query('COMMIT')
      } catch (error) {
        query('ROLLBACK')
        throw error
      }
    },
    // What it would be resumed from holds secrets, and is needed no more.
    end: async (run_id, { status, ended_at }) => {
      query('UPDATE runs SET ended_at = ?, status = ?, record = NULL WHERE run_id = ?', ended_at, status, run_id)
      query('DELETE FROM journal WHERE run_id = ?', run_id)
    },
    unfinished: () =>
      query('SELECT record FROM runs WHERE record IS NOT NULL ORDER BY rowid').map(({ record }) => parsed<RunRecord>(record)),
    usage(id) {
      const [row] = query(
        'SELECT max(started_at) AS last_run_at, count(*) FILTER (WHERE record IS NOT NULL) AS running FROM runs WHERE skill_id = ?',
        id,
      )
      const last_run_at = row?.['last_run_at']
      return { last_run_at: typeof last_run_at === 'number' ? last_run_at : null, running: Number(row?.['running'] ?? 0) }
    },
    recentSuccess() {
      const last = query(
        `SELECT skill_id, status FROM runs AS run WHERE record IS NULL
           AND rowid = (SELECT max(rowid) FROM runs WHERE skill_id = run.skill_id AND record IS NULL)`,
      )
      return new Set(last.filter(({ status }) => status === 'ok' || status === 'reused').map(({ skill_id }) => String(skill_id)))
    },
  }
}

function approvalsIn(query: Query): ApprovalStore {
  const those = (approved: 0 | 1) =>
    query('SELECT run FROM approvals WHERE approved = ? ORDER BY rowid', approved).map(({ run }) => parsed<ApprovedRun>(run))
  return {
    put: (run) => void query('INSERT INTO approvals (approval_id, run) VALUES (?, ?)', run.approval_id, JSON.stringify(run)),
    approve: (id) =>
      parsedFirst<ApprovedRun>(
        query('UPDATE approvals SET approved = 1 WHERE approval_id = ? AND approved = 0 RETURNING run AS value', id),
      ) ?? null,
    waiting: () => those(0),
    approved: () => those(1),
    remove: (id) => query('DELETE FROM approvals WHERE approval_id = ? RETURNING approval_id', id).length > 0,
  }
}

function logIn(query: Query): LogStore {
  return {
    append: (entry) => void query('INSERT INTO log (trace_id, entry) VALUES (?, ?)', entry.trace_id, JSON.stringify(entry)),
    entries: ({ trace_id = null, after = 0, limit = 10_000 } = {}) =>
      query(
        'SELECT seq, entry FROM log WHERE seq > ?1 AND (?2 IS NULL OR trace_id = ?2) ORDER BY seq LIMIT ?3',
        after,
        trace_id,
        limit,
      ).map(({ seq, entry }): LogEntry => ({ ...parsed<Omit<LogEntry, 'seq'> & JsonFields>(entry), seq: Number(seq) }) as LogEntry),
  }
}

const parsed = <Value>(text: unknown): Value => JSON.parse(String(text)) as Value

const parsedFirst = <Value>([row]: Row[]): Value | undefined => (row === undefined ? undefined : parsed<Value>(row['value']))
