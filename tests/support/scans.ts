/** Partial indexes whose rows are few: open events, begun effects. Limits hold their number. */
const OPEN_ROWS = /USING (?:COVERING )?INDEX (?:events_(?:claim|delayed|lease)|effects_open|scopes_(?:open|parked|model_failing))\b/

/** Tables that grow with what happens, in D1 and in objects. */
const GROWING: ReadonlySet<string> = new Set([
  'action_keys',
  'approvals',
  'calls',
  'dead_letters',
  'done_keys',
  'effects',
  'episodes',
  'events',
  'log',
  'pack_index',
  'packs',
  'parts',
  'queued',
  'reflex_metrics_packs',
  'scopes',
  'skill_outputs',
  'skill_runs',
  'statistics',
  'statistics_packs',
  'statistics_sums',
  'statistics_waiting',
  'transfers',
])

const HOURLY = 'retention, at most once an hour'
const OLDEST = 'retention reads the oldest rows until one is younger'
const RUNS = 'the runs that retention has left, for a proposal'
const AGED = 'a page in the order of an index, up to its limit; a filter that matches little reads more'
const LEARNING = 'a run of learning, over what it has read'
const LEDGER = 'the audit of the Ledger reads all of it'

/** Statements that scan what grows all the same, by their beginning, and why that may be. */
const KNOWN_SCANS: readonly (readonly [start: RegExp, why: string])[] = [
  [/^SELECT seq, id, [\w, ]+ FROM events WHERE seq < coalesce\(/, OLDEST],
  [/^DELETE FROM events WHERE seq IN \(SELECT seq FROM events WHERE seq < coalesce\(/, OLDEST],
  [/^DELETE FROM log WHERE seq IN \(SELECT seq FROM log ORDER BY seq LIMIT/, OLDEST],
  [/^DELETE FROM effects WHERE \(owner, phase, place\) IN/, HOURLY],
  [/^DELETE FROM (?:skill_runs|skill_outputs|parts|action_keys) WHERE \S+(?: \S+)? IN \(/, HOURLY],
  [/^SELECT hash, at, value FROM parts WHERE at </, HOURLY],
  [/^SELECT min\(at\) AS at FROM parts$/, 'the parts that are left where the log has no entry'],
  [/^DELETE FROM action_keys WHERE effect = /, 'the undo of an effect'],
  [/^UPDATE events SET parked_at = \?1 WHERE status IN/, 'a clock that was ahead, once it is corrected'],
  [/^SELECT seq, at, type, source FROM \(SELECT .* ORDER BY seq DESC LIMIT 20000\)/, 'the newest 20,000 events, once after a wake'],
  [
    /^SELECT min\(seq\) AS seq FROM \(SELECT seq FROM events WHERE status <> 'ignored'/,
    'the newest events, up to a limit of those not ignored',
  ],
  [/^SELECT seq, at, entries, chain, head FROM log ORDER BY seq/, 'a search of the whole log, read row by row'],
  [/^SELECT seq FROM log WHERE at < \? ORDER BY seq DESC LIMIT 1$/, 'the newest rows until one is older, after D1 refused a pack'],
  [/^SELECT seq, chain, head FROM log ORDER BY seq$/, 'the rows that are older than the chain, for a receipt; retention deletes them'],
  [/^SELECT skill_id\b.* FROM .*skill_runs/, RUNS],
  [/^SELECT status, result, ended_at FROM .*skill_runs WHERE run_id = \?$/, 'the runs that retention has left, for the key of one'],
  [/^SELECT phase, place FROM effects WHERE phase <> 'call'/, 'the check of a journal'],
  [/^SELECT (?:id|body) FROM .*episodes/, LEARNING],
  [/^DELETE FROM episodes/, LEARNING],
  [/^SELECT min\(at\) AS at FROM \(SELECT \* FROM \(SELECT at FROM transfers ORDER BY seq LIMIT 1\)/, 'the oldest transfer'],
  [/^SELECT \(SELECT count\(\*\) FROM transfers\)/, LEDGER],
  [/^WITH open AS \(SELECT id FROM transfers/, LEDGER],
  [/^select .* from "(\w+)" where "\1"\."id" in \(SELECT key FROM \(SELECT key, sum\(bytes\) OVER \(ORDER BY at DESC/, AGED],
  [/^SELECT sum\(accepted_at < \?1\) AS events, min\(accepted_at\) AS oldest FROM \(/, 'the oldest 10,000 events'],
  [
    /^SELECT CAST\(id AS TEXT\) AS id, events FROM \(SELECT id, events, sum\(octet_length/,
    'one row for thousands of events, once they are too many',
  ],
  [/^SELECT (?:CAST\(min\(first\) AS TEXT\)|coalesce\(sum\(CASE WHEN accepted_at) .* FROM packs$/, 'one row for thousands of events'],
  [/^SELECT \('waiting ' \|\| id/, 'what waits for the next sweep, up to a limit'],
  [/^DELETE FROM reflex_metrics_packs WHERE/, 'retention: one row for hundreds of scopes'],
  [/^SELECT min\(place\) AS place FROM pack_index GROUP BY/, 'the index of packs, once a pack is full'],
  [/^DELETE FROM pack_index WHERE accepted_at </, 'the index of packs, once retention has taken some'],
  [/^SELECT count\(\*\) AS n FROM queued WHERE due_at </, 'the batches in flight, for a page of health'],
  [/^select "scope" from "scopes" where \("scopes"."updated_at" > \? and/, 'after a clock that was ahead, until it would be that late'],
  [/^select "scope", "updated_at" from "scopes" limit \?$/, 'the first scopes, up to a limit'],
  [/^select count\(\*\) from "scopes"/, 'the number of scopes, counted in an index'],
  [/^select nullif\(max\(.*"model_answered_at"\)?\), 0\) from "scopes"/, 'a page of health'],
  [/^select sum\("spans_exported"\), sum\("spans_dropped"\) from "scopes"/, 'a scrape of metrics'],
  [/^select "error_key", .* from \(select .* from "dead_letters" .* limit \?\)/, 'the newest dead letters, up to a limit'],
  [/^select count\(\*\) from "dead_letters"/, 'the start of a job on dead letters counts what it will do'],
  [/^select "dead_lettered_at", "id" from "dead_letters" .* limit \? offset \?$/, 'where a part of the letters ends, in an index'],
  [/^select "origin", count\(\*\) from "dead_letters"/, 'a page of health counts what waits for a person'],
]

export type Step = { detail: string }

/** A statement without its layout, and one for all times in it. */
export const shapeOf = (sql: string): string =>
  sql
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\d{6,}/g, 'N')
    .trim()

/** Why a statement with this plan is refused: the growing tables that it scans; else null. */
export function refusalOf(sql: string, steps: readonly Step[]): string | null {
  const shape = shapeOf(sql)
  const found = scanned(shape, steps)
  if (found.length === 0 || isLimited(shape, steps) || KNOWN_SCANS.some(([start]) => start.test(shape))) return null
  return `${found.join(', ')} in: ${shape}`
}

/** Growing tables that a plan scans, by their own names: a plan has a statement's aliases. */
function scanned(shape: string, steps: readonly Step[]): string[] {
  return steps.flatMap(({ detail }) => {
    const [, name] = /^SCAN (\w+)(?! VIRTUAL)/.exec(detail) ?? []
    if (name === undefined || OPEN_ROWS.test(detail)) return []
    // A part of the statement itself, by `WITH`.
    if (new RegExp(`\\b${name} (?:\\([^)]*\\) )?AS (?:MATERIALIZED )?\\(`).test(shape)) return []
    const table = new RegExp(`(\\w+)"? AS "?${name}\\b`, 'i').exec(shape)?.[1] ?? name
    return GROWING.has(table) ? [table] : []
  })
}

/** It reads no more than its limit: in the order of an index, and it leaves out nothing. */
const isLimited = (shape: string, steps: readonly Step[]): boolean =>
  /^SELECT [^()]+ FROM "?\w+"?(?: ORDER BY [^()]+)? LIMIT \S+$/.test(shape) && !steps.some(({ detail }) => detail.includes('TEMP B-TREE'))
