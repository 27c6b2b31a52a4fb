import { reflexTitle } from '../../../src/contract/lists/reflexes.ts'
import { useGet } from './use-get.ts'

/** The titles of learned reflexes among these ids; other reflexes are named by their ids. */
export function useReflexTitles(ids: readonly string[]): (id: string) => string {
  const learned = ids.some((id) => id.startsWith('learned.'))
  const { value } = useGet<{ items: { id: string; description: string }[] }>(learned ? '/v1/reflexes?limit=1000&q=learned.' : null)
  const titles = new Map(value?.items.map((one) => [one.id, reflexTitle(one)]))
  return (id) => titles.get(id) ?? id
}
