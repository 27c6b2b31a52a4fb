import './overview.css'
import { query, useGet, type Data, hasRole } from '../../api/index.ts'
import type { ServerHealth } from '../../api/health.ts'
import { Loaded, Empty } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Untaught } from '../learning/trust.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { count, percent, compact, money, usd } from '../../ui/numbers.ts'
import { bucketsOf, type Metrics } from './buckets.ts'
import { type StatisticsSeries, type Summary, type Totals, levelsOf } from './levels.ts'
import { Sparkline } from '../../ui/sparkline.tsx'
import type { ComponentChildren } from 'preact'
import { ScopeLink } from '../../ui/links.tsx'
import { Time } from '../../ui/time.tsx'
import { badgeOf, waiting } from '../../api/waiting.ts'
import { firstOf, Trouble } from './trouble.tsx'
import { Decided } from './decided.tsx'

const MINUTE_MS = 60_000

function Now({ health: { value: health }, recent }: { health: Data<ServerHealth>; recent: Data<Summary> }) {
  const mayDecide = hasRole('operator')
  const { approvals } = waiting.value
  // Numbers that were loaded before D1 went away may not be true any more.
  const isAway = health?.database.ok === false
  const unknown = 'not known: D1 does not answer'
  const first = firstOf(approvals)
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
          value={isAway ? '–' : approvals && (badgeOf(approvals) || '0')}
          path="/approvals"
          tone={first === undefined ? '' : 'wait'}
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

function Levels({ totals, health }: { totals: Totals; health: ServerHealth | undefined }) {
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

function Largest({ health }: { health: ServerHealth | undefined }) {
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

const EVERY_MS = 15_000
const MOST_TOOLS = 10

/** The tools whose calls failed in this time, most failures first; nothing if none failed. */
function ToolFailures({ bucket }: { bucket: string }) {
  const { value: failed } = useGet<StatisticsSeries>(`/v1/stats${query({ metric: 'tool.failed', by: 'tool', bucket })}`, {
    every_ms: EVERY_MS,
  })
  const failing = (failed?.series ?? []).filter(({ total }) => (total ?? 0) > 0)
  const path = failing.length > 0 ? `/v1/stats${query({ metric: 'tool.calls', by: 'tool', bucket })}` : null
  const { value: calls } = useGet<StatisticsSeries>(path, { every_ms: EVERY_MS })
  if (failing.length === 0) return null
  const callsOf = (tool: string | null) => calls?.series.find(({ label }) => label === tool)?.total ?? null
  return (
    <Section title="Tools that failed">
      <table class="plain card">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Failed calls</th>
            <th scope="col">Of its calls</th>
          </tr>
        </thead>
        <tbody>
          {failing.slice(0, MOST_TOOLS).map(({ label, total }) => {
            const all = callsOf(label)
            return (
              <tr key={label}>
                <th scope="row">
                  <bdi>{label}</bdi>
                </th>
                <td class="bad">✕ {count(total)}</td>
                <td>{all === null || total === null ? '–' : `${percent(total / all)} of ${count(all)}`}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <p>
        <a href="/traces?status=partial">Traces that went on although a tool failed</a>
        {failing.length > MOST_TOOLS && ` · ${failing.length - MOST_TOOLS} more tools failed`}
      </p>
    </Section>
  )
}

type ModelsProps = { metrics: Metrics; summary: Summary }
type Series = { title: string; names: string[]; show: (value: number | null | undefined) => string; saved: string }

const series: Series[] = [
  { title: 'Model calls', names: ['model.calls'], show: compact, saved: 'reflexes.saved_model_calls' },
  { title: 'Tokens', names: ['model.input_tokens', 'model.output_tokens'], show: compact, saved: 'reflexes.saved_tokens' },
  { title: 'Money', names: ['model.cost_usd'], show: usd, saved: 'reflexes.saved_cost_usd' },
]
const HOUR_MS = 3_600_000

/** Calls, tokens and money: each over time, beside the savings by reflexes. */
function Models({ metrics, summary }: ModelsProps) {
  const { step, count: buckets, valuesOf } = bucketsOf(summary, metrics)
  return (
    <Section title="Models, and what reflexes saved">
      <Month />
      <div class="cards models">
        {series.map(({ title, names, show, saved }) => {
          const values = valuesOf(...names)
          const total = values.reduce((sum, value) => sum + value, 0)
          const isMoney = show === usd
          const unpriced = isMoney ? (metrics['model.unpriced_calls']?.total ?? 0) : 0
          const free = unpriced > 0 && total === 0
          const save = metrics[saved]?.total
          return (
            <div class="card figure" key={title}>
              <h3>{title}</h3>
              <p class={free ? 'number wait' : 'number'}>{isMoney ? money(total, unpriced) : show(total)}</p>
              <p class="quiet">
                {free ? 'REFLEX_MODEL_PRICES sets prices of your own' : `${show((total * HOUR_MS) / (buckets * step))} per hour`}
              </p>
              <Sparkline values={values} label={`${title} per ${summary.bucket}; the most is ${show(Math.max(...values))}`} />
              <p>
                Saved by reflexes: <b>{free && !save ? 'price unknown' : show(save)}</b>
              </p>
            </div>
          )
        })}
      </div>
    </Section>
  )
}

/** A month's avoided money, and the bound on its missed events. */
function Month() {
  const [saved, missed] = useGet<Summary>(MONTH, { every_ms: MINUTE_MS }).value?.metrics ?? []
  return saved?.total || missed?.total ? (
    <p>
      The last 30 days: reflexes avoided {usd(saved?.total ?? 0)}, and at most {count(missed?.total ?? 0)} acts (95 % sure).
    </p>
  ) : null
}

const METRICS =
  'events.accepted,events.by_filter,events.by_reflex,events.by_decision,events.by_turn,events.by_condition,events.dead_lettered,' +
  'turns,turns.failed,effects,effects.failed,gate.p50_ms,replays.compared,replays.changed,reflexes.p95_ms,reflexes.audits,reflexes.audits_disagreed,' +
  'model.calls,model.failures,model.input_tokens,model.output_tokens,model.cost_usd,model.unpriced_calls,' +
  'reflexes.saved_model_calls,reflexes.saved_tokens,reflexes.saved_cost_usd'

const MONTH = '/v1/stats/summary?metrics=reflexes.saved_cost_usd,reflexes.most_missed&bucket=day'
const RECENT = '/v1/stats/summary?metrics=events.accepted&bucket=minute'

const ranges = [
  { id: 'hour', text: 'Last hour', bucket: 'minute' },
  { id: 'day', text: 'Last day', bucket: 'hour' },
  { id: 'month', text: 'Last 30 days', bucket: 'day' },
] as const

const POLL_MS = 5000

export default function OverviewPage() {
  const chosen = useTab(
    ranges.map(({ id }) => id),
    'range',
  )
  const { bucket } = ranges.find(({ id }) => id === chosen) ?? ranges[0]
  // In the order in which they are needed: D1 answers one after the other.
  const health = useGet<ServerHealth>('/health/detailed', { every_ms: POLL_MS })
  const summary = useGet<Summary>(`/v1/stats/summary${query({ metrics: METRICS, bucket })}`, { every_ms: 2 * POLL_MS })
  const minutes = useGet<Summary>(bucket === 'minute' ? null : RECENT, { every_ms: POLL_MS })
  const recent = bucket === 'minute' ? summary : minutes
  return (
    <Page title="Now" actions={<Tabs label="Time range" tabs={ranges} parameter="range" />}>
      <Loaded data={health}>{(value) => <Trouble health={value} />}</Loaded>
      <Untaught />
      <Now health={health} recent={recent} />
      <Loaded data={summary}>{(value) => <Figures summary={value} health={health} />}</Loaded>
    </Page>
  )
}

type FiguresProps = { summary: Summary; health: Data<ServerHealth> }

function Figures({ summary, health }: FiguresProps) {
  const metrics: Metrics = Object.fromEntries(summary.metrics.map((metric) => [metric.metric, metric]))
  const totals = Object.fromEntries(summary.metrics.map(({ metric, total }) => [metric, total]))
  return (
    <>
      <Decided metrics={metrics} summary={summary} />
      <Models metrics={metrics} summary={summary} />
      <ToolFailures bucket={summary.bucket} />
      <div class="columns">
        <Section title="Service levels">
          <Levels totals={totals} health={health.value} />
        </Section>
        <Section title="Largest inboxes">
          <Largest health={health.value} />
        </Section>
      </div>
    </>
  )
}
