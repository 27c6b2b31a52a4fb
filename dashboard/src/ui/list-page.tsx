import type { ListPage } from '../../../src/contract/operation.ts'
import { useFilters } from './filters.tsx'
import { List } from './list.tsx'
import { Page } from './page.tsx'

/** The page of a list that a feature declares. */
export const listPage = <Item,>(of: ListPage<Item>) =>
  function Listed() {
    const { given, form } = useFilters(of.flags)
    return (
      <Page title={of.title} needs={of.needs}>
        {form}
        <List of={of} fields={{ ...given, limit: 100 }} label={of.title} empty={of.empty} />
      </Page>
    )
  }
