import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function ScopePage() {
  return (
    <Page title="Scope">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
