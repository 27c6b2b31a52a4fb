import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function ReflexesPage() {
  return (
    <Page title="Reflexes">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
