import { useRoute } from 'preact-iso'
import type { z } from 'zod'
import type { reflex } from '../../../../src/contract/reflex.ts'
import type { shownCertificate } from '../../../../src/contract/reports/certificate.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts, SEALED, Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Rates } from '../reflexes/rates.tsx'
import { Numbers } from './numbers.tsx'
import { Acts, State } from './acts.tsx'
import { Audits } from './audits.tsx'
import { Proofs } from './proofs.tsx'
import { States } from './states.tsx'
import { Try } from './try.tsx'
import { Versions } from './code.tsx'

type Proof = z.infer<typeof shownCertificate> & { scope: string; version: number }
export type Reflex = z.infer<typeof reflex> & { certificates: Proof[] }

const tabs = [
  { id: 'overview', text: 'Overview' },
  { id: 'proof', text: 'Proof and audits' },
  { id: 'code', text: 'Code and versions' },
  { id: 'try', text: 'Try it' },
]

export default function ReflexPage() {
  const id = useRoute().params['id'] ?? ''
  const data = useGet<Reflex>(`/v1/reflexes/${part(id)}`)
  return (
    <Page title={visible(id)} path={<a href="/reflexes">Reflexes</a>}>
      <Loaded data={data}>{(found) => <Shown reflex={found} reload={data.reload} />}</Loaded>
    </Page>
  )
}

function Shown({ reflex: found, reload }: { reflex: Reflex; reload: () => void }) {
  const { id, acts, idle, version, state, description, owner, scopes, provenance, created_at, versions } = found
  const tab = useTab(tabs.map((one) => one.id))
  return (
    <>
      <div class="card">
        <p>
          <Text text={description || 'It has no description.'} most={1000} />
        </p>
        <Facts>
          <Fact name="Acts">{acts ?? 'none'}</Fact>
          <Fact name="Newest version">
            {version} <State version={version} state={state} idle={idle} acts={acts} />
          </Fact>
          <Fact name="Owner">{visible(owner)}</Fact>
          <Fact name="Acts in">{scopes.map(visible).join(', ')}</Fact>
          <Fact name="Written">
            <Time at={created_at} /> by {visible(provenance.by)}
            {provenance.run !== undefined && (
              <>
                , <a href={`/learning?run=${part(provenance.run)}`}>learned</a>
              </>
            )}
          </Fact>
        </Facts>
      </div>
      <Tabs label="Parts of this reflex" tabs={tabs} />
      {tab === 'overview' && (
        <>
          <Acts id={id} acts={acts} reload={reload} />
          <Rates reflex={id} />
          <Numbers id={id} />
        </>
      )}
      {tab === 'proof' && (
        <>
          <Proofs certificates={found.certificates} />
          <Audits id={id} />
        </>
      )}
      {tab === 'code' && (
        <>
          <States kind="reflex" id={id} versions={versions} reload={reload} />
          <Section title="Code">
            <Versions kind="reflexes" id={id} versions={versions} />
          </Section>
        </>
      )}
      {tab === 'try' && (found.code === null ? <p>{SEALED}</p> : <Try reflex={found} />)}
    </>
  )
}
