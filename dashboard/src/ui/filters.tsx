import { useLocation } from 'preact-iso'
import type { Flag } from '../../../src/contract/shown.ts'
import { query } from '../api/index.ts'
import { submitted } from '../api/use-action.ts'
import { SavedViews } from './views.tsx'
import { fieldOf, FormField, parsed } from './request-form.tsx'

type Given = Readonly<Record<string, string | undefined>>

/** The options of a list's command as a form, whose values are in the address, and these values. */
export function useFilters(flags: readonly Flag[]) {
  const { path, query: asked, route } = useLocation()
  const fields = flags.map(fieldOf)
  const given: Given = Object.fromEntries(fields.map(({ name }) => [name, asked[name]]))
  const submit = (event: SubmitEvent) => {
    const valueOf = submitted(event)
    route(path + query(Object.fromEntries(fields.map(({ name, is }) => [name, valueOf(name) && String(parsed(valueOf(name), is))]))))
  }
  const form = (
    <search>
      <form class="actions" onSubmit={submit} key={JSON.stringify(given)}>
        {fields.map((field) => (
          <FormField key={field.name} field={field} value={asked[field.name]} />
        ))}
        <button type="submit">Filter</button>
      </form>
      <SavedViews />
    </search>
  )
  return { given, form }
}
