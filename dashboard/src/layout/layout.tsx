import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { away } from '../api/away.ts'
import { own } from '../api/session.ts'
import { Notices } from '../ui/notices.tsx'
import { Menu } from './menu.tsx'
import { Navigation } from './navigation.tsx'

export function Layout({ children }: { children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <a href="/" class="brand">
          Reflex
        </a>
        <Navigation />
        <Account />
      </header>
      <Away />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Notices />
    </>
  )
}

function Away() {
  return (
    <div role="status" class="away" hidden={!away.value}>
      {away.value && 'The server does not answer. What you see is from before; the page continues when the server is back.'}
    </div>
  )
}

/** Escape closes the menu, as does a click beside it: it would cover the page. */
function Account() {
  const isOpened = useSignal(false)
  const details = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const { current } = details
      const leaves = event instanceof KeyboardEvent ? event.key === 'Escape' : !current?.contains(event.target as Node)
      if (current && leaves) current.open = false
    }
    const kinds = ['click', 'keydown']
    for (const kind of kinds) document.addEventListener(kind, close)
    return () => kinds.forEach((kind) => document.removeEventListener(kind, close))
  }, [])
  return (
    <details class="account" ref={details} onToggle={() => (isOpened.value = true)}>
      <summary>{own.value?.name ?? 'Key'}</summary>
      {isOpened.value && <Menu />}
    </details>
  )
}
