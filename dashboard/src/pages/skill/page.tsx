import { Empty } from '../../ui/feedback.tsx'
import { Page } from '../../ui/page.tsx'

export default function SkillPage() {
  return (
    <Page title="Skill">
      <Empty title="This page is not built yet." />
    </Page>
  )
}
