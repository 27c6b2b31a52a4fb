import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import type { reflexItem } from '../../../../src/contract/reflex.ts'
import { part, query, useGet } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { count } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { State } from '../reflex/acts.tsx'
import { Filter } from './filter.tsx'
import { Rates, type RateStatistics } from './rates.tsx'

type ReflexItem = z.infer<typeof reflexItem>
const states: ReflexItem['state'][] = ['active', 'shadow', 'draft', 'retired']

export default function ReflexesPage() {
  const { query: asked } = useLocation()
  const state = asked['state']
  const q = asked['q']
  const list = usePages<ReflexItem>(`/v1/reflexes${query({ state, q, limit: 200 })}`)
  return (
    <Page title="Reflexes">
      <Rates />
      <Section title="All reflexes" actions={<Filter states={states} />}>
        <LoadedList
          pages={list}
          empty={
            <Empty title={state || q ? 'No reflex matches.' : 'There is no reflex yet.'}>
              <p>
                A reflex decides in microseconds what a model would decide. Write one with <code>reflex reflex push FILE</code>, or let a
                scope <a href="/learning">learn</a> some.
              </p>
            </Empty>
          }
        >
          {(rows) => <Reflexes rows={rows} onEnd={list.loadMore} />}
        </LoadedList>
      </Section>
    </Page>
  )
}

function Reflexes({ rows, onEnd }: { rows: ReflexItem[]; onEnd: () => void }) {
  const fires = useGet<RateStatistics>('/v1/stats?metric=reflex.fires&by=reflex&bucket=hour').value
  const saved = useGet<RateStatistics>('/v1/stats?metric=reflex.saved_model_calls&by=reflex&bucket=hour').value
  const of = (found: RateStatistics | undefined, id: string) =>
    count(found?.series.find(({ label }) => label === id)?.total ?? (found ? 0 : null))
  return (
    <Table
      label="Reflexes"
      rows={rows}
      keyOf={({ id }) => id}
      onEnd={onEnd}
      columns={[
        { title: 'Reflex', cell: ({ id }) => <a href={`/reflexes/${part(id)}`}>{visible(id)}</a> },
        { title: 'Version', cell: ({ version }) => version, width: 6, numeric: true },
        { title: 'State', cell: (one) => <State {...one} />, width: 10 },
        { title: 'Fires today', cell: ({ id }) => of(fires, id), width: 8, numeric: true },
        { title: 'Calls saved', cell: ({ id }) => of(saved, id), width: 8, numeric: true },
        { title: 'Owner', of: ({ owner }) => owner, width: 10 },
        { title: 'Description', of: ({ description }) => description },
        { title: 'Written', of: ({ created_at }) => created_at, kind: 'time' },
      ]}
    />
  )
}
