import { useLocation } from 'preact-iso'
import { pages } from '../pages.ts'

export function Navigation() {
  const { path } = useLocation()
  const isCurrent = (entry: string) => path === entry || path.startsWith(`${entry}/`)
  return (
    <nav aria-label="Pages">
      <ul>
        {pages.map(
          ([entry, , text]) =>
            text && (
              <li key={entry}>
                <a href={entry} {...(isCurrent(entry) && { 'aria-current': 'page' as const })}>
                  {text}
                </a>
              </li>
            ),
        )}
      </ul>
    </nav>
  )
}
