import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'

/**
 * Keys of a page, by `KeyboardEvent.key`. They do nothing while somebody writes or a dialog is
 * open.
 */
export function useKeys(keys: Readonly<Record<string, () => void>>): void {
  const current = useRef(keys)
  current.current = keys
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { target } = event
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      if (target instanceof Element && target.closest('input, textarea, select, [contenteditable], dialog')) return
      const act = current.current[event.key]
      if (!act) return
      event.preventDefault()
      act()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}

type Selection = { id: string | null; select: (id: string | null) => void; move: (by: number) => void }

/**
 * The selected item of a list, which is in the address, so that a link opens it. The keys j and k
 * move through the list.
 */
export function useSelection(ids: readonly string[]): Selection {
  const { path, query, route } = useLocation()
  const asked = query['id']
  const id = asked ?? ids[0] ?? null
  const select = (next: string | null) => {
    const { id: _, ...rest } = query
    const search = new URLSearchParams(next === null ? rest : { ...rest, id: next }).toString()
    route(search === '' ? path : `${path}?${search}`, true)
  }
  const move = (by: number) => {
    const place = id === null ? -1 : ids.indexOf(id)
    const next = ids[Math.min(ids.length - 1, Math.max(0, place + by))]
    if (next !== undefined) select(next)
  }
  useKeys({ j: () => move(1), k: () => move(-1) })
  return { id, select, move }
}
