import { signal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { query } from '../api/request.ts'
import { submitted } from '../api/use-action.ts'

const STORED = 'reflex.views'
/** Queries by their names, by the paths of their lists. */
type Views = Readonly<Record<string, Readonly<Record<string, string>>>>
const all = signal(stored())

function stored(): Views {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? '{}') as Views
  } catch {
    return {}
  }
}

/** The named filters of a list: the address has a filter and its name, this browser keeps both. */
export function SavedViews() {
  const { path, query: asked, route } = useLocation()
  const { view = '', ...filter } = asked
  const now = query(filter)
  const saved = all.value[path] ?? {}
  const name = Object.keys(saved).find((one) => saved[one] === now)
  const keep = (views: Views[string]) => {
    all.value = { ...all.value, [path]: views }
    localStorage.setItem(STORED, JSON.stringify(all.value))
  }
  const save = (event: SubmitEvent) => {
    const given = submitted(event)('view')
    keep({ ...saved, [given]: now })
    route(path + query({ ...filter, view: given }), true)
  }
  const forget = () => {
    keep(Object.fromEntries(Object.entries(saved).filter(([one]) => one !== name)))
    route(path + now, true)
  }
  if (now === '' && Object.keys(saved).length === 0) return null
  return (
    <nav class="actions" aria-label="Saved views">
      {Object.entries(saved).map(([one, asks]) => (
        <a key={one} href={`${path}${asks}&view=${encodeURIComponent(one)}`} aria-current={one === name ? 'page' : undefined}>
          {one}
        </a>
      ))}
      {name === undefined ? (
        now !== '' && (
          <form class="actions" onSubmit={save}>
            <input name="view" aria-label="Name of this view" value={view} maxLength={40} required placeholder="Name of this view" />
            <button type="submit">Save view</button>
          </form>
        )
      ) : (
        <button type="button" onClick={forget}>
          Forget this view
        </button>
      )}
    </nav>
  )
}
