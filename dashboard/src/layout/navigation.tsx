import { useLocation } from 'preact-iso'
import { declaredPages } from '../declared-pages.ts'

const entries: { path: string; text: string }[] = [
  { path: '/', text: 'Overview' },
  { path: '/scopes', text: 'Scopes' },
  { path: '/traces', text: 'Traces' },
  { path: '/reflexes', text: 'Reflexes' },
  { path: '/decisions', text: 'Decision models' },
  { path: '/skills', text: 'Skills' },
  { path: '/learning', text: 'Learning' },
  { path: '/market', text: 'Market' },
  { path: '/approvals', text: 'Approvals' },
  { path: '/dead-letters', text: 'Dead letters' },
  { path: '/incidents', text: 'Incidents' },
  { path: '/keys', text: 'Keys' },
  ...declaredPages.map(({ path, title }) => ({ path, text: title })),
]

export function Navigation() {
  const { path } = useLocation()
  const isCurrent = (entry: string) => (entry === '/' ? path === '/' : path === entry || path.startsWith(`${entry}/`))
  return (
    <nav aria-label="Pages">
      <ul>
        {entries.map((entry) => (
          <li key={entry.path}>
            <a href={entry.path} {...(isCurrent(entry.path) && { 'aria-current': 'page' as const })}>
              {entry.text}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  )
}
