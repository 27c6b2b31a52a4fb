import type { Certificate } from '../../../../src/contract/certificate.ts'
import { Empty } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { count, percent } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Lines, visible } from '../../ui/text.tsx'

type Proof = { scope: string; version: number; certificate: Certificate; why: string[] }

/** The certificates: what was compared, for each act on a type of event, and the audits since. */
export function Proofs({ certificates }: { certificates: readonly Proof[] }) {
  return (
    <Section title="Certificates">
      {certificates.length === 0 && (
        <Empty title="There is no certificate.">
          <p>
            One is opened when a version that an agent wrote, or a decision model, is compared in shadow mode. A version that a person
            activated needs none.
          </p>
        </Empty>
      )}
      {certificates.map(({ scope, version, certificate, why }) => (
        <div class="card" key={`${scope}@${version}`}>
          <h3>
            Version {version} in <ScopeLink scope={scope} />
          </h3>
          <Lines of={why} />
          <Table
            label={`Strata of version ${version} in ${visible(scope)}`}
            rows={certificate.strata}
            keyOf={({ event_type, risk, act }) => `${event_type} ${risk} ${act}`}
            columns={[
              { title: 'Act', of: ({ act, event_type }) => `${act} on ${event_type}` },
              { title: 'Risk', cell: ({ risk }) => risk, width: 6 },
              { title: 'State', of: ({ state }) => state, kind: 'status' },
              { title: 'Agreed', cell: ({ n, k }) => `${count(k)} of ${count(n)} (${percent(n === 0 ? null : k / n)})`, width: 11 },
              {
                title: 'Audits',
                cell: ({ audits: { audits, disagreed, alarm } }) => (
                  <span class={alarm ? 'bad' : ''}>
                    {count(audits)}, {count(disagreed)} disagreed{alarm && ', alarm'}
                  </span>
                ),
                width: 12,
              },
              { title: 'Person', cell: ({ person }) => person !== null && visible(person), width: 8 },
            ]}
          />
        </div>
      ))}
    </Section>
  )
}
