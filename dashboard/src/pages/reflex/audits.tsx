import { useSignal } from '@preact/signals'
import type { Action } from '../../../../src/contract/action.ts'
import type { Decision } from '../../../../src/contract/reflex.ts'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { actionText } from '../trace/spans.ts'

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
/** Entries of the log that are searched, newest. */
const SEARCHED = 5000
const PAGE = 1000

/** The single comparisons behind a certificate, in one scope, newest first. */
export function Audits({ id }: { id: string }) {
  const metrics = useGet<Metrics>(`/v1/reflexes/${part(id)}/metrics`)
  return (
    <Section title="Compared decisions">
      <Loaded data={metrics}>
        {({ scopes }) => {
          const names = [...new Set(scopes.map(({ scope }) => scope))]
          return names.length === 0 ? <Empty title="It ran in no scope of this key." /> : <Chosen id={id} scopes={names} />
        }}
      </Loaded>
    </Section>
  )
}

function Chosen({ id, scopes }: { id: string; scopes: string[] }) {
  const scope = useSignal(scopes[0] ?? '')
  const kind = useSignal<keyof typeof kinds>('reflex-audited')
  const state = useGet<{ last_seq: number }>(`/v1/scopes/${part(scope.value)}`)
  const after = Math.max(0, (state.value?.last_seq ?? 0) - SEARCHED)
  const path = `/v1/scopes/${part(scope.value)}/log?kind=${kind.value}&after=${after}&limit=${PAGE}`
  const found = useGet<{ items: Entry[] }>(state.value ? path : null)
  return (
    <>
      <div class="actions">
        <label class="inline">
          Scope
          <select value={scope} onChange={({ currentTarget }) => (scope.value = currentTarget.value)}>
            {scopes.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="inline">
          Show
          <select value={kind} onChange={({ currentTarget }) => (kind.value = currentTarget.value as keyof typeof kinds)}>
            {Object.entries(kinds).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Loaded data={found}>{({ items }) => <Compared entries={items.filter(({ reflex_id }) => reflex_id === id).toReversed()} />}</Loaded>
    </>
  )
}

function Compared({ entries }: { entries: Entry[] }) {
  if (entries.length === 0) return <Empty title={`None in the latest ${SEARCHED.toLocaleString('en')} entries of this log.`} />
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
