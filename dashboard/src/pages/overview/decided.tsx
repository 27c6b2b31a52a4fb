import { query } from '../../api/index.ts'
import { Empty } from '../../ui/feedback.tsx'
import { count, counted, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { bucketsOf, type Metrics } from './buckets.ts'
import type { Summary } from './levels.ts'

const deciders = [
  { metric: 'events.by_filter', text: 'Filter', path: '/scopes' },
  { metric: 'events.by_reflex', text: 'Reflex', path: '/reflexes' },
  { metric: 'events.by_decision', text: 'Decision model', path: '/decisions' },
  { metric: 'events.by_turn', text: 'Turn', path: '/scopes' },
  { metric: 'events.by_condition', text: 'Nobody: no agent acted', path: '/scopes' },
  { metric: 'events.dead_lettered', text: 'Dead letter', path: '/dead-letters' },
] as const

/** The events by who decided them: over time, and their shares as a table. */
export function Decided({ metrics, summary }: { metrics: Metrics; summary: Summary }) {
  const all = deciders.reduce((sum, { metric }) => sum + (metrics[metric]?.total ?? 0), 0)
  const shares = deciders.map((decider, index) => ({ ...decider, index, events: metrics[decider.metric]?.total ?? 0 }))
  return (
    <Section title="Events, by who decided them">
      {all === 0 ? (
        <Empty title="No event ended in this time.">
          <p>
            Send one: <code>POST /v1/scopes/:scope/events</code>, or run <code>npm run demo</code>.
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Course metrics={metrics} summary={summary} />
          <table class="legend">
            <tbody>
              {shares.map(({ metric, text, path, index, events }) => (
                <tr key={metric}>
                  <th scope="row">
                    <span class={`dot part-${index}`} aria-hidden="true" /> <a href={path}>{text}</a>
                  </th>
                  <td>{percent(events / all)}</td>
                  <td>{count(events)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  )
}

const FAILURES = ['events.dead_lettered', 'turns.failed', 'model.failures', 'effects.failed']
const MINUTE = { hour: '2-digit', minute: '2-digit' } as const
const DAY = { day: 'numeric', month: 'short' } as const

const named = (text: string) => ({ title: text, 'aria-label': text })

/** A column for each step of time, above its failures. It leads to the events of its time. */
function Course({ metrics, summary }: { metrics: Metrics; summary: Summary }) {
  const { step, first, valuesOf } = bucketsOf(summary, metrics)
  const parts = deciders.map(({ metric }) => valuesOf(metric))
  const failures = valuesOf(...FAILURES)
  const sums = failures.map((_, place) => parts.reduce((sum, values) => sum + (values[place] ?? 0), 0))
  const most = Math.max(...sums)
  const format = new Intl.DateTimeFormat(undefined, summary.bucket === 'day' ? DAY : MINUTE)
  const timeOf = (place: number) => format.format(first + place * step)
  const linkOf = (place: number) =>
    `/traces${query({ since: new Date(first + place * step).toISOString(), until: new Date(first + (place + 1) * step).toISOString() })}`
  return (
    <figure class="course" aria-label={`Events per ${summary.bucket}; the most are ${count(most)}`}>
      <div>
        {sums.map((sum, place) => (
          <a
            key={place}
            href={linkOf(place)}
            tabIndex={-1}
            {...named(`${timeOf(place)}: ${counted(sum, 'event')}, ${counted(failures[place] ?? 0, 'failure')}`)}
          >
            {parts.map((values, index) => {
              const value = values[place] ?? 0
              return value > 0 && <span key={index} class={`part-${index}`} style={{ height: `${(92 * value) / most}%` }} />
            })}
            <i class={failures[place] ? 'part-5' : ''} />
          </a>
        ))}
      </div>
      <figcaption class="quiet">
        {[0, Math.floor(sums.length / 2), sums.length - 1].map((place) => (
          <span key={place}>{timeOf(place)}</span>
        ))}
      </figcaption>
    </figure>
  )
}
