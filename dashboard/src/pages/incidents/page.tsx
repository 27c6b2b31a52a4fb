import { useGet } from '../../api/index.ts'
import type { Health } from '../../api/health.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Blocks } from './blocks.tsx'
import { Incidents } from './incidents.tsx'

const tabs = [
  { id: 'blocks', text: 'Blocks' },
  { id: 'open', text: 'Open incidents' },
  { id: 'closed', text: 'Closed incidents' },
] as const

/** The pages of the SSH guard, which has routes of its own. */
const AGENT = 'ssh-guard'

export default function IncidentsPage() {
  const health = useGet<Health>('/health/detailed')
  return (
    <Page title="Incidents and blocks" needs="viewer" actions={<Tabs label="List" tabs={tabs} />}>
      <Loaded data={health}>
        {({ agents }) =>
          agents.includes(AGENT) ? (
            <Chosen />
          ) : (
            <Empty title="The agent ssh-guard is not deployed, so there are no incidents and blocks.">
              <p class="quiet">Faults of Reflex itself are on the overview.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function Chosen() {
  const tab = useTab(tabs.map(({ id }) => id))
  return tab === 'blocks' ? <Blocks /> : <Incidents state={tab} />
}
