import { registerReflex, registerSkill } from '../../../artifacts/kinds.ts'
import { notifyScopes } from '../../../artifacts/notify.ts'
import { storedReflex, storedSkill } from '../../../artifacts/platform.ts'
import type { Owner } from '../../../contract/artifact.ts'
import type { Deal } from '../contract/deal.ts'
import { artifactIn } from '../contract/listing.ts'
import type { Env } from '../../../env.ts'
import { hashManifest, manifestSchema } from '../../../skills/manifest/manifest.ts'
import { changeOwner, deliverLicence, ownerOf } from '../store/ownership.ts'
import type { GoodsVersion } from '../store/goods.ts'
import { storeOf } from '../../../store/store.ts'
import type { SentDeal } from '../deals/notify.ts'

type Delivered = Deal & { delivery: NonNullable<Deal['delivery']>; owners: SentDeal['owners'] }

/**
 * The consequences of a deal in D1, once the Ledger has delivered: an entitlement, a copy, or a new
 * owner. Idempotent: each newer state of the deal comes here, and each may come again.
 */
export async function deliver(env: Env, { deal, owners }: Pick<SentDeal, 'deal' | 'owners'>, now: number): Promise<void> {
  const { delivery } = deal
  if (!delivery) return
  const goods = artifactIn(deal.artifact)
  const changed = await changedBy(env, { ...deal, delivery, owners }, goods, now)
  if (changed && goods.kind === 'reflex') await notifyScopes(env, goods.id)
}

async function changedBy(env: Env, deal: Delivered, goods: GoodsVersion, now: number): Promise<boolean> {
  const db = storeOf(env)
  const { deal_id, hash, terms, delivery } = deal
  if (delivery.kind === 'licence') {
    const { expires_at, fires, in_use } = delivery
    const ends = expires_at === null ? null : Date.parse(expires_at)
    const right = {
      deal_id,
      ...goods,
      hash,
      expires_at: ends,
      fires,
      metered: terms.per_decision !== undefined,
      in_use,
      ended_at: in_use ? null : now,
    }
    return deliverLicence(
      db,
      goods,
      (delivery.scopes ?? []).map((pattern) => ({ ...right, pattern })),
    )
  }
  const buyer = await demandOwner(db, deal, 'buyer')
  if (delivery.kind === 'ownership') return changeOwner(db, goods, { deal_id, seller: await demandOwner(db, deal, 'seller'), buyer, now })
  const made = { ...buyer, now, sealed: true }
  await (goods.kind === 'reflex'
    ? copyReflex(db, goods, artifactIn(delivery.artifact), made)
    : copySkill(db, goods, artifactIn(delivery.artifact), made))
  return false
}

async function demandOwner(db: D1Database, { owners, ...deal }: Delivered, side: 'seller' | 'buyer'): Promise<Owner> {
  const owner = await ownerOf(db, deal[side], owners?.[side] ?? null)
  if (!owner) throw new Error(`the deal ${deal.deal_id} waits: its ${side} ${deal[side]} does not name one key`)
  return owner
}

type Copier = Owner & { now: number; sealed: boolean }

async function copyReflex(db: D1Database, of: GoodsVersion, to: GoodsVersion, made: Copier): Promise<void> {
  const found = await storedReflex(db, of.id, Number(of.version))
  if (!found) throw missing(of)
  const { code, hash, description } = found
  const there = await storedReflex(db, to.id, Number(to.version))
  if (there) return demandSame(to, there, { ...made, hash })
  const origin = { id: of.id, version: Number(of.version), hash }
  const provenance = { by: made.owner, scope: null, template: null, origin }
  demandMade(to, await registerReflex(db, { ...made, id: to.id, code, hash, description, state: 'shadow', provenance }))
}

/** The id is part of a manifest, so that a copy has a hash of its own. */
async function copySkill(db: D1Database, of: GoodsVersion, to: GoodsVersion, made: Copier): Promise<void> {
  const found = await storedSkill(db, of.id, of.version)
  if (!found) throw missing(of)
  const manifest = manifestSchema.parse({ ...found.manifest, id: to.id, scope: 'project' })
  const origin = { id: of.id, version: of.version, hash: found.hash }
  const provenance = { by: made.owner, scope: null, origin }
  const hash = await hashManifest(manifest)
  const there = await storedSkill(db, to.id, to.version)
  if (there) return demandSame(to, there, { ...made, hash })
  demandMade(to, await registerSkill(db, { ...made, manifest, hash, provenance }))
}

const missing = ({ kind, id, version }: GoodsVersion): Error => new Error(`there is no ${kind} ${id}@${version} to copy`)

type Content = Pick<Owner, 'owner_id'> & { hash: string }

/** A repeated delivery finds its own copy. Anything else under the id is an error. */
function demandSame({ kind, id, version }: GoodsVersion, there: Content, { owner_id, hash }: Content): void {
  if (there.owner_id !== owner_id || there.hash !== hash) throw new Error(`the ${kind} ${id}@${version} exists, and is not the copy`)
}

function demandMade({ kind, id }: GoodsVersion, made: { ok: true } | { ok: false; detail: string }): void {
  if (!made.ok) throw new Error(`the copy ${kind} ${id} is not registered: ${made.detail}`)
}
