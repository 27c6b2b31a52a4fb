import { useSignal } from '@preact/signals'
import { hasRole, part, post, query } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, ErrorBox, Loading } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { notify } from '../../ui/notices.tsx'
import { Status } from '../../ui/status.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

/** As `GET /v1/incidents` of the SSH guard lists it. */
type Incident = {
  id: string
  scope: string
  state: 'open' | 'closed'
  title: string
  details: string
  evidence: string[]
  opened_at: string
  closed_at: string | null
}

export function Incidents({ state }: { state: string }) {
  const { items, more, problem, loadMore, reload } = usePages<Incident>(`/v1/incidents${query({ state, limit: 100 })}`)
  return (
    <>
      {problem && <ErrorBox problem={problem} onRetry={reload} />}
      {items === undefined && !problem && <Loading />}
      {items?.length === 0 && <Empty title={`There is no ${state} incident.`} />}
      {items?.map((incident) => (
        <Card key={incident.id} incident={incident} onClosed={reload} />
      ))}
      {more && (
        <button type="button" onClick={loadMore}>
          More
        </button>
      )}
    </>
  )
}

function Card({ incident, onClosed }: { incident: Incident; onClosed: () => void }) {
  const { scope, state, title, details, evidence, opened_at, closed_at } = incident
  return (
    <article class="card detail">
      <div class="heading">
        <h2>
          <Text text={title} />
        </h2>
        <Status status={state} />
      </div>
      <p class="quiet">
        <ScopeLink scope={scope} />, opened <Time at={opened_at} />
        {closed_at !== null && (
          <>
            , closed <Time at={closed_at} />
          </>
        )}
      </p>
      <p>
        <Text text={details} most={4000} />
      </p>
      {evidence.length > 0 && (
        <details>
          <summary>{evidence.length} log lines</summary>
          <pre class="wrap">{visible(evidence.join('\n'))}</pre>
        </details>
      )}
      {state === 'open' && hasRole('operator') && <Close incident={incident} onClosed={onClosed} />}
    </article>
  )
}

function Close({ incident: { id, title }, onClosed }: { incident: Incident; onClosed: () => void }) {
  const reason = useSignal('')
  const { run, busy, problem } = useAction((text: string) => post<Incident>(`/v1/incidents/${part(id)}/close`, { reason: text }))
  const close = async (event: SubmitEvent) => {
    event.preventDefault()
    if (!(await run(reason.value.trim())).ok) return
    notify(`${title}: closed`)
    onClosed()
  }
  return (
    <form class="actions" onSubmit={(event) => void close(event)}>
      <label class="inline">
        Reason
        <input required maxLength={500} value={reason} onInput={({ currentTarget }) => (reason.value = currentTarget.value)} />
      </label>
      <button type="submit" disabled={busy}>
        Close the incident
      </button>
      {problem && <ErrorBox problem={problem} />}
    </form>
  )
}
