import { query, useGet } from '../../api/index.ts'
import { useReflexTitles } from '../../api/reflex-titles.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { counted, money, usd } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import type { StatisticsSeries } from '../overview/levels.ts'

const DAY_MS = 86_400_000
const ranges = [
  { id: 'day', text: 'Last day', bucket: 'hour', days: 1 },
  { id: 'week', text: 'Last 7 days', bucket: 'day', days: 7 },
  { id: 'month', text: 'Last 30 days', bucket: 'day', days: 30 },
] as const

/** The numbers of a label; `cost` leaves out calls whose price is unknown. */
type Row = {
  label: string
  title?: string
  cost?: number
  unpriced?: number
  calls?: number
  tokens?: number
  saved?: number
  saved_calls?: number
  decided?: number
}
type Number = Exclude<keyof Row, 'label' | 'title'>
type Asked = readonly [into: Number, metric: string]

const groups: {
  title: string
  by: 'scope' | 'model' | 'reflex'
  asked: readonly Asked[]
  columns: readonly TableColumn<Row>[]
  empty: string
}[] = [
  {
    title: 'By scope',
    by: 'scope',
    asked: [
      ['cost', 'model.cost_usd'],
      ['calls', 'model.calls'],
      ['saved', 'reflexes.saved_cost_usd'],
      ['saved_calls', 'reflexes.saved_model_calls'],
    ],
    columns: [{ title: 'Scope', of: ({ label }) => label, kind: 'scope' }],
    empty: 'No scope called a model or saved a call in this time.',
  },
  {
    title: 'By model',
    by: 'model',
    asked: [
      ['cost', 'models.cost_usd'],
      ['calls', 'models.calls'],
      ['tokens', 'models.input_tokens'],
      ['tokens', 'models.output_tokens'],
    ],
    columns: [{ title: 'Model', of: ({ label }) => label }],
    empty: 'No model was called in this time.',
  },
  {
    title: 'By reflex',
    by: 'reflex',
    asked: [
      ['saved', 'reflex.saved_cost_usd'],
      ['saved_calls', 'reflex.saved_model_calls'],
      ['decided', 'reflex.decided'],
    ],
    columns: [{ title: 'Reflex', of: ({ title, label }) => title ?? label, to: ({ label }) => `/reflexes/${encodeURIComponent(label)}` }],
    empty: 'No reflex decided an event in this time.',
  },
]

const numbers: Readonly<Record<Number, TableColumn<Row>>> = {
  cost: { title: 'Cost', of: ({ cost }) => cost, kind: 'usd' },
  unpriced: {
    title: 'Unpriced calls',
    of: ({ unpriced }) => unpriced,
    kind: 'count',
    width: 9,
    colour: ({ unpriced }) => (unpriced ? 'yellow' : null),
  },
  calls: { title: 'Model calls', of: ({ calls }) => calls, kind: 'count', width: 8 },
  tokens: { title: 'Tokens', of: ({ tokens }) => tokens, kind: 'count', width: 8 },
  saved: { title: 'Saved', of: ({ saved }) => saved, kind: 'usd' },
  saved_calls: { title: 'Calls saved', of: ({ saved_calls }) => saved_calls, kind: 'count', width: 8 },
  decided: { title: 'Events decided', of: ({ decided }) => decided, kind: 'count', width: 10 },
}

/** A row for each label of any of the answers. */
function rowsOf(asked: readonly Asked[], answers: readonly StatisticsSeries[]): Row[] {
  const rows = new Map<string, Row>()
  answers.forEach(({ series }, place) => {
    const [into] = asked[place] ?? ['calls']
    for (const { label, total, unpriced_calls } of series) {
      if (label === null || (total === 0 && !unpriced_calls)) continue
      const row = rows.get(label) ?? { label }
      rows.set(label, row)
      row[into] = (row[into] ?? 0) + (total ?? 0)
      if (unpriced_calls) row.unpriced = unpriced_calls
    }
  })
  return [...rows.values()]
}

const sum = (rows: readonly Row[], of: Number): number => rows.reduce((all, row) => all + (row[of] ?? 0), 0)

/** The numbers of a group, each by a request of its own: they are always of one number. */
function useGroup({ by, asked }: (typeof groups)[number], range: string) {
  const answers = asked.map(([, metric]) => useGet<StatisticsSeries>(`/v1/stats${query({ metric, by })}&${range}`, { every_ms: 60_000 }))
  const values = answers.flatMap(({ value }) => value ?? [])
  return {
    value: values.length === answers.length ? { rows: rowsOf(asked, values), more: values.some(({ more }) => more) } : undefined,
    problem: answers.find(({ problem }) => problem)?.problem ?? null,
    reload: () => answers.forEach(({ reload }) => reload()),
  }
}

function Group({ of, range }: { of: (typeof groups)[number]; range: string }) {
  const data = useGroup(of, range)
  const title = useReflexTitles(of.by === 'reflex' ? (data.value?.rows.map(({ label }) => label) ?? []) : [])
  const has = new Set(of.asked.map(([into]) => into))
  const shown = (Object.keys(numbers) as Number[]).filter((name) => has.has(name) || (name === 'unpriced' && has.has('cost')))
  return (
    <Section title={of.title}>
      <Loaded data={data}>
        {({ rows, more }) =>
          rows.length === 0 ? (
            <Empty title={of.empty} />
          ) : (
            <>
              {has.has('cost') && (
                <p>
                  {money(sum(rows, 'cost'), sum(rows, 'unpriced'))} for {counted(sum(rows, 'calls'), 'call')}
                  {has.has('saved') && `; reflexes saved ${usd(sum(rows, 'saved'))}`}
                  {sum(rows, 'unpriced') > 0 && '. REFLEX_MODEL_PRICES sets prices of your own.'}
                </p>
              )}
              <Table
                label={`Costs ${of.title.toLowerCase()}`}
                rows={rows.map((row) => ({ ...row, title: title(row.label) }))}
                columns={[...of.columns, ...shown.map((name) => numbers[name])]}
                keyOf={({ label }) => label}
                sort="-Cost"
              />
              {more && <p class="quiet">The first 100 of each number are shown.</p>}
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

export default function CostsPage() {
  const chosen = useTab(
    ranges.map(({ id }) => id),
    'range',
  )
  const { bucket, days } = ranges.find(({ id }) => id === chosen) ?? ranges[0]
  // The address of a request does not change with each second.
  const since = new Date(Math.floor(Date.now() / DAY_MS - days + 1) * DAY_MS).toISOString()
  const range = bucket === 'hour' ? 'bucket=hour' : `bucket=${bucket}&since=${since}`
  return (
    <Page title="Costs" needs="viewer" actions={<Tabs label="Time range" tabs={ranges} parameter="range" />}>
      <p class="quiet">
        Numbers by hour lag by up to 10 minutes, those by day by an hour. Sort by a click on the head of a column. The{' '}
        <a href="/docs/cost">estimate</a> of what the platform bills is on the page of each scope.
      </p>
      {groups.map((group) => (
        <Group key={group.by} of={group} range={range} />
      ))}
    </Page>
  )
}
