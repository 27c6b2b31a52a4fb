import type { ComponentChildren } from 'preact'
import { part, useGet } from '../../api/index.ts'
import type { ServerHealth } from '../../api/health.ts'
import { badgeOf, waiting } from '../../api/waiting.ts'
import { counted } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { incidentsOf } from './incidents.ts'

/** A model that nobody has called yet is only known to be configured. */
const modelText = ({ model, model_calls: calls }: ServerHealth): ComponentChildren =>
  calls?.last_answer_at ? (
    <>
      the model named {model}, last <Time at={calls.last_answer_at} />
    </>
  ) : (
    `the configuration of the model ${model}, which no scope has called yet`
  )

type Raised = { items: { id: string; at: string; summary: string }[] }
const HOUR_MS = 3_600_000
type Listed = { items: { id: string; idle: unknown }[] }
const IDLE_MS = 60_000
const MOST_NAMED = 3

/** When the first approval expires. */
export const firstOf = (approvals: (typeof waiting.value)['approvals']): string | undefined =>
  approvals?.items.map(({ expires_at }) => expires_at).sort()[0]

type ItemProps = { tone: string; title: string; next?: { text: string; path: string } | undefined; children?: ComponentChildren }

const Item = ({ tone, title, next, children }: ItemProps) => (
  <li class="card">
    <b class={tone}>
      {tone === 'bad' ? '✕' : '!'} {title}
    </b>{' '}
    {children} {next && <a href={next.path}>{next.text}</a>}
  </li>
)

/** Incidents, and work that waits for a person: they stand above all numbers. */
export function Trouble({ health }: { health: ServerHealth }) {
  const reflexes = useGet<Listed>('/v1/reflexes?limit=200', { every_ms: IDLE_MS })
  const raised = useGet<Raised>('/v1/alerts?limit=20', { every_ms: IDLE_MS })
  const alerts = (raised.value?.items ?? []).filter(({ at }) => Date.parse(at) > Date.now() - HOUR_MS)
  const idle = (reflexes.value?.items ?? []).filter(({ idle }) => idle)
  const { approvals, letters } = waiting.value
  const asked = badgeOf(approvals)
  const failed = badgeOf(letters)
  const first = firstOf(approvals)
  const incidents = incidentsOf(health)
  const isWell = incidents.length === 0
  return (
    <Section title="What needs you">
      {isWell && <p class="ok">✓ Reflex works: D1 and the queue answer, and so does {modelText(health)}.</p>}
      <ul class="incidents">
        {incidents.map(({ title, detail, tone, next }) => (
          <Item key={title} tone={tone} title={title} next={next}>
            <Text text={detail} />
          </Item>
        ))}
        {failed && <Item tone="bad" title={`Dead letters: ${failed}`} next={{ text: 'See why they failed', path: '/dead-letters' }} />}
        {asked && (
          <Item tone="wait" title={`Approvals: ${asked}`} next={{ text: 'Decide', path: '/approvals' }}>
            The next one expires <Time at={first} />.
          </Item>
        )}
        {alerts.length > 0 && (
          <Item tone="wait" title={counted(alerts.length, 'alert') + ' within an hour'} next={{ text: 'Alerts', path: '/alerts' }}>
            <Text text={alerts[0]?.summary ?? ''} />.
          </Item>
        )}
        {idle.length > 0 && (
          <Item
            tone="wait"
            title={`${counted(idle.length, 'active reflex', 'active reflexes')} without a certificate in force`}
            next={{ text: 'Active reflexes', path: '/reflexes?state=active' }}
          >
            The slow path answers instead of{' '}
            {idle.slice(0, MOST_NAMED).map(({ id }, index) => (
              <span key={id}>
                {index > 0 && ', '}
                <a href={`/reflexes/${part(id)}`}>{visible(id)}</a>
              </span>
            ))}
            {idle.length > MOST_NAMED && ` and ${idle.length - MOST_NAMED} more`}.
          </Item>
        )}
      </ul>
    </Section>
  )
}
