import type { ComponentChildren } from 'preact'
import { hasRole, useGet, type Data } from '../../api/index.ts'
import type { ServerHealth } from '../../api/health.ts'
import { Empty } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { count, compact } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { incidentsOf } from './incidents.ts'
import { levelsOf, type Summary, type Totals } from './levels.ts'

type Approvals = { items: { id: string; expires_at: string }[]; next_cursor: string | null }
const MOST = 100
const MINUTE_MS = 60_000

export function Now({ health: { value: health }, recent }: { health: Data<ServerHealth>; recent: Data<Summary> }) {
  const mayDecide = hasRole('operator')
  const approvals = useGet<Approvals>(mayDecide ? `/v1/approvals?status=pending&limit=${MOST}` : null, { every_ms: 10_000 })
  const waiting = approvals.value?.items ?? []
  // Numbers that were loaded before D1 went away may not be true any more.
  const isAway = health?.database.ok === false
  const unknown = 'not known: D1 does not answer'
  const first = waiting.map(({ expires_at }) => expires_at).sort()[0]
  return (
    <div class="cards now">
      <Figure title="Events per second" value={isAway ? '–' : recent.value && compact(rateOf(recent.value))}>
        {isAway ? unknown : 'over the last minute'}
      </Figure>
      <Figure title="Open events" value={health && count(health.inboxes?.open)} path="/scopes">
        in {count(health?.inboxes?.scopes)} scopes
      </Figure>
      {mayDecide ? (
        <Figure
          title="Approvals waiting"
          value={isAway ? '–' : approvals.value && `${waiting.length}${approvals.value.next_cursor === null ? '' : '+'}`}
          path="/approvals"
          tone={waiting.length > 0 ? 'wait' : ''}
        >
          {isAway ? (
            unknown
          ) : first === undefined ? (
            'nothing to decide'
          ) : (
            <>
              first expires <Time at={first} />
            </>
          )}
        </Figure>
      ) : (
        <Figure title="Approvals waiting" value="–">
          needs the role operator
        </Figure>
      )}
      <Figure
        title="Dead letters"
        value={health && count(health.dead_letters?.total)}
        path="/dead-letters"
        tone={(health?.dead_letters?.total ?? 0) > 0 ? 'bad' : ''}
      >
        events that Reflex gave up on
      </Figure>
    </div>
  )
}

/** Over the running minute and the one before. */
function rateOf({ metrics, until }: Summary): number {
  const now = Date.parse(until)
  const since = (Math.floor(now / MINUTE_MS) - 1) * MINUTE_MS
  const recent = (metrics[0]?.points ?? []).filter(({ at }) => Date.parse(at) >= since)
  return (1000 * recent.reduce((sum, { value }) => sum + (value ?? 0), 0)) / (now - since)
}

type FigureProps = { title: string; value: string | undefined; path?: string; tone?: string; children: ComponentChildren }

function Figure({ title, value, path, tone = '', children }: FigureProps) {
  return (
    <div class="card figure">
      <h2>{path === undefined ? title : <a href={path}>{title}</a>}</h2>
      <p class={`number ${tone}`}>{value ?? '…'}</p>
      <p class="quiet">{children}</p>
    </div>
  )
}

/** A model that nobody has called yet is only known to be configured. */
const modelText = ({ model, model_calls: calls }: ServerHealth): ComponentChildren =>
  calls?.last_answer_at ? (
    <>
      the model {model}, last <Time at={calls.last_answer_at} />
    </>
  ) : (
    `the configuration of the model ${model}, which no scope has called yet`
  )

export function Incidents({ health }: { health: ServerHealth }) {
  const incidents = incidentsOf(health)
  return (
    <Section title="Incidents of the system">
      {incidents.length === 0 ? (
        <p class="ok">✓ Nothing is wrong: D1 and the queue answer, and so does {modelText(health)}.</p>
      ) : (
        <ul class="incidents">
          {incidents.map(({ title, detail, tone, next }) => (
            <li key={title} class="card">
              <b class={tone}>
                {tone === 'bad' ? '✕' : '!'} {title}
              </b>{' '}
              <Text text={detail} /> {next && <a href={next.path}>{next.text}</a>}
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}

export function Levels({ totals, health }: { totals: Totals; health: ServerHealth | undefined }) {
  return (
    <table class="plain card">
      <thead>
        <tr>
          <th scope="col">Level</th>
          <th scope="col">Now</th>
          <th scope="col">Target</th>
        </tr>
      </thead>
      <tbody>
        {levelsOf(totals, health).map(({ name, value, target, show }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class={value === null ? 'quiet' : value > target ? 'bad' : 'ok'}>
              {value === null ? 'no data' : `${value > target ? '✕' : '✓'} ${show(value)}`}
            </td>
            <td>≤ {show(target)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

export function Largest({ health }: { health: ServerHealth | undefined }) {
  const largest = health?.inboxes?.largest ?? []
  if (largest.length === 0) return <Empty title="No event waits in any inbox." />
  return (
    <table class="plain card">
      <thead>
        <tr>
          <th scope="col">Scope</th>
          <th scope="col">Agent</th>
          <th scope="col">Open events</th>
        </tr>
      </thead>
      <tbody>
        {largest.map(({ scope, agent, open }) => (
          <tr key={scope}>
            <th scope="row">
              <ScopeLink scope={scope} />
            </th>
            <td>{agent}</td>
            <td>{count(open)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
