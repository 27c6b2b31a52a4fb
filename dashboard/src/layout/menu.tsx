import { useLocation } from 'preact-iso'
import { endSession, own } from '../api/session.ts'
import { setTheme, theme, type Theme } from './theme.ts'

const themes: { value: Theme; text: string }[] = [
  { value: 'system', text: 'System colours' },
  { value: 'light', text: 'Light' },
  { value: 'dark', text: 'Dark' },
]

/** Opens below the name of the key. */
export function Menu() {
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
  )
}
