import { useLocation } from 'preact-iso'

/** The tab is in the address, so that a link opens it. */
export function useTab(tabs: readonly string[], parameter = 'tab'): string {
  const { query } = useLocation()
  const asked = query[parameter]
  return asked !== undefined && tabs.includes(asked) ? asked : (tabs[0] ?? '')
}

type TabsProps = { label: string; tabs: readonly { id: string; text: string }[]; parameter?: string }

export function Tabs({ label, tabs, parameter = 'tab' }: TabsProps) {
  const { path, query } = useLocation()
  const current = useTab(
    tabs.map(({ id }) => id),
    parameter,
  )
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ id, text }) => (
        <a
          key={id}
          href={`${path}?${new URLSearchParams({ ...query, [parameter]: id }).toString()}`}
          {...(id === current && { 'aria-current': 'true' as const })}
        >
          {text}
        </a>
      ))}
    </nav>
  )
}
