import { useLocation } from 'preact-iso'
import type { ComponentChildren } from 'preact'
import { away } from '../api/away.ts'
import { endSession, own } from '../api/session.ts'
import { Notices } from '../ui/notices.tsx'
import { Navigation } from './navigation.tsx'
import { setTheme, theme, type Theme } from './theme.ts'

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

const themes: { value: Theme; text: string }[] = [
  { value: 'system', text: 'System colours' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
]

function Account() {
  const { route } = useLocation()
  const key = own.value
  return (
    <details class="account">
      <summary>{key?.name ?? 'Key'}</summary>
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
        <a href="/v1/docs">API reference</a>
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
    </details>
  )
}
