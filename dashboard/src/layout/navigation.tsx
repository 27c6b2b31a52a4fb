import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import { useEffect } from 'preact/hooks'
import { badgeOf, waiting } from '../api/waiting.ts'
import { groups, pages } from '../pages.ts'

const links = pages.flatMap(([path, , group, text]) => (text === undefined ? [] : [{ path, group, text }]))
const isAt = (entry: string, path: string) => path === entry || path.startsWith(`${entry}/`)

function badges(): Record<string, string> {
  const { approvals, letters } = waiting.value
  return { Now: badgeOf(approvals, letters), Approvals: badgeOf(approvals), 'Dead letters': badgeOf(letters) }
}

type EntryProps = { href: string; text: string; current: boolean; badge: string | undefined }

const Entry = ({ href, text, current, badge }: EntryProps) => (
  <li>
    <a href={href} {...(current && { 'aria-current': 'page' as const })}>
      {text}
      <Badge waits={badge} />
    </a>
  </li>
)

const Badge = ({ waits }: { waits: string | undefined }) =>
  waits ? (
    <span class="badge">
      {waits}
      <span class="unseen"> waiting</span>
    </span>
  ) : null

/** The groups, and the pages of the current one. In a narrow window a button shows them. */
export function Navigation() {
  const { path } = useLocation()
  const isOpened = useSignal(false)
  useEffect(() => void (isOpened.value = false), [path])
  const here = links.find((link) => isAt(link.path, path))
  const within = links.filter(({ group }) => group === here?.group)
  const waits = badges()
  return (
    <>
      <button type="button" class="fold" aria-expanded={isOpened.value} onClick={() => (isOpened.value = !isOpened.value)}>
        Menu
        <Badge waits={waits['Now']} />
      </button>
      <nav aria-label="Pages" class={isOpened.value ? 'opened' : ''}>
        <ul>
          {groups.map((group) => (
            <Entry
              key={group}
              href={links.find((link) => link.group === group)?.path ?? '/'}
              text={group}
              current={group === here?.group}
              badge={group === 'Now' ? waits[group] : undefined}
            />
          ))}
        </ul>
        {within.length > 1 && (
          <ul class="within" aria-label={`Pages of ${here?.group}`}>
            {within.map(({ path: href, text }) => (
              <Entry key={href} href={href} text={text} current={href === here?.path} badge={waits[text]} />
            ))}
          </ul>
        )}
      </nav>
    </>
  )
}
