import { findGoods, type FoundGoods } from '../../market/goods.ts'
import { notFound } from '../problems/refusals.ts'

export { findGoods, stateOfGoods, type FoundGoods } from '../../market/goods.ts'

export async function demandGoods(db: D1Database, reference: string): Promise<FoundGoods> {
  const found = await findGoods(db, reference)
  if (!found) throw notFound(`There is no version ${reference}.`)
  return found
}
