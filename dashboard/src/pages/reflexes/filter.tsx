import { useLocation } from 'preact-iso'
import { query } from '../../api/index.ts'
import { statusText } from '../../ui/status.tsx'

/** A state and a text to search for, in the address of the page. */
export function Filter({ states }: { states: readonly string[] }) {
  const { path, query: asked, route } = useLocation()
  const set = (name: string, value: string) => route(path + query({ ...asked, [name]: value }), true)
  return (
    <>
      <label class="inline">
        State
        <select value={asked['state'] ?? ''} onChange={({ currentTarget }) => set('state', currentTarget.value)}>
          <option value="">any</option>
          {states.map((state) => (
            <option key={state} value={state}>
              {statusText(state)}
            </option>
          ))}
        </select>
      </label>
      <label class="inline">
        Search
        <input type="search" value={asked['q'] ?? ''} onChange={({ currentTarget }) => set('q', currentTarget.value)} />
      </label>
    </>
  )
}
