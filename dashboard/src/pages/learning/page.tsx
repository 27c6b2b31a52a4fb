import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function LearningPage() {
  return (
    <Page title="Learning">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
