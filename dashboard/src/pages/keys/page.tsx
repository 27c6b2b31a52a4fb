import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function KeysPage() {
  return (
    <Page title="Keys">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
