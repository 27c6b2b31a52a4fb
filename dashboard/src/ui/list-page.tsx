import { useLocation } from 'preact-iso'
import type { ListPage } from '../../../src/contract/operation.ts'
import { query } from '../api/index.ts'
import { submitted } from '../api/use-action.ts'
import { List } from './list.tsx'
import { Page } from './page.tsx'
import { fieldsOf, FormField, textOf } from './request-form.tsx'

/** The page of a list that a feature declares. The filters are in the address. */
export const listPage = <Item,>(of: ListPage<Item>) =>
  function Listed() {
    const { path, query: asked, route } = useLocation()
    const fields = fieldsOf({ at: of.at, usage: '', flags: of.flags })
    const given = Object.fromEntries(fields.map(({ name }) => [name, asked[name] ?? '']))
    const submit = (event: SubmitEvent) => {
      const valueOf = submitted(event)
      route(path + query(Object.fromEntries(fields.map(({ name, is }) => [name, textOf(valueOf(name).trim(), is)]))))
    }
    return (
      <Page title={of.title} needs={of.needs}>
        <p class="quiet">{of.says}</p>
        <search>
          <form class="filters" onSubmit={submit} key={JSON.stringify(given)}>
            {fields.map((field) => (
              <FormField key={field.name} field={field} value={given[field.name] ?? ''} />
            ))}
            <button type="submit">Filter</button>
          </form>
        </search>
        <List of={of} fields={{ ...given, limit: 100 }} label={of.title} empty={of.empty} />
      </Page>
    )
  }
