import type { ReflexVersion } from '../contract/reflex.ts'
import type { SkillVersion } from '../contract/skill.ts'
import { reflexes, skills } from './kinds.ts'

/**
 * Versions for what the platform does in its own name, and shows to nobody: deliveries and trials
 * of the market, learning, and replays of what a scope ran. A lint rule lists who may import this.
 */
export const storedReflex = (db: D1Database, id: string, version?: number): Promise<ReflexVersion | null> => reflexes.find(db, id, version)
export const storedSkill = (db: D1Database, id: string, version?: string): Promise<SkillVersion | null> => skills.find(db, id, version)

export const storedReflexVersions = (db: D1Database, id: string) => reflexes.versions(db, id)
export const storedSkillVersions = (db: D1Database, id: string) => skills.versions(db, id)
