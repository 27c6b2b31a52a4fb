import { Empty } from '../ui/feedback.tsx'
import { Page } from '../ui/page.tsx'

export function NotFound() {
  return (
    <Page title="Page not found">
      <Empty title="There is no page at this address.">
        <a href="/">Open the overview</a>
      </Empty>
    </Page>
  )
}

export function Unloaded() {
  return (
    <Page title="Page not loaded">
      <Empty title="This page could not be loaded: the server is away, or a new version was deployed.">
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </Empty>
    </Page>
  )
}
