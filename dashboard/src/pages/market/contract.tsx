import type { Contract } from '../../../../src/features/market/contract/service.ts'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { count } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts, Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Decide } from './decide.tsx'
import { AccountLink, Path, scrip } from './links.tsx'

const EVERY_MS = 3000
const verbs: Record<Contract['status'], string[]> = {
  proposed: ['accept', 'reject', 'end'],
  accepted: ['end', 'dispute'],
  rejected: [],
  ended: ['dispute'],
  disputed: ['end', 'dispute'],
}

/** The life of a contract: its terms, its calls and its disputes. */
export function ContractPage({ id }: { id: string }) {
  const path = `/v1/market/contracts/${part(id)}`
  const data = useGet<Contract>(path, { every_ms: EVERY_MS })
  return (
    <Page title="Contract" path={<Path />}>
      <Loaded data={data}>
        {(contract) => (
          <>
            <Terms contract={contract} />
            <Decide path={path} verbs={verbs[contract.status]} onDone={data.reload} />
            <Disputes contract={contract} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

const Terms = ({ contract }: { contract: Contract }) => (
  <Facts>
    <Fact name="Status">
      <Status status={contract.status} /> {contract.reason !== null && <Text text={contract.reason} />}
    </Fact>
    <Fact name="Service">{visible(contract.service)}</Fact>
    <Fact name="Proposer, who pays">
      <AccountLink id={contract.proposer} />
    </Fact>
    <Fact name="Counterparty, who is called">
      <AccountLink id={contract.counterparty} />
    </Fact>
    <Fact name="Price of a call">{scrip(contract.price_per_invocation)}</Fact>
    <Fact name="Calls">
      {count(contract.invocations)} of {count(contract.limit)}
    </Fact>
    <Fact name="Spent">{scrip(contract.paid)}</Fact>
    <Fact name="Proposed">
      <Time at={contract.created_at} />
    </Fact>
    {contract.ended_at !== null && (
      <Fact name="Ended">
        <Time at={contract.ended_at} />
      </Fact>
    )}
  </Facts>
)

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
