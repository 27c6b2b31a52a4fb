import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function TracePage() {
  return (
    <Page title="Trace">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
