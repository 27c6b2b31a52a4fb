import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function ScopesPage() {
  return (
    <Page title="Scopes">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
