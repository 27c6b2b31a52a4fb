import * as lists from '../../../../src/features/market/contract/lists.ts'
import type { Contract } from '../../../../src/features/market/contract/service.ts'
import { part, useGet } from '../../api/index.ts'
import { columnsOf } from '../../ui/column.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { AccountLink, TraceLink } from '../../ui/links.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Decide } from './decide.tsx'
import { Path } from './links.tsx'

const EVERY_MS = 3000
const verbs: Record<Contract['status'], string[]> = {
  proposed: ['accept', 'reject', 'end'],
  accepted: ['end', 'dispute'],
  rejected: [],
  ended: ['dispute'],
  disputed: ['end', 'dispute'],
}

const facts = columnsOf<Contract>(lists.contracts, [
  { title: 'Reason', of: ({ reason }) => reason },
  { title: 'Spent', of: ({ paid }) => paid, kind: 'scrip' },
  { title: 'Proposed', of: ({ created_at }) => created_at, kind: 'time' },
  { title: 'Ended', of: ({ ended_at }) => ended_at, kind: 'time' },
])

/** The life of a contract: its terms, its calls and its disputes. */
export function ContractPage({ id }: { id: string }) {
  const path = `/v1/market/contracts/${part(id)}`
  const data = useGet<Contract>(path, { every_ms: EVERY_MS })
  return (
    <Page title="Contract" path={<Path />}>
      <Loaded data={data}>
        {(contract) => (
          <>
            <Facts of={contract} columns={facts} />
            <Decide path={path} verbs={verbs[contract.status]} onDone={data.reload} />
            <Disputes contract={contract} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

const Disputes = ({ contract: { disputes } }: { contract: Contract }) => (
  <Section title="Disputes">
    {disputes.length === 0 && <Empty title="Nobody disputes it." />}
    {disputes.map(({ by, at, reason, traces }) => (
      <article key={at} class="card">
        <p>
          <AccountLink id={by} /> <Time at={at} />: <Text text={reason} />
        </p>
        <p>The traces that were named, and those of the latest calls. Each has what both sides did.</p>
        <ol>
          {traces.map((id) => (
            <li key={id}>
              <TraceLink id={id} text={id} />
            </li>
          ))}
        </ol>
      </article>
    ))}
  </Section>
)
