import { useEffect } from 'preact/hooks'

/**
 * Asks before a link of the page, or the browser, leaves what is not saved. `what`: null if all is
 * saved.
 */
export function useUnsaved(what: string | null): void {
  useEffect(() => {
    if (what === null) return undefined
    const leave = (event: BeforeUnloadEvent) => event.preventDefault()
    const follow = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest('a[href]') : null
      if (link === null || link.getAttribute('target') === '_blank' || confirm(`Leave without saving ${what}?`)) return
      event.preventDefault()
      event.stopPropagation()
    }
    addEventListener('beforeunload', leave)
    // The router listens on the window, too: this comes first.
    addEventListener('click', follow, true)
    return () => {
      removeEventListener('beforeunload', leave)
      removeEventListener('click', follow, true)
    }
  }, [what])
}
