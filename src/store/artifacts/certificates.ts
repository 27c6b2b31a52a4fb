import { and, desc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { jsonChunks } from '../../base/byte-length.ts'
import type { Certificate } from '../../contract/reports/certificate.ts'
import { certificates } from './tables.ts'

/** Maximum number of rows read per reflex: those of the scopes that reported last. */
const MOST_ROWS = 1000

export type ScopeCertificate = { version: number; scope: string; certificate: Certificate }

/** Writes a scope's certificates. Stale ones change nothing. `now` in ms. */
export async function tellCertificates(db: D1Database, scope: string, told: readonly Certificate[], now: number): Promise<void> {
  const entries = told.map((certificate) =>
    JSON.stringify({ id: certificate.subject.id, version: Number(certificate.subject.version), certificate }),
  )
  const chunks = jsonChunks(entries)
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(UPSERT).bind(chunk, scope, now)))
}

const UPSERT = `INSERT INTO certificates (reflex_id, version, scope, certificate, updated_at)
  SELECT value->>'id', value->>'version', ?2, value->'certificate', ?3 FROM json_each(?1) WHERE true
  ON CONFLICT (reflex_id, version, scope) DO UPDATE SET certificate = excluded.certificate, updated_at = excluded.updated_at
  WHERE excluded.updated_at >= certificates.updated_at`

export async function forgetCertificates(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = 'DELETE FROM certificates WHERE rowid IN (SELECT rowid FROM certificates WHERE updated_at < ?1 LIMIT ?2)'
  return (await db.prepare(sql).bind(before, limit).run()).meta.changes
}

/** One row for each scope and version, or of one version; last reported first. */
export async function certificatesOf(db: D1Database, id: string, of?: number): Promise<ScopeCertificate[]> {
  const { reflex_id, version, scope, certificate, updated_at } = certificates
  return drizzle(db)
    .select({ version, scope, certificate })
    .from(certificates)
    .where(and(eq(reflex_id, id), of === undefined ? undefined : eq(version, of)))
    .orderBy(desc(updated_at))
    .limit(MOST_ROWS)
}
