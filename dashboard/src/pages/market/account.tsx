import { useLocation } from 'preact-iso'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import type { Account } from '../../../../src/features/market/contract/account.ts'
import type { Contract } from '../../../../src/features/market/contract/service.ts'
import type { Transfer } from '../../../../src/features/market/contract/transfer.ts'
import { hasRole, part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Facts } from '../../ui/facts.tsx'
import { List } from '../../ui/list.tsx'
import { count, scrip } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { RequestForm } from '../../ui/request-form.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { contractLink, Path } from './links.tsx'

const facts: TableColumn<Account>[] = [
  { title: 'Balance', of: ({ balance }) => scrip(balance) },
  { title: 'Available', of: ({ available }) => scrip(available) },
  { title: 'Pending', of: ({ debits_pending, credits_pending }) => `−${count(debits_pending)}, +${scrip(credits_pending)}` },
  { title: 'State', of: ({ closed }) => (closed ? 'closed' : null) },
]

/** The balance of an account, its deals, its contracts and its statement. */
export function AccountPage({ id }: { id: string }) {
  const { route } = useLocation()
  const data = useGet<Account>(`/v1/ledger/accounts/${part(id)}`)
  const asked = { account: id, limit: 100 }
  return (
    <Page title={visible(id)} path={<Path />}>
      <Loaded data={data}>{(account) => <Facts of={account} columns={facts} />}</Loaded>
      <Section title="Deals">
        <List
          of={lists.deals}
          fields={asked}
          label="Its deals"
          own={[{ title: 'Side', of: ({ buyer }) => (buyer === id ? 'buys' : 'sells'), width: 5 }]}
          empty="It has no deals."
        />
      </Section>
      {id.startsWith('scope:') && (
        <Section title="Contracts">
          <List
            of={lists.contracts}
            fields={asked}
            label="Its contracts"
            own={[{ title: 'Side', of: ({ proposer }) => (proposer === id ? 'calls' : 'is called'), width: 6 }]}
            empty="It has no contracts."
          />
          {hasRole('operator') && (
            <RequestForm<Contract>
              of={lists.proposal}
              given={{ proposer: id }}
              verb="Propose a contract"
              onDone={({ contract_id }) => route(contractLink(contract_id))}
            />
          )}
        </Section>
      )}
      <Section title="Statement">
        <List of={lists.statement} fields={{ id, limit: 100 }} label="Its transfers" own={transfers(id)} empty="No transfer took part." />
      </Section>
    </Page>
  )
}

/** As the account sees them: with a sign, and with the other side. */
const transfers = (account: string): TableColumn<Transfer>[] => [
  { title: 'Amount', cell: ({ debit, amount }) => `${debit === account ? '−' : '+'}${scrip(amount)}`, width: 8, numeric: true },
]
