import { Empty } from '../../ui/feedback.tsx'
import { count, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import type { Totals } from './levels.ts'

const deciders = [
  { metric: 'events.by_filter', text: 'Filter', path: '/scopes' },
  { metric: 'events.by_reflex', text: 'Reflex', path: '/reflexes' },
  { metric: 'events.by_decision', text: 'Decision model', path: '/decisions' },
  { metric: 'events.by_turn', text: 'Turn', path: '/scopes' },
  { metric: 'events.by_condition', text: 'Nobody: the condition did not hold', path: '/scopes' },
  { metric: 'events.dead_lettered', text: 'Dead letter', path: '/dead-letters' },
] as const

/** The shares of the events by who decided them, as one bar and as a table. */
export function Decided({ totals }: { totals: Totals }) {
  const all = deciders.reduce((sum, { metric }) => sum + (totals[metric] ?? 0), 0)
  const shares = deciders.map((decider, index) => ({ ...decider, index, events: totals[decider.metric] ?? 0 }))
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
          <div class="bar" aria-hidden="true">
            {shares.map(
              ({ metric, index, events }) => events > 0 && <span key={metric} class={`part-${index}`} style={{ flexGrow: events }} />,
            )}
          </div>
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
