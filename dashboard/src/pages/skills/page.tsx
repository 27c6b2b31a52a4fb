import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import type { listedSkill } from '../../../../src/contract/skill.ts'
import { part, query, useGet } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { count, percent } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Filter } from '../reflexes/filter.tsx'
import type { RateStatistics } from '../reflexes/rates.tsx'

type SkillItem = z.infer<typeof listedSkill>
const states: SkillItem['state'][] = ['active', 'candidate', 'deprecated']

export default function SkillsPage() {
  const { query: asked } = useLocation()
  const state = asked['state']
  const q = asked['q']
  const list = usePages<SkillItem>(`/v1/skills${query({ state, q, limit: 200 })}`)
  return (
    <Page title="Skills" actions={<Filter states={states} />}>
      <LoadedList
        pages={list}
        empty={
          <Empty title={state || q ? 'No skill matches.' : 'There is no skill yet.'}>
            <p>
              A skill is a plan of tool calls that a gate lets through. Register a manifest with <code>reflex skill push FILE</code>, or let
              a scope <a href="/learning">learn</a> some.
            </p>
          </Empty>
        }
      >
        {(rows) => <Skills rows={rows} onEnd={list.loadMore} />}
      </LoadedList>
    </Page>
  )
}

function Skills({ rows, onEnd }: { rows: SkillItem[]; onEnd: () => void }) {
  const metric = (name: string) => useGet<RateStatistics>(`/v1/stats?metric=${name}&by=skill&bucket=all`).value
  const proposals = metric('skill.proposals')
  const calls = metric('skill.calls')
  const success = metric('skill.success_rate')
  const of = (found: RateStatistics | undefined, id: string) => found?.series.find(({ label }) => label === id)?.total ?? null
  return (
    <Table
      label="Skills"
      rows={rows}
      keyOf={({ id }) => id}
      onEnd={onEnd}
      columns={[
        { title: 'Skill', cell: ({ id }) => <a href={`/skills/${part(id)}`}>{visible(id)}</a> },
        { title: 'Version', cell: ({ version }) => visible(version), width: '6rem' },
        { title: 'State', cell: ({ state }) => <Status status={state} />, width: '8rem' },
        { title: 'Proposals', cell: ({ id }) => count(of(proposals, id)), width: '7rem', numeric: true },
        { title: 'Runs', cell: ({ id }) => count(of(calls, id)), width: '6rem', numeric: true },
        { title: 'Succeeded', cell: ({ id }) => percent(of(success, id)), width: '7rem', numeric: true },
        { title: 'Owner', cell: ({ owner }) => visible(owner), width: '9rem' },
        { title: 'Description', cell: ({ description }) => <Text text={description} /> },
        { title: 'Since', cell: ({ state_at }) => <Time at={state_at} />, width: '8rem' },
      ]}
    />
  )
}
