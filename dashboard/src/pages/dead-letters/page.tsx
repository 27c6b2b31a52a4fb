import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function DeadlettersPage() {
  return (
    <Page title="Dead letters">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
