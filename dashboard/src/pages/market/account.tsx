import type { Account } from '../../../../src/features/market/contract/account.ts'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'
import type { Transfer } from '../../../../src/features/market/contract/transfer.ts'
import { part, query, useGet, hasRole, post } from '../../api/index.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, Loaded, LoadedList, ErrorBox } from '../../ui/feedback.tsx'
import { dealLink } from '../../ui/links.tsx'
import { count } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { Fact, Facts, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { AccountLink, Path, scrip, contractLink } from './links.tsx'
import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { Contract } from '../../../../src/features/market/contract/service.ts'
import { submitted, useAction } from '../../api/use-action.ts'

/** The contracts of a scope's account, and a form for a new one. */
function Contracts({ account }: { account: string }) {
  const list = usePages<Contract>(`/v1/market/contracts${query({ account, limit: 100 })}`)
  return (
    <Section title="Contracts">
      <LoadedList pages={list} empty={<Empty title="It has no contracts." />}>
        {(rows) => (
          <Table
            label="Its contracts"
            rows={rows}
            keyOf={({ contract_id }) => contract_id}
            onEnd={list.loadMore}
            columns={[
              { title: 'Service', cell: ({ contract_id, service }) => <a href={contractLink(contract_id)}>{visible(service)}</a> },
              { title: 'Side', cell: ({ proposer }) => (proposer === account ? 'calls' : 'is called'), width: '6rem' },
              { title: 'Price', cell: ({ price_per_invocation }) => scrip(price_per_invocation), width: '8rem', numeric: true },
              {
                title: 'Calls',
                cell: ({ invocations, limit }) => `${count(invocations)} of ${count(limit)}`,
                width: '9rem',
                numeric: true,
              },
              { title: 'Status', cell: ({ status }) => <Status status={status} />, width: '8rem' },
            ]}
          />
        )}
      </LoadedList>
      {hasRole('operator') && <Propose proposer={account} />}
    </Section>
  )
}

function Propose({ proposer }: { proposer: string }) {
  const { route } = useLocation()
  /** Repeating the form makes no second contract. */
  const id = useSignal(crypto.randomUUID())
  const { run, busy, problem } = useAction((terms: object) => post<Contract>('/v1/market/contracts', { id: id.value, proposer, ...terms }))
  const submit = async (event: SubmitEvent) => {
    const of = submitted(event)
    const price_per_invocation = Number(of('price'))
    const limit = Number(of('limit'))
    const answer = await run({ counterparty: of('counterparty'), service: of('service'), price_per_invocation, limit })
    if (answer.ok) route(contractLink(answer.value.contract_id))
  }
  return (
    <form class="filters" onSubmit={(event) => void submit(event)}>
      <label class="inline">
        Call <input name="service" required placeholder="skill:ID or reflex:ID" />
      </label>
      <label class="inline">
        of <input name="counterparty" required placeholder="scope:NAME" />
      </label>
      <label class="inline">
        for <input name="price" type="number" min={1} required /> scrip each,
      </label>
      <label class="inline">
        at most <input name="limit" type="number" min={1} required /> times
      </label>
      <button disabled={busy}>Propose a contract</button>
      {problem && <ErrorBox problem={problem} />}
    </form>
  )
}

/** The balance of an account, its deals, its contracts and its statement. */
export function AccountPage({ id }: { id: string }) {
  const path = `/v1/ledger/accounts/${part(id)}`
  const data = useGet<Account>(path)
  return (
    <Page title={visible(id)} path={<Path />}>
      <Loaded data={data}>
        {({ balance, available, debits_pending, credits_pending, closed }) => (
          <Facts>
            <Fact name="Balance">{scrip(balance)}</Fact>
            <Fact name="Available">{scrip(available)}</Fact>
            <Fact name="Pending">
              −{count(debits_pending)}, +{scrip(credits_pending)}
            </Fact>
            {closed && <Fact name="State">closed</Fact>}
          </Facts>
        )}
      </Loaded>
      <Deals account={id} />
      {id.startsWith('scope:') && <Contracts account={id} />}
      <Statement account={id} path={path} />
    </Page>
  )
}

function Deals({ account }: { account: string }) {
  const list = usePages<Deal>(`/v1/market/deals${query({ account, limit: 100 })}`)
  return (
    <Section title="Deals">
      <LoadedList pages={list} empty={<Empty title="It has no deals." />}>
        {(rows) => (
          <Table
            label="Its deals"
            rows={rows}
            keyOf={({ deal_id }) => deal_id}
            onEnd={list.loadMore}
            columns={[
              { title: 'Goods', cell: ({ deal_id, artifact }) => <a href={dealLink(deal_id)}>{visible(artifact)}</a> },
              { title: 'Side', cell: ({ buyer }) => (buyer === account ? 'buys' : 'sells'), width: '5rem' },
              { title: 'Price', cell: ({ price }) => scrip(price), width: '8rem', numeric: true },
              { title: 'Status', cell: ({ status }) => <Status status={status} />, width: '8rem' },
              { title: 'Offered', cell: ({ offered_at }) => <Time at={offered_at} />, width: '9rem' },
            ]}
          />
        )}
      </LoadedList>
    </Section>
  )
}

function Statement({ account, path }: { account: string; path: string }) {
  const list = usePages<Transfer>(`${path}/statement?limit=100`)
  return (
    <Section title="Statement">
      <LoadedList pages={list} empty={<Empty title="No transfer took part." />}>
        {(rows) => (
          <Table
            label="Its transfers"
            rows={rows}
            keyOf={({ seq }) => String(seq)}
            onEnd={list.loadMore}
            columns={[
              { title: 'Time', cell: ({ at }) => <Time at={at} />, width: '9rem' },
              { title: 'Kind', cell: ({ kind }) => kind, width: '6rem' },
              {
                title: 'Amount',
                cell: ({ debit, amount }) => `${debit === account ? '−' : '+'}${scrip(amount)}`,
                width: '8rem',
                numeric: true,
              },
              { title: 'With', cell: ({ debit, credit }) => <AccountLink id={debit === account ? credit : debit} />, width: '14rem' },
              { title: 'Transfer', cell: ({ id, memo }) => visible(memo ?? id) },
            ]}
          />
        )}
      </LoadedList>
    </Section>
  )
}
