import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function DecisionmodelsPage() {
  return (
    <Page title="Decision models">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
