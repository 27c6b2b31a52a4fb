import { useLocation } from 'preact-iso'
import { query } from '../../api/index.ts'
import { Field, Select } from '../../ui/form.tsx'
import { SavedViews } from '../../ui/views.tsx'
import { statusText } from '../../ui/status.tsx'

/** A state and a text to search for, in the address of the page. */
export function Filter({ states }: { states: readonly string[] }) {
  const { path, query: asked, route } = useLocation()
  const set = (name: string, value: string) => route(path + query({ ...asked, [name]: value }), true)
  return (
    <>
      <Select
        label="State"
        value={asked['state'] ?? ''}
        options={{ '': 'any', ...Object.fromEntries(states.map((state) => [state, statusText(state)])) }}
        onChange={(state) => set('state', state)}
      />
      <Field label="Search" value={asked['q'] ?? ''} onInput={(text) => set('q', text)} stacked={false} />
      <SavedViews />
    </>
  )
}
