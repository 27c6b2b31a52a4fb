import type { ListPage } from '../../../src/contract/shown.ts'
import { useFilters } from './filters.tsx'
import { List } from './list.tsx'
import { Page } from './page.tsx'

const declared = import.meta.glob<ListPage<never>>('./*/page.ts', { base: '../../../src/features', eager: true, import: 'page' })

/** The page of a list that a feature declares. `name`: the folder of the feature. */
export function listPage(name: string) {
  const of = declared[`./${name}/page.ts`] as ListPage<never>
  return function Listed() {
    const { given, form } = useFilters(of.flags)
    return (
      <Page title={of.title} needs={of.needs}>
        {form}
        <List of={of} fields={{ ...given, limit: 100 }} label={of.title} empty={of.empty} />
      </Page>
    )
  }
}
