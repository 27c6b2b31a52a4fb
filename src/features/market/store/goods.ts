import { drizzle } from 'drizzle-orm/d1'
import { and, asc, eq, lte, ne, sql } from 'drizzle-orm'
import type { ArtifactKind } from '../../../contract/artifact.ts'
import { artifactVersions } from '../../../store/artifacts/tables.ts'

export type GoodsVersion = { kind: ArtifactKind; id: string; version: string }

/** The first version of another artifact that does the same, if it is older than this one. */
export async function originalOf(
  db: D1Database,
  { kind, id, version, created_at }: GoodsVersion & { created_at: number },
): Promise<string | null> {
  const { kind: kinds, id: ids, created_at: time, version: versions, program } = artifactVersions
  const own = sql`(SELECT nullif(own.program, '') FROM artifact_versions AS own WHERE own.kind = ${kind} AND own.id = ${id} AND own.version = ${version})`
  const found = await drizzle(db)
    .select({ id: ids, version: versions })
    .from(artifactVersions)
    .where(and(eq(kinds, kind), ne(ids, id), eq(program, own), lte(time, created_at)))
    .orderBy(asc(time))
    .limit(1)
    .get()
  return found ? `${kind}:${found.id}@${found.version}` : null
}

const MOST_ORIGINS = 10

const ORIGIN = `provenance->>'$.origin.id'`
/** The count ends a line that returns to itself. A version may derive from each older one. */
const LINE = `WITH RECURSIVE line (id, version, place) AS (VALUES (?2, ?3, 0) UNION
    SELECT older.${ORIGIN}, CAST(older.provenance->>'$.origin.version' AS TEXT), place + 1 FROM line
    JOIN artifact_versions AS own ON own.kind = ?1 AND own.id = line.id AND own.version = line.version
    JOIN artifact_versions AS older ON older.kind = ?1 AND older.id = line.id AND older.precedence <= own.precedence
    WHERE older.${ORIGIN} IS NOT NULL AND place < ${MOST_ORIGINS})
  SELECT id FROM line WHERE id <> ?2 GROUP BY id ORDER BY min(place)`

/** The artifacts that a version was copied from, bought or free; nearest first. */
export async function originsOf(db: D1Database, { kind, id, version }: GoodsVersion): Promise<string[]> {
  const { results } = await db.prepare(LINE).bind(kind, id, version).all<{ id: string }>()
  return results.map((row) => `${kind}:${row.id}`)
}
