import { and, desc, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Certificate } from '../../contract/certificate.ts'
import { forgetReports, tellReports } from './scope-reports.ts'
import { certificates } from './tables.ts'

/** Maximum number of rows read per reflex, from the scopes that reported last. */
const MOST_ROWS = 1000

type ScopeCertificate = { version: number; scope: string; certificate: Certificate }

/** Writes a scope's certificates. Stale ones change nothing. `now` in ms. */
export function tellCertificates(db: D1Database, scope: string, told: readonly Certificate[], now: number): Promise<void> {
  const reports = told.map((certificate) => ({
    reflex_id: certificate.subject.id,
    version: Number(certificate.subject.version),
    certificate,
  }))
  return tellReports(db, { table: 'certificates', column: 'certificate' }, { scope, reports, now })
}

export const forgetCertificates = (db: D1Database, before: number, limit: number): Promise<number> =>
  forgetReports(db, 'certificates', before, limit)

/** The certificates of several reflexes, last reported first. */
export async function certificatesOfAll(db: D1Database, ids: readonly string[]): Promise<(ScopeCertificate & { reflex_id: string })[]> {
  const { reflex_id, version, scope, certificate, updated_at } = certificates
  return drizzle(db)
    .select({ reflex_id, version, scope, certificate })
    .from(certificates)
    .where(sql`${reflex_id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`)
    .orderBy(desc(updated_at))
    .limit(MOST_ROWS)
}

/** The certificate of a version in a scope, as the scope reported it last. */
export async function certificateIn(
  db: D1Database,
  in_scope: string,
  { id, version: of }: { id: string; version: number },
): Promise<Certificate | undefined> {
  const { reflex_id, version, scope, certificate } = certificates
  const isIt = and(eq(reflex_id, id), eq(version, of), eq(scope, in_scope))
  const [found] = await drizzle(db).select({ certificate }).from(certificates).where(isIt)
  return found?.certificate
}

/** A row for each scope and version, or of one version; last reported first. */
export async function certificatesOf(db: D1Database, id: string, of?: number): Promise<ScopeCertificate[]> {
  const { reflex_id, version, scope, certificate, updated_at } = certificates
  return drizzle(db)
    .select({ version, scope, certificate })
    .from(certificates)
    .where(and(eq(reflex_id, id), of === undefined ? undefined : eq(version, of)))
    .orderBy(desc(updated_at))
    .limit(MOST_ROWS)
}
