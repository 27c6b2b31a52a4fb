import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { Contract } from '../../../../src/contract/market/service.ts'
import { hasRole, post, query } from '../../api/index.ts'
import { submitted, useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, ErrorBox, LoadedList } from '../../ui/feedback.tsx'
import { count } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { contractLink, scrip } from './links.tsx'

/** The contracts of a scope's account, and a form for a new one. */
export function Contracts({ account }: { account: string }) {
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
    const [price_per_invocation, limit] = [Number(of('price')), Number(of('limit'))]
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
