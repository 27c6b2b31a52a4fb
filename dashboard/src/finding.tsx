import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { reflexTitle } from '../../src/contract/lists/reflexes.ts'
import { part, query, useGet } from './api/index.ts'
import { pages } from './pages.ts'
import { Dialog } from './ui/dialog.tsx'
import { scopeLink, traceLink } from './ui/links.tsx'
import { visible } from './ui/text.tsx'

type FoundPlace = { kind: string; text: string; path: string }
type Listed<Item> = { items: Item[] }
const MOST = 6
const TRACE = /^[0-9a-f]{32}$/

const links: FoundPlace[] = pages.flatMap(([path, , group, text]) =>
  text === undefined ? [] : [{ kind: 'page', text: text === group ? text : `${group}: ${text}`, path }],
)

/** Changes that a page offers, by what they are called there. */
const actions: FoundPlace[] = [
  { kind: 'action', text: 'Decide on approvals', path: '/approvals' },
  { kind: 'action', text: 'Retry dead letters', path: '/dead-letters' },
  { kind: 'action', text: 'Create or revoke a key', path: '/keys' },
  { kind: 'action', text: 'Start a run of learning', path: '/learning' },
]

/** The scopes, traces, reflexes, skills, pages and actions that a text finds. */
function usePlaces(text: string): FoundPlace[] {
  const asked = (at: string, name: string) => (text === '' ? null : `${at}${query({ [name]: text, limit: MOST })}`)
  const scopes = useGet<Listed<{ scope: string }>>(asked('/v1/scopes', 'search')).value?.items ?? []
  const reflexes = useGet<Listed<{ id: string; description: string }>>(asked('/v1/reflexes', 'q')).value?.items ?? []
  const skills = useGet<Listed<{ id: string }>>(asked('/v1/skills', 'q')).value?.items ?? []
  const isNamed = (place: FoundPlace) => place.text.toLowerCase().includes(text.toLowerCase())
  return [
    ...(TRACE.test(text) ? [{ kind: 'trace', text, path: traceLink(text) }] : []),
    ...scopes.map(({ scope }) => ({ kind: 'scope', text: scope, path: scopeLink(scope) })),
    ...reflexes.map((one) => ({ kind: 'reflex', text: reflexTitle(one), path: `/reflexes/${part(one.id)}` })),
    ...skills.map(({ id }) => ({ kind: 'skill', text: id, path: `/skills/${part(id)}` })),
    ...[...links, ...actions].filter(isNamed),
    ...(text === '' ? [] : [{ kind: 'search', text: `Activity with “${text}”`, path: `/traces${query({ q: text })}` }]),
  ]
}

/** Finds by a text, and opens what is chosen with the arrows and Enter. */
export function Finder({ onClose }: { onClose: () => void }) {
  const { route } = useLocation()
  const text = useSignal('')
  const at = useSignal(0)
  const places = usePlaces(text.value.trim())
  const chosen = Math.min(at.value, places.length - 1)
  const open = ({ path }: FoundPlace) => {
    onClose()
    route(path)
  }
  const pressed = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by === undefined && event.key !== 'Enter') return
    event.preventDefault()
    const place = places[chosen]
    if (by === undefined) return place && open(place)
    at.value = Math.min(places.length - 1, Math.max(0, chosen + by))
  }
  return (
    <Dialog title="Find" onClose={onClose}>
      <label>
        Scopes, traces, reflexes, skills, pages and actions
        <input
          type="search"
          autocomplete="off"
          value={text}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value
            at.value = 0
          }}
          onKeyDown={pressed}
        />
      </label>
      <p role="status" class="unseen">
        {places[chosen] && `${places[chosen].kind} ${places[chosen].text}`}
      </p>
      <ul class="places" aria-label="Found">
        {places.map((place, index) => (
          <li key={place.kind + place.path + place.text}>
            <a href={place.path} onClick={onClose} {...(index === chosen && { 'aria-current': 'true' as const })}>
              <span class="quiet">{place.kind}</span> {visible(place.text)}
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}

const keys: [key: string, what: string][] = [
  ['Ctrl K', 'find scopes, traces, reflexes, skills, pages and actions; ⌘ K on a Mac'],
  ['j', 'the next item of a list'],
  ['k', 'the item before'],
  ['Enter', 'open it'],
  ['/', 'search on this page'],
  ['a', 'approve, and r reject, on the page Approvals'],
  ['Esc', 'close a dialog'],
  ['?', 'these keys'],
]

export const Keys = ({ onClose }: { onClose: () => void }) => (
  <Dialog title="Keys" onClose={onClose}>
    <table class="plain">
      <tbody>
        {keys.map(([key, what]) => (
          <tr key={key}>
            <th scope="row">
              <kbd>{key}</kbd>
            </th>
            <td>{what}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Dialog>
)
