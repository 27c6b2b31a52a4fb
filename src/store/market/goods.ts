import { drizzle } from 'drizzle-orm/d1'
import { and, asc, eq, ne } from 'drizzle-orm'
import type { ArtifactKind } from '../../contract/artifact.ts'
import { artifactVersions } from '../artifacts/tables.ts'

export type Version = { kind: ArtifactKind; id: string; version: string }

/** The first version of another artifact with the same content, if it is older than this one. */
export async function originalOf(db: D1Database, { kind, id, hash, created_at }: Version & { hash: string; created_at: number }) {
  const { kind: kinds, id: ids, hash: hashes, created_at: time, version } = artifactVersions
  const found = await drizzle(db)
    .select({ id: ids, version, created_at: time })
    .from(artifactVersions)
    .where(and(eq(kinds, kind), eq(hashes, hash), ne(ids, id)))
    .orderBy(asc(time))
    .limit(1)
    .get()
  return found && found.created_at <= created_at ? `${kind}:${found.id}@${found.version}` : null
}
