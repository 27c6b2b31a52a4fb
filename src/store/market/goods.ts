import { drizzle } from 'drizzle-orm/d1'
import { and, asc, eq, ne, sql, type SQLWrapper } from 'drizzle-orm'
import type { ArtifactKind } from '../../contract/artifact.ts'
import { artifactVersions } from '../artifacts/tables.ts'

export type Version = { kind: ArtifactKind; id: string; version: string }

/** The content of a skill without its name: an id and a version are part of each manifest. */
const unnamed = (content: SQLWrapper) => sql`json_remove(${content}, '$.id', '$.version', '$.scope')`

/** The first version of another artifact with the same content, if it is older than this one. */
export async function originalOf(
  db: D1Database,
  { kind, id, version, hash, created_at }: Version & { hash: string; created_at: number },
): Promise<string | null> {
  const { kind: kinds, id: ids, hash: hashes, created_at: time, version: versions, description, content } = artifactVersions
  const own = sql`SELECT own.description, ${unnamed(sql`own.content`)} FROM artifact_versions AS own
    WHERE own.kind = ${kind} AND own.id = ${id} AND own.version = ${version}`
  const same = kind === 'reflex' ? eq(hashes, hash) : sql`(${description}, ${unnamed(content)}) = (${own})`
  const found = await drizzle(db)
    .select({ id: ids, version: versions, created_at: time })
    .from(artifactVersions)
    .where(and(eq(kinds, kind), ne(ids, id), same))
    .orderBy(asc(time))
    .limit(1)
    .get()
  return found && found.created_at <= created_at ? `${kind}:${found.id}@${found.version}` : null
}
