import { Empty } from '../ui/feedback.tsx'
import { Page } from '../ui/page.tsx'

export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="There is no page at this address.">
        <a href="/">Open the first page</a>
      </Empty>
    </Page>
  )
}
