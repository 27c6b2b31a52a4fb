import { patternMatchesSql } from '../../../contract/principal.ts'
import { allMetricsSql, sortMetricsNow } from '../../../store/artifacts/reflex-metrics.ts'

/** The counters of a version, over all scopes. Missing if no scope has run it. */
export type ReflexCounts = {
  id: string
  version: string
  scopes: number
  other_scopes: number
  acting_runs: number
  fires: number
  failures: number
  overruled: number
  agreed: number
  disagreed: number
  model_calls_saved: number
  cost_saved_usd: number
}
/** The certificates of a version: those in force, and the number of all and of lapsed ones. */
export type Proofs = { id: string; version: string; n: number; k: number; bound: number | null; lapsed: number; event_types: string }
type SkillCounts = { id: string; scopes: number; fires: number; failures: number }
type SkillTested = { id: string; version: string; hash: string; passed: 0 | 1 }

type SoldVersion = { artifact_id: string; version: string; hash: string }

/** Reads the measurements of these reflexes and skills. `now` in ms. */
export async function readFigures(db: D1Database, of: { reflexes: readonly SoldVersion[]; skills: readonly SoldVersion[]; now: number }) {
  const asked = (versions: readonly SoldVersion[]) =>
    JSON.stringify(versions.map(({ artifact_id, version, hash }) => [artifact_id, version, hash]))
  await sortMetricsNow(db)
  const reflexes = asked(of.reflexes)
  const skills = asked(of.skills)
  const [counts, proofs, runs, tests] = await db.batch<never>([
    db.prepare(REFLEX_COUNTS).bind(reflexes),
    db.prepare(PROOFS).bind(reflexes, of.now),
    db.prepare(SKILL_COUNTS).bind(skills),
    db.prepare(SKILL_TESTS).bind(skills),
  ])
  return {
    counts: (counts?.results ?? []) as ReflexCounts[],
    proofs: (proofs?.results ?? []) as Proofs[],
    runs: (runs?.results ?? []) as SkillCounts[],
    tests: (tests?.results ?? []) as SkillTested[],
  }
}

const ASKED = `(SELECT DISTINCT value->>0 AS id, value->>1 AS version FROM json_each(?1)) AS asked`
const isAsked = (row: string): string =>
  `(${row}.reflex_id, ${row}.version) IN (SELECT value->>0, CAST(value->>1 AS INTEGER) FROM json_each(?1))`
const metric = (path: string): string => `(metrics->>'${path}')`
const IS_OWN = `EXISTS (SELECT 1 FROM artifacts, json_each(artifacts.scopes) WHERE artifacts.kind = 'reflex' AND artifacts.id = reflex_id
  AND ${patternMatchesSql('m.scope')})`

const REFLEX_COUNTS = `SELECT asked.id, asked.version, sum(${metric('runs')} > 0) AS scopes, sum(${metric('runs')} > 0 AND NOT ${IS_OWN}) AS other_scopes,
    sum(${metric('runs')} - ${metric('$.shadow.runs')}) AS acting_runs, sum(${metric('fired')} - ${metric('$.shadow.fired')}) AS fires,
    sum(${metric('failed')}) AS failures, sum(${metric('overruled')}) AS overruled,
    sum(${metric('$.shadow.agreed')}) AS agreed, sum(${metric('$.shadow.disagreed')}) AS disagreed,
    sum(${metric('model_calls_saved')}) AS model_calls_saved, sum(${metric('cost_saved_usd')}) AS cost_saved_usd
  FROM (${allMetricsSql(isAsked)}) AS m CROSS JOIN ${ASKED} ON m.reflex_id = asked.id AND m.version = CAST(asked.version AS INTEGER)
  GROUP BY 1, 2`

const certified = (path: string): string => `(certificate->>'${path}')`
const IN_FORCE = `(${certified('bound')} IS NOT NULL AND ${certified('lapsed')} IS NULL AND ${certified('expires_at')} > ?2)`

const PROOFS = `SELECT asked.id, asked.version, coalesce(sum(iif(${IN_FORCE}, ${certified('n')}, 0)), 0) AS n,
    coalesce(sum(iif(${IN_FORCE}, ${certified('k')}, 0)), 0) AS k, min(iif(${IN_FORCE}, ${certified('bound')}, NULL)) AS bound,
    sum(${certified('lapsed')} IS NOT NULL) AS lapsed,
    (SELECT json_group_array(type) FROM (SELECT DISTINCT stratum.value->>'event_type' AS type
      FROM certificates AS other, json_each(other.certificate->'strata') AS stratum
      WHERE other.reflex_id = asked.id AND other.version = CAST(asked.version AS INTEGER) AND type <> '*' LIMIT 50)) AS event_types
  FROM ${ASKED} CROSS JOIN certificates AS c ON c.reflex_id = asked.id AND c.version = CAST(asked.version AS INTEGER)
  GROUP BY 1, 2`

const count = (name: string): string => `sum(coalesce(label.value->>'${name}', 0))`
/** Statistics of skills have no versions. Nothing is read if no skill is asked for. */
const SKILL_COUNTS = `SELECT label.key AS id, count(*) AS scopes, ${count('calls')} AS fires, ${count('failed')} AS failures
  FROM (SELECT "values" FROM statistics WHERE family = 'skill' AND bucket = 'all' AND start = 0
      UNION ALL SELECT e.value FROM statistics_packs AS w CROSS JOIN json_each(w.scopes) AS e
      WHERE w.family = 'skill' AND w.bucket = 'all' AND w.start = 0
        AND NOT EXISTS (SELECT 1 FROM statistics AS own WHERE own.family = 'skill' AND own.bucket = 'all' AND own.start = 0 AND own.scope = e.key)) AS s
    CROSS JOIN json_each(s."values") AS label
  WHERE ?1 <> '[]' AND label.key IN (SELECT value->>0 FROM json_each(?1)) GROUP BY 1`

const SKILL_TESTS = `SELECT skill_id AS id, version, hash, passed FROM json_each(?1) AS asked
  CROSS JOIN skill_tests ON skill_id = asked.value->>0 AND version = asked.value->>1 AND hash = asked.value->>2`
