import type { Action } from '../../../../src/contract/action.ts'
import type { Decision } from '../../../../src/contract/reflex.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { actionText } from '../trace/spans.ts'
import { Entries } from './entries.tsx'

type Entry = {
  seq: number
  at: string
  trace_id: string
  span_id: string
  reflex_id: string
  version: number
  agreed: boolean | null
  action?: Action
  own?: Action
  decision?: Decision | null
  decided?: Decision | null
  judged_by?: string
}
type Metrics = { scopes: { scope: string }[] }

const kinds = { 'reflex-audited': 'Audits and verdicts', 'reflex-compared': 'Comparisons in shadow mode' }
/** The single comparisons behind a certificate, in one scope, newest first. */
export function Audits({ id }: { id: string }) {
  const metrics = useGet<Metrics>(`/v1/reflexes/${part(id)}/metrics`)
  return (
    <Section title="Compared decisions">
      <Loaded data={metrics}>
        {({ scopes }) => (
          <Entries<Entry> scopes={[...new Set(scopes.map(({ scope }) => scope))]} kinds={kinds} match={({ reflex_id }) => reflex_id === id}>
            {(entries) => <Compared entries={entries} />}
          </Entries>
        )}
      </Loaded>
    </Section>
  )
}

function Compared({ entries }: { entries: Entry[] }) {
  return (
    <Table
      label="The decisions and their verdicts"
      rows={entries}
      keyOf={({ seq }) => String(seq)}
      columns={[
        { title: 'When', cell: ({ at }) => <Time at={at} />, width: '7rem' },
        { title: 'Version', cell: ({ version }) => version, width: '5rem', numeric: true },
        { title: 'Verdict', cell: ({ agreed }) => <Verdict agreed={agreed} />, width: '8rem' },
        { title: 'By', cell: ({ judged_by }) => visible(judged_by ?? 'shadow mode'), width: '7rem' },
        { title: 'The reflex', cell: ({ action, own }) => <Text text={actionText(action ?? own)} /> },
        { title: 'The actual decision', cell: ({ decision, decided }) => <Text text={decidedText(decision ?? decided ?? null)} /> },
        { title: 'Trace', cell: ({ trace_id, span_id }) => <TraceLink id={trace_id} span={span_id} />, width: '4rem' },
      ]}
    />
  )
}

function Verdict({ agreed }: { agreed: boolean | null }) {
  if (agreed === null) return <span class="quiet">not comparable</span>
  return <span class={agreed ? 'ok' : 'bad'}>{agreed ? 'agreed' : 'disagreed'}</span>
}

const decidedText = (decision: Decision | null): string =>
  decision === null ? 'none' : `${decision.by}: ${decision.acts.length === 0 ? 'nothing' : decision.acts.map(actionText).join(', ')}`
