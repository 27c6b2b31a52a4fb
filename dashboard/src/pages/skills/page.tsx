import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import type { listedSkill } from '../../../../src/contract/skill.ts'
import { part, query, useGet } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
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
        { title: 'Version', of: ({ version }) => version, width: 6 },
        { title: 'State', of: ({ state }) => state, kind: 'status' },
        { title: 'Proposals', of: ({ id }) => of(proposals, id), kind: 'count' },
        { title: 'Runs', of: ({ id }) => of(calls, id), kind: 'count' },
        { title: 'Succeeded', of: ({ id }) => of(success, id), kind: 'share' },
        { title: 'Owner', of: ({ owner }) => owner, width: 9 },
        { title: 'Description', of: ({ description }) => description },
        { title: 'Since', of: ({ state_at }) => state_at, kind: 'time' },
      ]}
    />
  )
}
