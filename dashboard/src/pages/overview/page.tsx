import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function OverviewPage() {
  return (
    <Page title="Overview">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
