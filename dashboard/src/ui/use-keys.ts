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
