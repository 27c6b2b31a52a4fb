import { findGoods, mayKnow, type FoundGoods } from '../goods.ts'
import type { Principal } from '../../../contract/principal.ts'
import { notFound } from '../../../http/problems/refusals.ts'

export { findGoods, stateOfGoods, type FoundGoods } from '../goods.ts'

export async function demandGoods(db: D1Database, reference: string, key: Principal): Promise<FoundGoods> {
  const found = (await mayKnow(db, reference, { key })) ? await findGoods(db, reference) : null
  if (!found) throw notFound(`There is no version ${reference}.`)
  return found
}
