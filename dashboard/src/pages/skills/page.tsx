import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function SkillsPage() {
  return (
    <Page title="Skills">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
