import { and, eq, inArray } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { artifacts, artifactVersions } from '../../../store/artifacts/tables.ts'
import { controlPlane } from './tables.ts'

export type ControlPlaneState = Omit<typeof controlPlane.$inferSelect, 'id'>

/** The state of this deployment as a client; null before its first contact. */
export async function readControlPlane(db: D1Database): Promise<ControlPlaneState | null> {
  return (await drizzle(db).select().from(controlPlane).get()) ?? null
}

export async function writeControlPlane(db: D1Database, state: ControlPlaneState): Promise<void> {
  await drizzle(db)
    .insert(controlPlane)
    .values({ ...state, id: 'client' })
    .onConflictDoUpdate({ target: controlPlane.id, set: state })
}

/** The versions of skills of an owner that are not retired, as `id@version`. */
export async function heldVersions(db: D1Database, owner_id: string): Promise<{ id: string; version: string }[]> {
  return drizzle(db)
    .select({ id: artifactVersions.id, version: artifactVersions.version })
    .from(artifacts)
    .innerJoin(artifactVersions, and(eq(artifactVersions.kind, artifacts.kind), eq(artifactVersions.id, artifacts.id)))
    .where(and(eq(artifacts.kind, 'skill'), eq(artifacts.owner_id, owner_id), inArray(artifactVersions.state, ['draft', 'active'])))
}
