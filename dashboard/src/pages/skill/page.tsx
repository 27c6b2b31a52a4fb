import { useRoute } from 'preact-iso'
import type { z } from 'zod'
import type { skill } from '../../../../src/contract/skill.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Fact, Facts, SEALED, Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import type { Manifest } from './manifest-type.ts'
import { ManifestView } from './manifest.tsx'
import { Activity } from './activity.tsx'
import { Propose } from './propose.tsx'
import { States } from '../reflex/states.tsx'
import { Tests } from './tests.tsx'
import { Versions } from '../reflex/code.tsx'

type Skill = z.infer<typeof skill>

const tabs = [
  { id: 'manifest', text: 'Manifest' },
  { id: 'activity', text: 'Gate and runs' },
  { id: 'tests', text: 'Tests' },
  { id: 'versions', text: 'Versions' },
  { id: 'propose', text: 'Propose' },
]

export default function SkillPage() {
  const id = useRoute().params['id'] ?? ''
  const data = useGet<Skill>(`/v1/skills/${part(id)}`)
  return (
    <Page title={visible(id)} path={<a href="/skills">Skills</a>}>
      <Loaded data={data}>{(found) => <Shown skill={found} reload={data.reload} />}</Loaded>
    </Page>
  )
}

function Shown({
  skill: { id, version, state, state_reason, owner, scopes, provenance, created_at, versions, manifest },
  reload,
}: {
  skill: Skill
  reload: () => void
}) {
  const tab = useTab(tabs.map((one) => one.id))
  const shown = manifest as Manifest | null
  return (
    <>
      <div class="card">
        <p>
          <Text text={shown ? (shown.description ?? 'It has no description.') : SEALED} most={1000} />
        </p>
        <Facts>
          <Fact name="Version">
            {visible(version)} <Status status={state} />
          </Fact>
          {state_reason !== null && (
            <Fact name="Because">
              <Text text={state_reason} />
            </Fact>
          )}
          <Fact name="Owner">{visible(owner)}</Fact>
          <Fact name="Acts in">{scopes.map(visible).join(', ')}</Fact>
          <Fact name="Registered">
            <Time at={created_at} /> by {visible(provenance.by)}
            {provenance.run !== undefined && (
              <>
                , <a href={`/learning?run=${part(provenance.run)}`}>learned</a>
              </>
            )}
          </Fact>
          {provenance.forced && (
            <Fact name="Activated without passing tests">
              by {visible(provenance.forced.by)}: <Text text={provenance.forced.reason} />
            </Fact>
          )}
        </Facts>
      </div>
      <Tabs label="Parts of this skill" tabs={tabs} />
      {tab === 'manifest' && shown && <ManifestView manifest={shown} />}
      {tab === 'activity' && <Activity id={id} />}
      {tab === 'tests' && <Tests id={id} version={version} />}
      {tab === 'versions' && (
        <>
          <States kind="skill" id={id} versions={versions} reload={reload} />
          <Section title="Manifests">
            <Versions kind="skills" id={id} versions={versions} />
          </Section>
        </>
      )}
      {tab === 'propose' && shown && <Propose id={id} version={version} manifest={shown} />}
    </>
  )
}
