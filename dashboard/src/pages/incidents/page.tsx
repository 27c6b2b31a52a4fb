import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function IncidentsPage() {
  return (
    <Page title="Incidents">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
