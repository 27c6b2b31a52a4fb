import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { away } from '../api/away.ts'
import { own, endSession } from '../api/session.ts'
import { Notices } from '../ui/notices.tsx'
import { useLocation } from 'preact-iso'
import { setTheme, theme, type Theme } from './theme.ts'
import { GlobalKeys } from './keys.tsx'
import { Navigation } from './navigation.tsx'
import { Watch } from '../api/waiting.ts'

const themes: { value: Theme; text: string }[] = [
  { value: 'system', text: 'System colours' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
]

/** Opens below the name of the key. */
function Menu() {
  const { route } = useLocation()
  const key = own.value
  return (
    <div class="menu">
      <p class="quiet">
        Roles: {key?.roles.join(', ')}
        <br />
        Scopes: {key?.scopes.join(', ')}
      </p>
      <label>
        Colours
        <select value={theme} onChange={({ currentTarget }) => setTheme(currentTarget.value as Theme)}>
          {themes.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <a href="/docs/">Documentation</a>
      <button
        type="button"
        onClick={() => {
          endSession()
          route('/')
        }}
      >
        Sign out
      </button>
    </div>
  )
}

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
      <Watch />
      <GlobalKeys />
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
