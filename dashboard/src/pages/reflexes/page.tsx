import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import { reflexes } from '../../../../src/contract/lists/reflexes.ts'
import type { reflexItem } from '../../../../src/contract/reflex.ts'
import { useGet } from '../../api/index.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Rows, useList } from '../../ui/list.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { State } from '../reflex/acts.tsx'
import { Filter } from './filter.tsx'
import { Rates, type RateStatistics } from './rates.tsx'

type ReflexItem = z.infer<typeof reflexItem>
const states: ReflexItem['state'][] = ['active', 'shadow', 'draft', 'retired']

export default function ReflexesPage() {
  const { query: asked } = useLocation()
  const state = asked['state']
  const q = asked['q']
  const list = useList<ReflexItem>(reflexes, { state, q, limit: 200 })
  const fires = useGet<RateStatistics>('/v1/stats?metric=reflex.fires&by=reflex&bucket=hour').value
  const saved = useGet<RateStatistics>('/v1/stats?metric=reflex.saved_model_calls&by=reflex&bucket=hour').value
  const of = (found: RateStatistics | undefined, id: string) => found?.series.find(({ label }) => label === id)?.total ?? (found ? 0 : null)
  const own: TableColumn<ReflexItem>[] = [
    { title: 'State', cell: (one) => <State {...one} />, width: 10 },
    { title: 'Fires today', of: ({ id }) => of(fires, id), kind: 'count', width: 8 },
    { title: 'Calls saved', of: ({ id }) => of(saved, id), kind: 'count', width: 8 },
  ]
  return (
    <Page title="Reflexes">
      <Rates />
      <Section title="All reflexes" actions={<Filter states={states} />}>
        <Rows of={reflexes} label="Reflexes" pages={list} own={own} empty={state || q ? 'No reflex matches.' : 'There is no reflex yet.'}>
          <p>
            A reflex decides in microseconds what a model would decide. Write one with <code>reflex reflex push FILE</code>, or let a scope{' '}
            <a href="/learning">learn</a> some.
          </p>
        </Rows>
      </Section>
    </Page>
  )
}
