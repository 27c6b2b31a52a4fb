import { lookUpReflex, lookUpSkill, type Asker } from '../../artifacts/look-up.ts'
import { storedReflex, storedSkill } from '../../artifacts/platform.ts'
import type { ArtifactKind } from '../../contract/artifact.ts'
import type { SoldGoods } from './contract/ledger-api.ts'
import type { Owner } from '../../contract/artifact.ts'
import { artifactIn } from './contract/listing.ts'
import { manifestSchema } from '../../skills/manifest/manifest.ts'
import { originalOf, originsOf } from './store/goods.ts'

/** A version as the Ledger lists it, and its owner. */
export type FoundGoods = { kind: ArtifactKind; id: string; version: string; owner: Owner; goods: SoldGoods }

/** True for goods that the asker may know of: sales of others are answered as unknown ones. */
export async function mayKnow(db: D1Database, reference: string, asker: Asker): Promise<boolean> {
  const { kind, id, version } = artifactIn(reference)
  if (kind === 'skill') return (await lookUpSkill(db, { id, version }, asker)) !== null
  return COUNT.test(version) && (await lookUpReflex(db, { id, version: Number(version) }, asker)) !== null
}

const COUNT = /^[1-9]\d{0,5}$/

/** `reflex:ID@V` or `skill:ID@V` in D1, as far as it exists. */
export async function findGoods(db: D1Database, reference: string): Promise<FoundGoods | null> {
  const named = artifactIn(reference)
  const { kind, id, version } = named
  const found = kind === 'reflex' ? await reflexGoods(db, id, version) : await skillGoods(db, id, version)
  if (!found) return null
  const { owner, created_at, ...facts } = found
  const [original, origins] = await Promise.all([originalOf(db, { ...named, created_at }), originsOf(db, named)])
  return { ...named, owner, goods: { ...facts, owner_scopes: owner.scopes, original, origins } }
}

/** The state of a version; `missing` without one. */
export const stateOfGoods = async (db: D1Database, reference: string): Promise<string> =>
  (await findGoods(db, reference))?.goods.state ?? 'missing'

type Facts = Omit<SoldGoods, 'original' | 'origins' | 'owner_scopes'> & { owner: Owner; created_at: number }

async function reflexGoods(db: D1Database, id: string, version: string): Promise<Facts | null> {
  const found = COUNT.test(version) ? await storedReflex(db, id, Number(version)) : null
  if (!found) return null
  const { hash, state, description, created_at, code, owner, owner_id, scopes } = found
  const tools = literals(code, /action_type["']?\s*:\s*["']([\w.-]{1,64})["']/g)
  const event_types = literals(code, /\btype\s*===?\s*["']([\w.:-]{1,100})["']/g)
  return { hash, state, description, created_at, tools, event_types, owner: { owner, owner_id, scopes } }
}

async function skillGoods(db: D1Database, id: string, version: string): Promise<Facts | null> {
  const found = await storedSkill(db, id, version)
  if (!found) return null
  const { hash, state, created_at, manifest, owner, owner_id, scopes } = found
  const { description = '' } = manifest
  const parsed = manifestSchema.safeParse(manifest)
  const tools = [...new Set(parsed.data?.plan.steps.map(({ tool }) => tool))]
  return { hash, state, description, created_at, tools, event_types: [], owner: { owner, owner_id, scopes } }
}

const literals = (code: string, pattern: RegExp): string[] =>
  [...new Set(Array.from(code.matchAll(pattern), ([, literal = '']) => literal))].slice(0, 20)
