import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function ReflexPage() {
  return (
    <Page title="Reflex">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
