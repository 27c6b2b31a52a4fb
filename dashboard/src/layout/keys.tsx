import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { ErrorBoundary, lazy } from 'preact-iso'
import { useKeys } from '../ui/use-keys.ts'

type Opened = { onClose: () => void }
const load = () => import('../finding.tsx')
const Finder = lazy(() => load().then((file): ComponentType<Opened> => file.Finder))
const Keys = lazy(() => load().then((file): ComponentType<Opened> => file.Keys))

/** Moves the focus to the link of another row. Lists that select a row do so themselves. */
function step(by: number): void {
  const table = document.querySelector('main .table')
  const links = Array.from(table?.querySelectorAll<HTMLElement>('tbody tr td:first-child a, tbody tr td:first-child button') ?? [])
  if (!table || links.length === 0 || table.querySelector('tr[aria-current]')) return
  const place = links.findIndex((link) => link === document.activeElement)
  links[Math.min(links.length - 1, Math.max(0, place + by))]?.focus()
}

const search = () => document.querySelector<HTMLInputElement>('main input[type=search], main input[name=q], main form input')?.focus()

/** The keys of all pages: j and k, /, ?, and Ctrl-K or ⌘K. */
export function GlobalKeys() {
  const opened = useSignal<'find' | 'keys' | null>(null)
  useKeys({ j: () => step(1), k: () => step(-1), '/': search, '?': () => (opened.value = 'keys') })
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== 'k' || document.querySelector('dialog')) return
      event.preventDefault()
      opened.value = 'find'
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
  const close = () => (opened.value = null)
  if (opened.value === null) return null
  // It waits for the file of the dialogs.
  return <ErrorBoundary>{opened.value === 'find' ? <Finder onClose={close} /> : <Keys onClose={close} />}</ErrorBoundary>
}
