import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function ApprovalsPage() {
  return (
    <Page title="Approvals">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
